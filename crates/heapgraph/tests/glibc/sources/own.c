// A program with an allocator of its own, which has a function of mimalloc's name.
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char memory[1 << 20];
static size_t used;

void *malloc(size_t size) {
    void *block = memory + used;
    used += (size + 31) & ~(size_t)15;
    return block;
}
void *mi_malloc(size_t size) { return malloc(size); }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) {
    void *moved = malloc(size);
    if (block) memcpy(moved, block, size);
    return moved;
}
void free(void *block) { (void)block; }

int main(void) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
