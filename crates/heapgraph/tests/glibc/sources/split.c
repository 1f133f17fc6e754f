// A chunk between two others whose split has begun: it has its new size, and the rest has no head yet. The argument says how:
// `free`, a free chunk that is given to `malloc`; `joined`, a block that grows into a free chunk; `used`, a block that shrinks;
// `damage`, none of these.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 7000, SIZE = 5000 - 8, GROWN = 6000, SHRUNK = 512, IN_USE = 1 };

// The word before a block is the head of its chunk: size and flags.
static void set_size(char *block, size_t size) { ((volatile size_t *)block)[-1] = size | IN_USE; }

// What the compiler must not drop.
static void *volatile kept;

int main(int count, char **arguments) {
    (void)count;
    const char *how = arguments[1];
    puts("");
    kept = malloc(SIDE);
    char *block = malloc(SIZE), *second = malloc(SIZE);
    char *behind = malloc(SIDE);
    memset(block, 0, SIZE);
    memset(second, 0, SIZE);
    if (!strcmp(how, "free")) {
        free(second);
        set_size(second, SHRUNK);
        memset(second + SHRUNK - 16, 0, 64);
    } else if (!strcmp(how, "joined")) {
        free(second);
        set_size(block, GROWN);
        memset(block + GROWN - 16, 0, 64);
    } else if (!strcmp(how, "used")) {
        set_size(second, SHRUNK);
    } else {
        free(second);
        set_size(second, SHRUNK);
        memset(second + SHRUNK - 16, 0, 64);
        // The size at the end of the free chunk.
        ((volatile size_t *)behind)[-2] = 48;
    }
    kept = behind;
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
