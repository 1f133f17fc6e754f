// A thread that allocates many small blocks, works for a while, and frees them all. Freeing the array joins all free blocks, which are in
// no list meanwhile. Says `ready`.
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 20000 };

static void **items;

static __attribute__((noinline)) unsigned work(unsigned x) {
    for (int i = 0; i < 200000; i++) x = x * 1664525 + 1013904223;
    return x;
}

int main(void) {
    fprintf(stderr, "ready\n");
    for (unsigned x = 1;;) {
        items = malloc(ITEMS * sizeof *items);
        for (int i = 0; i < ITEMS; i++) items[i] = malloc(72);
        x = work(x);
        for (int i = 0; i < ITEMS; i++) free(items[i]);
        void **old = items;
        items = NULL;
        free(old);
        x = work(x);
        if (x == 0) puts("");
    }
}
