// Makes values with `new`, and through smart pointers. A comment on the line of each site has its bytes, and the type that the
// source says, if it says one.
#include <memory>

#define NOINLINE __attribute__((noinline))

struct Shape {
    long id = 0;
    virtual ~Shape() {}
};
struct Circle : Shape {
    double radius = 1;
};
struct Ring : Circle {
    double inner = 2;
};
struct Plain {
    long first, second;
};
struct Wider : Plain {
    long third;
};
struct Dying {
    long value;
    ~Dying() { value = 0; }
};
template <typename T> struct Owner {
    T *owned;
    Owner(T *owned) : owned(owned) {}
    ~Owner() { delete owned; }
};
struct Closed {
    Plain *plain;
    Closed *next;
};

Shape *shape;
Plain *plain;
Dying *dying;
Closed *closed;
void *anything;

NOINLINE void look(const void *at) {
    anything = const_cast<void *>(at);
}
NOINLINE void vtables() {
    shape = new Ring; // site: 32 Ring
    std::unique_ptr<Shape> owned(new Circle); // site: 24 Circle
    look(owned.get());
}
NOINLINE void arrays(int count) {
    Dying *six = new Dying[6]; // site: 56 Dying[]
    look(six);
    dying = new Dying[count]; // site: 32 Dying[]
    Plain *plains = new Plain[4]; // site: 64 Plain[]
    look(plains);
    auto words = std::make_unique<int[]>(count); // site: 12 int[]
    look(words.get());
}
NOINLINE void owners() {
    Owner<Plain> owner(new Plain{1, 2}); // site: 16 Plain
    look(&owner);
    auto unique = std::make_unique<Plain>(); // site: 16 Plain
    look(unique.get());
    Plain *own = new Plain{3, 4}; // site: 16 Plain
    std::shared_ptr<Plain> shared(own); // site: 24 shared_ptr<Plain> control block
    look(shared.get());
    auto counted = std::make_shared<Circle>(); // site: 40 shared_ptr<Circle>
    look(counted.get());
}
NOINLINE void fields() {
    closed = new Closed{nullptr, nullptr}; // site: 16 Closed
    closed->plain = new Plain{5, 6}; // site: 16 Plain
    closed->next = new Closed{nullptr, nullptr}; // site: 16 Closed
}
// The type of the pointer is not that of the block, or there is none.
NOINLINE void others(int count) {
    plain = new Wider; // site: 24
    anything = ::operator new(48); // site: 48
    void *large = ::operator new(64 * count); // site: 192
    shape = new (large) Circle;
}

int main(int argc, char **) {
    vtables();
    arrays(3 * argc);
    owners();
    fields();
    others(3 * argc);
}
