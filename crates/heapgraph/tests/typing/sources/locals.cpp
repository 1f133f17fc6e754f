// A C++ program whose data is held by local variables. It prints what its blocks contain.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

struct Point {
    double x, y, z;
};

struct Track {
    std::string name;
    std::vector<Point> points;
    std::shared_ptr<std::string> author;
};

struct Leaf {
    long values[5];
    std::unique_ptr<Leaf> next;
};

struct Library {
    std::vector<std::unique_ptr<Track>> tracks;
    std::map<long, std::string> titles;
    std::unique_ptr<Leaf> leaves;
};

static void say(const void *block, const char *contains) { printf("%lx %s\n", (long)block, contains); }

static std::vector<int> numbers(int n) { return std::vector<int>(2 * n, n); }

__attribute__((noinline)) static void serve(Library &library, std::vector<Point> path) {
    std::vector<std::string> first;
    for (int n = 0; n < 20; n++) first.push_back("a string that is moved away " + std::to_string(n));
    std::vector<std::string> lines = std::move(first);
    {
        std::vector<std::unique_ptr<Leaf>> gone;
        for (int n = 0; n < 20; n++) gone.push_back(std::make_unique<Leaf>());
    }
    std::vector<std::vector<int>> instead;
    instead.reserve(20);
    for (int n = 0; n < 20; n++) instead.push_back(numbers(6));
    say(path.data(), "Point[]");
    say(lines.data(), "basic_string<char>[]");
    for (auto &line : lines) say(line.data(), "char[]");
    say(instead.data(), "vector<int>[]");
    for (auto &one : instead) say(one.data(), "int[]");
    puts("ready");
    fflush(stdout);
    for (;;) {
        pause();
        printf("%zu %zu %zu %zu\n", library.tracks.size(), path.size(), lines.size(), instead.size());
    }
}

int main() {
    Library library;
    auto author = std::make_shared<std::string>("an author whose name is long enough");
    for (int n = 0; n < 200; n++) {
        auto track = std::make_unique<Track>();
        track->name = "the name of track number " + std::to_string(n);
        track->points.assign(n % 9 + 1, Point{1, 2, 3});
        track->author = author;
        say(track.get(), "Track");
        say(track->name.data(), "char[]");
        say(track->points.data(), "Point[]");
        library.tracks.push_back(std::move(track));
        library.titles[n] = "the title of number " + std::to_string(n);
        say(library.titles[n].data(), "char[]");
        auto leaf = std::make_unique<Leaf>();
        leaf->next = std::move(library.leaves);
        library.leaves = std::move(leaf);
        say(library.leaves.get(), "Leaf");
    }
    say(author->data(), "char[]");
    std::vector<Point> path(50, Point{0, 1, 0});
    say(library.tracks.data(), "unique_ptr<Track>[]");
    serve(library, path);
}
