// C++ values on the heap: of classes with vtables, of structs that a pointer leads to, and of containers.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

struct Shape {
    virtual ~Shape() {}
};
struct Circle : Shape {
    double radius[5];
    std::unique_ptr<Shape> inner;
};
struct Path : Shape {
    std::vector<unsigned long> points;
};
struct Part {
    Part *next;
    long number;
    char rest[100];
};
struct Text {
    std::string text;
};

struct Tagged {
    long values[20];
};

std::vector<Shape *> shapes;
std::vector<unsigned long long> tagged;
std::map<int, std::shared_ptr<Text>> texts;
Part *parts;
Shape *volatile last_shape;
Part *volatile last_part;

__attribute__((noinline)) Shape *make(int number) {
    if (number % 2) return new Circle;
    Path *path = new Path;
    path->points.resize(7);
    return path;
}

__attribute__((noinline)) void add_part() {
    Part *part = new Part{};
    part->next = parts;
    parts = part;
}

__attribute__((noinline)) void add_tagged() {
    tagged.push_back((unsigned long long)new Tagged{} | 1);
}

__attribute__((noinline)) void lose_part() {
    last_part = new Part{};
}

__attribute__((noinline)) void lose_circles() {
    last_shape = new Circle;
}

int main() {
    for (int number = 0; number < 100; number++) {
        shapes.push_back(make(number));
        add_part();
        texts[number] = std::make_shared<Text>(Text{std::string(40 + number, 'x')});
    }
    for (int number = 0; number < 10; number++) add_tagged();
    for (int number = 0; number < 10; number++) lose_circles();
    lose_part();
    last_shape = nullptr;
    last_part = nullptr;
    fprintf(stderr, "ready\n");
    for (;;) pause();
}
