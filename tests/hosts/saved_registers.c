// A program whose only pointer to its items is in a register that a called function saves. It prints what its blocks contain.
// The tests of the heap graph's types run it as well.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item {
    long count;
    struct item *next;
    long numbers[8];
};

volatile long zero;

static struct item *__attribute__((noinline)) make(void) {
    struct item *item = calloc(1, sizeof *item);
    item->next = calloc(1, sizeof *item);
    item->numbers[2] = zero + 5;
    printf("%lx item\n%lx item\n", (long)item, (long)item->next);
    return item;
}

// No copy of the pointer stays below the frames that follow.
static void __attribute__((noinline)) clear(void) {
    volatile char bytes[4000];
    memset((void *)bytes, 0, sizeof bytes);
}

// Uses all registers that it must keep for its caller.
static long __attribute__((noinline)) waits(void) {
    long a = zero + 1, b = zero + 2, c = zero + 3, d = zero + 4, e = zero + 5, f = zero + 6;
    for (;;) {
        pause();
        if (zero) return a * b + c * d + e * f;
    }
}

static long __attribute__((noinline)) keeps(void) {
    struct item *kept = make();
    puts("ready");
    fflush(stdout);
    fputs("ready\n", stderr);
    clear();
    long waited = waits();
    return waited + kept->count + kept->numbers[2] + kept->next->count;
}

int main(void) { return (int)keeps(); }
