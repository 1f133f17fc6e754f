/* Fibres on stacks of 4 KiB between pages that nobody may touch: there is no room for a guest on them. */
#define _GNU_SOURCE
#include "work.h"
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#define FIBRES 32
#define PAGE 4096

static ucontext_t fibres[FIBRES], home;
static int switches;
static volatile uint64_t sink;

/* Without the C library, which needs more room than there is in a signal's frame beside it. */
__attribute__((noinline)) static void small_fibre_work(void)
{
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 60000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    sink += x;
}

static void fibre(int mine)
{
    for (;;) {
        small_fibre_work();
        switches++;
        swapcontext(&fibres[mine], mine + 1 == FIBRES ? &home : &fibres[mine + 1]);
    }
}

int main(void)
{
    char *all = mmap(0, (2 * FIBRES + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < FIBRES; i++) {
        char *stack = all + (2 * i + 1) * PAGE;
        if (all == MAP_FAILED || mprotect(stack, PAGE, PROT_READ | PROT_WRITE))
            return 2;
        getcontext(&fibres[i]);
        fibres[i].uc_stack.ss_sp = stack;
        fibres[i].uc_stack.ss_size = PAGE;
        makecontext(&fibres[i], (void (*)(void))fibre, 1, i);
    }
    for (int lap = 0; lap < 200; lap++)
        swapcontext(&home, &fibres[0]);
    printf("%d switches\n", switches);
    return 0;
}
