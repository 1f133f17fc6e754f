// A thread that nearly always reallocates: 1000 items of 40 bytes are held only by the buffer that is being moved. Says `ready`.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 1000, BYTES = 48 << 20 };

struct item {
    long value[5];
};

// Not in main, whose frame would keep addresses.
static __attribute__((noinline)) struct item **made(void) {
    struct item **items = malloc(BYTES);
    for (int i = 0; i < ITEMS; i++) items[i] = calloc(1, sizeof **items);
    return items;
}

int main(void) {
    // Large blocks are moved by copying.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    struct item **items = made();
    fprintf(stderr, "ready\n");
    for (;;) {
        // The block behind it keeps it from growing in place.
        void *behind = malloc(64);
        items = realloc(items, BYTES + 4096);
        items = realloc(items, BYTES);
        free(behind);
    }
}
