// Tells the layouts of its own types and the places of its variables. See tests/real/layouts.rs for the lines.
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

extern "C" char __ehdr_start;

namespace app {
struct Base {
    long a = 1;
    virtual ~Base() {}
    virtual int one() { return 1; }
};
struct Other {
    void *b = nullptr;
    virtual int two() { return 2; }
};
struct Both : Base, Other {
    char c = 3;
    int one() override { return 4; }
    int two() override { return 5; }
};
struct Virtual : virtual Base {
    int d = 4;
};
template <typename T> struct Box {
    T *inside;
    unsigned long count;
    static Box *first;
};
template <typename T> Box<T> *Box<T>::first;
struct Item {
    std::string name;
    std::vector<Item> children;
    std::map<int, std::shared_ptr<Item>> by_number;
    Box<const Item> box;
    Item &self;
    struct Inner {
        short s;
        Item *owner;
    } inner;
    int Item::*member;
};
Item *root;
thread_local Both *current;
namespace {
int hidden = 5;
}
namespace deep {
extern Item *other;
}
} // namespace app
app::Item *app::deep::other;

template <typename Place> static void tell_static(const char *name, Place &place, const char *type) {
    printf("static|%s|%zu|%s|%zu\n", name, (size_t)((char *)&place - &__ehdr_start), type, sizeof(place));
}
static void tell_vtable(const char *name, void *object, size_t offset) {
    char *vtable = *(char **)((char *)object + offset);
    printf("vtable|%s|%zu|%zu\n", name, (size_t)(vtable - &__ehdr_start), offset);
}

#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define FIELD(type, field) \
    printf("field|%s|%s|%zu|%zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field))

int main(int count, char **) {
    using namespace app;
    printf("type|app::Item|%zu\n", sizeof(Item));
    printf("type|app::Item::Inner|%zu\n", sizeof(Item::Inner));
    printf("type|app::Both|%zu\n", sizeof(Both));
    printf("partial|app::Virtual\n");
    FIELD(app::Item, name);
    FIELD(app::Item, children);
    FIELD(app::Item, by_number);
    FIELD(app::Item, box);
    FIELD(app::Item, inner);
    FIELD(app::Item, member);
    FIELD(app::Item, inner.owner);
    FIELD(app::Both, c);
    printf("field|app::Item|box.count|%zu|8\n", offsetof(Item, box) + offsetof(Box<const Item>, count));
    printf("target|app::Item|box.inside|app::Item\n");
    printf("target|app::Item|self|app::Item\n");
    printf("target|app::Item|inner.owner|app::Item\n");
    Both both;
    printf("field|app::Both|Base|0|%zu\n", sizeof(Base));
    printf("field|app::Both|Other|%zu|%zu\n", (size_t)((char *)(Other *)&both - (char *)&both), sizeof(Other));
    printf("field|app::Both|Base.a|%zu|8\n", (size_t)((char *)&both.a - (char *)&both));
    tell_static("app::root", root, "app::Item*");
    tell_static("app::deep::other", deep::other, "app::Item*");
    tell_static("app::(anonymous namespace)::hidden", hidden, "int");
    tell_static("app::Box::first", Box<const Item>::first, "app::Box<const app::Item>*");
    tell_vtable("app::Both", &both, 0);
    tell_vtable("app::Both", &both, (size_t)((char *)(Other *)&both - (char *)&both));
    Base base;
    tell_vtable("app::Base", &base, 0);
    Virtual virtual_base;
    current = &both;
    if (count > 5) {
        Item *item = (Item *)&both;
        printf("%zu %d %d\n", item->children.size(), virtual_base.d, hidden);
        root = new Item{"", {}, {}, {}, *item, {}, nullptr};
    }
    char *pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    printf("thread local|app::current|%zu|app::Both*|8\n", (size_t)(pointer - (char *)&current));
    return Box<const Item>::first != nullptr;
}
