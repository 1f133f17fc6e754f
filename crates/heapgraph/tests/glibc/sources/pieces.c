// A main heap in several pieces. With `sbrk`, the program itself moves the break between allocations; with `blocked`, the break
// cannot grow, so that malloc maps more memory.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *some(int count) {
    void **blocks = malloc(count * sizeof *blocks);
    for (int n = 0; n < count; n++) {
        blocks[n] = malloc(24 + n * 37 % 900);
        memset(blocks[n], n, 24);
    }
    for (int n = 0; n < count; n += 3) free(blocks[n]);
    return blocks;
}

int main(int count, char **arguments) {
    (void)count;
    if (!strcmp(arguments[1], "early")) {
        // Before malloc's first use, so that its memory is not aligned.
        sbrk(40);
    }
    some(2000);
    if (!strcmp(arguments[1], "blocked")) {
        char *end = sbrk(0);
        end += -(uintptr_t)end & 4095;
        mmap(end + 4096, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        some(9000);
        some(9000);
    } else {
        memset(sbrk(4096), 0xff, 4096);
        some(3000);
        char *odd = sbrk(1000);
        for (int n = 0; n < 1000; n++) odd[n] = n * 7;
        some(3000);
        // Among other words, some like heads of chunks.
        uint64_t *heads = sbrk(64 << 10);
        for (int n = 0; n < 8 << 10; n++) heads[n] = n % 5 == 1 ? 0x31 : n * 0x9e3779b97f4a7c15u;
        some(3000);
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
