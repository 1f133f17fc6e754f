// C++ with what its runtime does behind the scenes: exceptions through frames, templates,
// destructors at exit, threads.
#include "work.h"
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

namespace shop {
struct AtExit {
    ~AtExit() { std::puts("destroyed"); }
} at_exit;

template <typename Key> struct Counter {
    std::map<Key, int> counts;
    __attribute__((noinline)) void count(Key key)
    {
        volatile uint64_t sink = rounds(2000);
        (void)sink;
        if (++counts[key] % 10 == 0)
            throw std::runtime_error("ten again");
    }
};

__attribute__((noinline)) int sell(Counter<std::string> &counter, int times)
{
    int thrown = 0;
    for (int i = 0; i < times; i++) {
        try {
            counter.count("book");
        } catch (const std::runtime_error &) {
            thrown++;
        }
    }
    return thrown;
}
} // namespace shop

int main()
{
    shop::Counter<std::string> first, second;
    int thrown = 0;
    std::thread other([&] { shop::sell(second, 100000); });
    thrown = shop::sell(first, 100000);
    other.join();
    bool right = thrown == first.counts["book"] / 10;
    std::printf("%s\n", right ? "all caught" : "some lost");
    return right ? 9 : 1;
}
