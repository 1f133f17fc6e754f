// Allocations through containers of C++, with the type of each block: see allocs.rs for the output.
#include <cstdio>
#include <cstdlib>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

struct Record {
    const char *label;
    size_t element, bytes, depth, stack[24];
};
static Record records[4096];
static size_t count;
static const char *label;
static size_t element;
static char *end_of_stack;
extern "C" const char __ehdr_start;

static __attribute__((noinline)) void record(size_t bytes) {
    if (!label || count == 4096) return;
    Record &record = records[count++];
    record = {label, element, bytes, 0, {}};
    void **frame = (void **)__builtin_frame_address(0);
    while (record.depth < 24 && (char *)frame > (char *)&frame - 4096 && (char *)frame < end_of_stack) {
        record.stack[record.depth++] = (size_t)frame[1] - (size_t)&__ehdr_start;
        frame = (void **)frame[0];
    }
}

__attribute__((noinline)) void *operator new(size_t bytes) {
    record(bytes);
    return malloc(bytes);
}
void operator delete(void *block) noexcept { free(block); }
void operator delete(void *block, size_t) noexcept { free(block); }

struct Item {
    long a = 0;
    int b = 0;
};
struct Maker {
    std::vector<Item> items;
    Maker() { items.resize(10); }
};

static volatile size_t kept;
#define MADE(types, first, code)                \
    do {                                        \
        label = types, element = sizeof(first); \
        auto made = code;                       \
        label = nullptr;                        \
        kept += sizeof(made);                   \
    } while (0)

static __attribute__((noinline)) void all(int n) {
    MADE("Item[]", Item, ([n] { std::vector<Item> v; for (int i = 0; i < n; i++) v.push_back({}); return v; }()));
    MADE("int[]", int, std::vector<int>(n));
    MADE("long[]", long, ([n] { std::vector<long> v; v.reserve(n); return v; }()));
    MADE("map<int, Item> node", Item, ([n] { std::map<int, Item> m; for (int i = 0; i < n; i++) m[i] = {}; return m; }()));
    MADE("set<long> node", long, ([n] { std::set<long> m; for (int i = 0; i < n; i++) m.insert(i); return m; }()));
    MADE("unordered_map<int, Item> node or _Hash_node_base*[]", Item,
         ([n] { std::unordered_map<int, Item> m; for (int i = 0; i < n; i++) m[i] = {}; return m; }()));
    MADE("list<Item> node", Item, std::list<Item>(n));
    MADE("forward_list<Item> node", Item, std::forward_list<Item>(n));
    MADE("shared_ptr<Item>", Item, std::make_shared<Item>());
    MADE("Item or ?", Item, std::make_unique<Item>());
    MADE("char[] or ?", char, std::string(100, 'x'));
    MADE("Maker or Item[] or ?", Maker, std::unique_ptr<Maker>(new Maker));
}

int main(int argc, char **) {
    end_of_stack = (char *)__builtin_frame_address(0) + 4096;
    all(10 * argc);
    for (size_t i = 0; i < count; i++) {
        printf("%s|%zu|%zu|", records[i].label, records[i].element, records[i].bytes);
        for (size_t j = 0; j < records[i].depth; j++) printf("%s%zx", j ? "," : "", records[i].stack[j]);
        printf("\n");
    }
}
