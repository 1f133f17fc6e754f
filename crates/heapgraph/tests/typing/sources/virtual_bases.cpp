// A C++ program with virtual base classes that prints which classes its objects have.
#include <cstdio>
#include <memory>
#include <unistd.h>
#include <vector>

static void say(const void *block, const char *contains) { printf("%lx %s\n", (long)block, contains); }

namespace app {

struct Base {
    virtual ~Base() = default;
    virtual const char *name() const { return "Base"; }
    long common = 1;
};

struct Left : virtual Base {
    const char *name() const override { return "Left"; }
    long left[3];
};

struct Right : virtual Base {
    const char *name() const override { return "Right"; }
    char right[70];
};

struct Both : Left, Right {
    const char *name() const override { return "Both"; }
    long both[20];
};

// Without fields: objects share the pointer of a virtual base to its vtable.
struct Interface {
    virtual ~Interface() = default;
    virtual const char *label() const = 0;
};

struct Implementation : virtual Interface {
    const char *label() const override { return "Implementation"; }
    long fields[31];
};

namespace {

// Not visible elsewhere.
struct Local : Right {
    const char *name() const override { return "(anonymous namespace)::Local"; }
    long local[41];
};

} // namespace

struct State {
    std::vector<std::unique_ptr<Base>> bases;
    std::vector<std::unique_ptr<Right>> rights;
    std::vector<std::unique_ptr<Interface>> interfaces;
};

State state;

} // namespace app

using namespace app;

int main() {
    for (int n = 0; n < 50; n++) {
        state.bases.push_back(std::make_unique<Left>());
        state.bases.push_back(std::make_unique<Both>());
        state.bases.push_back(std::make_unique<Local>());
        state.rights.push_back(std::make_unique<Both>());
        state.rights.push_back(std::make_unique<Right>());
        state.interfaces.push_back(std::make_unique<Implementation>());
    }
    for (auto &one : state.bases) say(dynamic_cast<const void *>(one.get()), one->name());
    for (auto &one : state.rights) say(dynamic_cast<const void *>(one.get()), one->name());
    for (auto &one : state.interfaces) say(dynamic_cast<const void *>(one.get()), one->label());
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
