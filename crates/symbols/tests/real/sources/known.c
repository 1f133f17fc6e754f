/* Prints where it is: an address in inlined code, and the lines of the calls that lead there. */
#include <stdio.h>

extern char __ehdr_start;

static inline __attribute__((always_inline)) unsigned long inner(int *line) {
    unsigned long at;
    *line = __LINE__ + 1;
    __asm__ volatile("lea 0(%%rip), %0" : "=r"(at));
    return at;
}

static inline __attribute__((always_inline)) unsigned long middle(int *lines) {
    lines[1] = __LINE__ + 1;
    unsigned long at = inner(lines);
    return at;
}

__attribute__((noinline)) unsigned long outer(int *lines) {
    lines[2] = __LINE__ + 1;
    unsigned long at = middle(lines);
    return at;
}

int main(void) {
    int lines[3];
    unsigned long at = outer(lines) - (unsigned long)&__ehdr_start;
    printf("method %lu %d %d %d\n", at, lines[0], lines[1], lines[2]);
    return 0;
}
