// Builds known structures, and prints its live blocks and which of them hold which, as it knows them from its own references; see
// structures.rs for the lines.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

static bool recording;
static struct { void *block; size_t size; } blocks[1 << 18];
static size_t count;

void *operator new(size_t size)
{
    void *block = malloc(size);
    if (recording)
        blocks[count++] = {block, size};
    return block;
}

void operator delete(void *block) noexcept
{
    if (recording)
        for (size_t at = count; at-- > 0;)
            if (blocks[at].block == block) {
                blocks[at].block = nullptr;
                break;
            }
    free(block);
}

void operator delete(void *block, size_t) noexcept { operator delete(block); }

struct Base {
    virtual ~Base() {}
    int number = 1;
};

struct Other {
    virtual ~Other() {}
    int *word = new int(2);
};

struct Derived : Base, Other {
    std::string name = "a name that needs a block of its own";
    std::unique_ptr<int> value = std::make_unique<int>(3);
};

struct Node {
    int value;
    Node *next;
};

using Unique = std::unique_ptr<int>;

static const std::string long_text(int number) { return "text that needs a block: " + std::to_string(number); }

struct App {
    std::vector<Unique> vector;
    std::vector<Unique> empty;
    std::vector<bool> bits;
    std::vector<std::vector<Unique>> nested;
    std::string text;
    std::string short_text;
    std::map<int, std::string> map;
    std::map<int, int> no_map;
    std::set<Unique> set;
    std::unordered_map<std::string, Unique> table;
    std::unordered_set<int> no_table;
    std::list<Unique> list;
    std::list<Unique> no_list;
    std::forward_list<Unique> forward;
    std::deque<Unique> deque;
    std::unique_ptr<Base> base;
    std::unique_ptr<Other> second_base;
    std::unique_ptr<int[]> array;
    std::shared_ptr<Derived> shared;
    std::shared_ptr<Derived> shared_again;
    std::weak_ptr<Derived> weak;
    std::weak_ptr<Derived> expired;
    std::shared_ptr<Unique> beside;
    std::optional<Unique> some;
    std::optional<Unique> none;
    std::vector<std::variant<int, Unique, std::string>> variants;
    std::function<int()> function;
    Node *first;
    size_t number;
    Unique fixed[3];
};

static size_t hidden[4096];
static size_t hidden_count;

static void hide(int number)
{
    while (number-- > 0)
        hidden[hidden_count++] = reinterpret_cast<size_t>(new int(number));
}

static App *build()
{
    App *app = new App;
    for (int i = 0; i < 100; i++)
        app->vector.push_back(std::make_unique<int>(i));
    app->bits.resize(1000);
    for (int i = 0; i < 4; i++) {
        app->nested.emplace_back();
        for (int j = 0; j < i; j++)
            app->nested.back().push_back(std::make_unique<int>(j));
    }
    app->text = long_text(0);
    app->short_text = "short";
    for (int i = 0; i < 1000; i++)
        app->map[i] = long_text(i);
    for (int i = 0; i < 50; i++)
        app->set.insert(std::make_unique<int>(i));
    for (int i = 0; i < 500; i++)
        app->table[long_text(i)] = std::make_unique<int>(i);
    for (int i = 0; i < 20; i++) {
        app->list.push_back(std::make_unique<int>(i));
        app->forward.push_front(std::make_unique<int>(i));
    }
    for (int i = 0; i < 1000; i++)
        app->deque.push_back(std::make_unique<int>(i));
    for (int i = 0; i < 100; i++) {
        app->deque.pop_front();
        if (i % 3 == 0)
            app->deque.pop_back();
    }
    for (int i = 0; i < 1000; i += 2)
        app->map.erase(i);
    for (int i = 0; i < 500; i += 3)
        app->table.erase(long_text(i));
    app->vector.resize(10);
    app->base = std::make_unique<Derived>();
    app->second_base = std::make_unique<Derived>();
    app->array = std::make_unique<int[]>(10);
    app->shared = std::make_shared<Derived>();
    app->shared_again = app->shared;
    app->weak = app->shared;
    {
        auto gone = std::make_shared<Derived>();
        app->expired = gone;
        delete gone->word;
    }
    app->beside = std::shared_ptr<Unique>(new Unique(new int(4)));
    app->some = std::make_unique<int>(5);
    app->none = std::make_unique<int>(6);
    app->none.reset();
    app->variants.emplace_back(1);
    app->variants.emplace_back(std::make_unique<int>(7));
    app->variants.emplace_back(long_text(8));
    size_t captured[3] = {1, 2, 3};
    app->function = [captured] { return static_cast<int>(captured[0]); };
    app->first = nullptr;
    for (int i = 0; i < 10; i++)
        app->first = new Node{i, app->first};
    app->fixed[1] = std::make_unique<int>(1);
    hide(1000);
    app->number = hidden[0];
    return app;
}

static void edge(const char *kind, const void *from, const void *to)
{
    printf("%s %zu %zu\n", kind, reinterpret_cast<size_t>(from), reinterpret_cast<size_t>(to));
}

static void owns(const void *from, const void *to) { edge("owns", from, to); }

static void print(const Derived &object)
{
    owns(&object, object.name.data());
    owns(&object, object.value.get());
    edge("refers", &object, object.word);
}

template <class C> static void print_values(const C &values)
{
    for (const Unique &value : values)
        owns(&value, value.get());
}

int main()
{
    setvbuf(stdout, nullptr, _IOFBF, 1 << 16);
    recording = true;
    App *app = build();
    recording = false;
    printf("root %zu\n", reinterpret_cast<size_t>(app));
    for (size_t at = 0; at < count; at++)
        if (blocks[at].block)
            printf("block %zu %zu\n", reinterpret_cast<size_t>(blocks[at].block), blocks[at].size);
    for (size_t at = 0; at < hidden_count; at++)
        printf("unowned %zu\n", hidden[at]);
    owns(app, app->vector.data());
    print_values(app->vector);
    owns(app, app->nested.data());
    for (const auto &inner : app->nested)
        if (!inner.empty()) {
            owns(&inner, inner.data());
            print_values(inner);
        }
    owns(app, app->text.data());
    printf("text %zu %s\n", reinterpret_cast<size_t>(app->text.data()), app->text.c_str());
    for (const auto &entry : app->map)
        owns(&entry, entry.second.data());
    edge("refers", app, &*app->map.begin());
    edge("refers", app, &*app->map.rbegin());
    print_values(app->set);
    edge("refers", app, &*app->set.begin());
    edge("refers", app, &*app->set.rbegin());
    for (const auto &entry : app->table) {
        owns(&entry, entry.first.data());
        owns(&entry, entry.second.get());
    }
    owns(app, &*app->table.begin());
    owns(app, &*app->list.begin());
    edge("refers", app, &app->list.back());
    owns(app, &*app->forward.begin());
    const void *last = nullptr;
    for (const Unique &value : app->list) {
        if (last) {
            owns(last, &value);
            edge("weak", &value, last);
        }
        last = &value;
    }
    // The nodes of a list form a ring with its header.
    edge("weak", last, app);
    edge("weak", &*app->list.begin(), app);
    last = nullptr;
    for (const Unique &value : app->forward) {
        if (last)
            owns(last, &value);
        last = &value;
    }
    print_values(app->list);
    print_values(app->forward);
    print_values(app->deque);
    owns(app, &app->deque.front());
    owns(app, &app->deque.back());
    owns(app, app->base.get());
    print(static_cast<const Derived &>(*app->base));
    print(dynamic_cast<const Derived &>(*app->second_base));
    owns(app, dynamic_cast<const Derived *>(app->second_base.get()));
    owns(app, app->array.get());
    edge("refers", app, app->shared.get());
    owns(app, app->shared.get());
    edge("weak", app, app->shared.get());
    print(*app->shared);
    edge("refers", app, app->beside.get());
    owns(app->beside.get(), app->beside->get());
    owns(app, app->some->get());
    owns(app, app->variants.data());
    owns(&app->variants[1], std::get<1>(app->variants[1]).get());
    owns(&app->variants[2], std::get<2>(app->variants[2]).data());
    owns(app, app->fixed[1].get());
    // The block of a large function object, and the control block of a pointer that is expired.
    edge("refers", app, *reinterpret_cast<void **>(&app->function));
    edge("weak", app, reinterpret_cast<void **>(&app->expired)[1]);
    for (Node *node = app->first; node; node = node->next)
        edge("refers", node == app->first ? static_cast<void *>(app) : last, node), last = node;
    printf("ready\n");
    fflush(stdout);
    getchar();
    return app->vector.size() == 1;
}
