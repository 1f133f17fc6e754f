// Items whose only addresses are disguised, ITEMS of each kind: with tags in their upper bits, as in interpreters that put numbers and
// pointers into one word; above a tag; in packed structs; in bytes; in a list whose links are bytes. An array of which only the end is known.
// Items whose addresses are in memory that has become read-only, and LOST items that nothing holds. Says `ready`.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ITEMS = 100, LOST = 5 };

struct __attribute__((packed)) entry {
    char kind;
    void *item;
};
struct node {
    char text[41];
    char next[8];
};

uint64_t *boxed, *shifted;
void **constants;
_Alignas(8) struct entry entries[ITEMS];
char *buffer;
_Alignas(8) char nodes[16];
char *end;

static __attribute__((noinline)) void fill(void) {
    boxed = malloc(ITEMS * sizeof *boxed);
    constants = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < ITEMS; i++) {
        boxed[i] = (uint64_t)(uintptr_t)calloc(1, 200) | UINT64_C(0xfff9) << 48;
        constants[i] = calloc(1, 300);
    }
    mprotect(constants, 4096, PROT_READ);
    shifted = malloc(ITEMS * sizeof *shifted);
    buffer = calloc(ITEMS, 11);
    for (int i = 0; i < ITEMS; i++) {
        shifted[i] = (uint64_t)(uintptr_t)calloc(1, 210) << 16 | 7;
        entries[i].item = calloc(1, 220);
        void *item = calloc(1, 230);
        memcpy(buffer + i * 11, &item, sizeof item);
        struct node *node = calloc(1, sizeof *node);
        memcpy(node->next, nodes + 1, 8);
        memcpy(nodes + 1, &node, 8);
    }
    // 896 bytes with the head: no byte of it is left. Another block follows.
    end = (char *)calloc(1, 888) + 888;
    for (int i = 0; i < LOST; i++) *(volatile char *)calloc(1, 240) = 1;
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
