// Items whose only addresses have tags in their upper bits, as in interpreters that put numbers and pointers into one word; and items
// whose addresses are in memory that has become read-only. Says `ready`.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ITEMS = 100 };

static uint64_t *boxed;
static void **constants;

static __attribute__((noinline)) void fill(void) {
    boxed = malloc(ITEMS * sizeof *boxed);
    constants = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < ITEMS; i++) {
        boxed[i] = (uint64_t)(uintptr_t)calloc(1, 200) | UINT64_C(0xfff9) << 48;
        constants[i] = calloc(1, 300);
    }
    mprotect(constants, 4096, PROT_READ);
}

// What `fill` has left on the stack.
static __attribute__((noinline)) void clear(void) {
    volatile char stack[20000];
    memset((void *)stack, 0, sizeof stack);
}

int main(void) {
    fill();
    clear();
    fprintf(stderr, "ready\n");
    for (;;) pause();
}
