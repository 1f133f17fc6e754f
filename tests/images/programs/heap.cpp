// A C++ program that says of each of its blocks what it contains and whether something holds it.
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#define NOT_INLINED __attribute__((noinline))

static void say(const void *block, const char *contains, const char *state)
{
    printf("block %lx %s %s\n", (long)block, state, contains);
}

namespace app {

// Virtual bases: the pointer that holds a `Both` points into it.
struct Base {
    virtual ~Base() = default;
    long id = 7;
};

struct Left : virtual Base {
    long left = 1;
};

struct Right : virtual Base {
    long right = 2;
};

struct Both : Left, Right {
    std::string name;
};

struct Shape {
    virtual ~Shape() = default;
    std::string name;
};

struct Circle : Shape {
    double radius = 1;
};

struct Polygon : Shape {
    std::vector<double> points;
};

struct Config {
    std::string text;
    long limits[6];
};

struct Leaf {
    long value;
    Leaf *next;
};

// Members of a cycle that nothing holds.
struct Member {
    std::shared_ptr<Member> other;
    std::vector<int> payload;
};

struct State {
    std::vector<std::unique_ptr<Shape>> shapes;
    std::map<int, std::string> names;
    std::unordered_map<int, Config> configs;
    std::shared_ptr<Config> shared;
    std::unique_ptr<Base> bases[4];
    Leaf *leaves = nullptr;
};

State state;

} // namespace app

using namespace app;

static std::string text(const char *of, int number)
{
    return std::string("the name of the ") + of + " with number " + std::to_string(number);
}

NOT_INLINED static void fill()
{
    for (int n = 0; n < 12; n++) {
        if (n % 3) {
            auto circle = std::make_unique<Circle>();
            circle->name = text("circle", n);
            say(circle.get(), "Circle", "held");
            say(circle->name.data(), "char[]", "held");
            state.shapes.push_back(std::move(circle));
        } else {
            auto polygon = std::make_unique<Polygon>();
            polygon->name = text("polygon", n);
            polygon->points.assign(n + 3, 0.5);
            say(polygon.get(), "Polygon", "held");
            say(polygon->name.data(), "char[]", "held");
            say(polygon->points.data(), "double[]", "held");
            state.shapes.push_back(std::move(polygon));
        }
    }
    for (int n = 0; n < 10; n++) {
        state.names[n] = text("entry", n);
        state.configs[n].text = text("configuration", n);
        say(state.names[n].data(), "char[]", "held");
        say(state.configs[n].text.data(), "char[]", "held");
    }
    state.shared = std::make_shared<Config>();
    state.shared->text = text("shared", 0);
    say(state.shared->text.data(), "char[]", "held");
    for (auto &base : state.bases) {
        auto both = std::make_unique<Both>();
        both->name = text("both", 0);
        say(both.get(), "Both", "held");
        say(both->name.data(), "char[]", "held");
        base = std::move(both);
    }
    for (int n = 0; n < 6; n++) {
        state.leaves = new Leaf{n, state.leaves};
        say(state.leaves, "Leaf", "held");
    }
    say(state.shapes.data(), "*", "held");
}

NOT_INLINED static void leak()
{
    // Three lists of which each node holds the next one.
    for (int list = 0; list < 3; list++) {
        Leaf *first = nullptr;
        for (int n = 0; n < 4; n++) {
            first = new Leaf{n, first};
            say(first, "*", "leaked");
        }
    }
    for (int pair = 0; pair < 2; pair++) {
        auto one = std::make_shared<Member>(), other = std::make_shared<Member>();
        for (auto *member : {one.get(), other.get()}) {
            member->payload.assign(9, 1);
            say(member->payload.data(), "*", "leaked");
            // `make_shared` allocates the counts and the value together.
            say((char *)member - 16, "*", "leaked");
        }
        one->other = other;
        other->other = one;
    }
    for (int n = 0; n < 2; n++) {
        auto circle = new Circle;
        circle->name = text("lost circle", n);
        say(circle->name.data(), "char[]", "leaked");
        say(circle, "Circle", "leaked");
    }
}

// Overwrites what these functions left on the stack.
NOT_INLINED static void scrub()
{
    volatile char bytes[32768];
    for (char volatile &byte : bytes) byte = 0;
}

int main()
{
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    fill();
    leak();
    std::vector<Config> local(3);
    for (Config &config : local) {
        config.text = text("local", 0);
        say(config.text.data(), "char[]", "held");
    }
    say(local.data(), "*", "held");
    puts("ready");
    fflush(stdout);
    memset(buffer, 0, sizeof buffer);
    scrub();
    for (;;) pause();
    return (int)local.size();
}
