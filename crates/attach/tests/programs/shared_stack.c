// Recurses on a stack in shared memory, with values that depend on the depth, and counts those that are wrong.
//
// Prints "ready", and the number of wrong values when its input ends.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

enum { BYTES = 1 << 18 };

static long wrong;
static volatile int ended;

static unsigned recurse(unsigned depth) {
    volatile unsigned values[8];
    for (unsigned i = 0; i < 8; i++) values[i] = (depth << 8) + i;
    unsigned sum = depth < 2 ? depth : recurse(depth - 1) + recurse(depth - 2);
    for (unsigned i = 0; i < 8; i++) wrong += values[i] != (depth << 8) + i;
    return sum;
}

static void *work(void *unused) {
    while (!ended) recurse(18);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    void *stack = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || pthread_attr_init(&attributes) != 0) return 2;
    if (pthread_attr_setstack(&attributes, stack, BYTES) != 0) return 2;
    if (pthread_create(&thread, &attributes, work, 0) != 0) return 2;
    puts("ready");
    fflush(stdout);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    poll(&input, 1, -1);
    ended = 1;
    pthread_join(thread, 0);
    printf("%ld wrong\n", wrong);
    return 0;
}
