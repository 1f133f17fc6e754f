// Prints where it is: an address in inlined code, and the lines of the calls that lead there.
#include <cstdio>

extern "C" char __ehdr_start;

namespace deep {
template <typename T> struct Thing {
    T value;

    inline __attribute__((always_inline)) unsigned long inner(int *line) const {
        unsigned long at;
        *line = __LINE__ + 1;
        __asm__ volatile("lea 0(%%rip), %0" : "=r"(at));
        return at;
    }

    __attribute__((noinline)) unsigned long outer(int *lines) const;
};

namespace {
template <typename T>
inline __attribute__((always_inline)) unsigned long middle(const Thing<T> &thing, int *lines) {
    lines[1] = __LINE__ + 1;
    unsigned long at = thing.inner(lines);
    return at;
}
}

template <typename T> unsigned long Thing<T>::outer(int *lines) const {
    lines[2] = __LINE__ + 1;
    unsigned long at = middle(*this, lines);
    return at;
}
}

int main() {
    int lines[3];
    unsigned long at = deep::Thing<char>{1}.outer(lines) - (unsigned long)&__ehdr_start;
    std::printf("method %lu %d %d %d\n", at, lines[0], lines[1], lines[2]);
}
