// A program whose freed blocks are in the cache of its only thread. Blocks with mappings of their own lie beside the memory that has
// the thread's structure: the kernel joins them to one mapping.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 5, LARGE = 3, MEGABYTES = 3 << 20 };

char *large[LARGE];

int main(void) {
    void *items[ITEMS];
    for (int n = 0; n < ITEMS; n++) items[n] = malloc(1000);
    for (int n = 0; n < LARGE; n++) {
        large[n] = malloc(MEGABYTES);
        memset(large[n], n, 100);
    }
    for (int n = 0; n < ITEMS; n++) free(items[n]);
    fputs("ready\n", stderr);
    pause();
    return large[0][0];
}
