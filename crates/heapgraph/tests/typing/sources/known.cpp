// A C++ program that prints what its blocks contain.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

static void say(const void *block, const char *contains) { printf("%lx %s\n", (long)block, contains); }

namespace app {

struct Shape {
    virtual ~Shape() = default;
    virtual void print() const = 0;
    std::string name;
};

struct Circle : Shape {
    double radius = 1;
    void print() const override {
        say(this, "Circle");
        say(name.data(), "char[]");
    }
};

struct Named {
    virtual ~Named() = default;
    long id = 7;
};

struct Polygon : Shape, Named {
    std::vector<double> points;
    std::unique_ptr<Circle> around;
    void print() const override {
        say(this, "Polygon");
        say(name.data(), "char[]");
        say(points.data(), "double[]");
        if (around) around->print();
    }
};

struct Config {
    std::string text;
    long limits[6];
};

struct Leaf {
    long value;
    Leaf *next;
};

struct State {
    std::vector<std::unique_ptr<Shape>> shapes;
    std::map<int, std::string> names;
    std::unordered_map<int, Config> configs;
    std::shared_ptr<Config> shared;
    Leaf *leaves = nullptr;
};

State state;
std::unique_ptr<Config> single;

} // namespace app

using namespace app;

static std::unique_ptr<Shape> shape(int n) {
    if (n % 3) {
        auto circle = std::make_unique<Circle>();
        circle->name = "the name of circle " + std::to_string(n);
        return circle;
    }
    auto polygon = std::make_unique<Polygon>();
    polygon->name = "the name of polygon " + std::to_string(n);
    polygon->points.assign(n % 10 + 3, 0.5);
    if (n % 2) {
        polygon->around = std::make_unique<Circle>();
        polygon->around->name = "the name of the circle around " + std::to_string(n);
    }
    return polygon;
}

int main() {
    for (int n = 0; n < 300; n++) {
        state.shapes.push_back(shape(n));
        state.names[n] = "the name of entry number " + std::to_string(n);
        state.configs[n].text = "the text of configuration " + std::to_string(n);
        state.leaves = new Leaf{n, state.leaves};
    }
    state.shared = std::make_shared<Config>();
    state.shared->text = "the text of the shared configuration";
    single = std::make_unique<Config>();
    single->text = "the text of the single configuration";
    say(state.shapes.data(), "*");
    for (auto &one : state.shapes) one->print();
    for (auto &one : state.names) say(one.second.data(), "char[]");
    for (auto &one : state.configs) say(one.second.text.data(), "char[]");
    for (Leaf *leaf = state.leaves; leaf; leaf = leaf->next) say(leaf, "Leaf");
    say(state.shared->text.data(), "char[]");
    say(single.get(), "Config");
    say(single->text.data(), "char[]");
    puts("stack");
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int n = 0; n < 40; n++) shapes.push_back(shape(n));
    for (auto &one : shapes) one->print();
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
