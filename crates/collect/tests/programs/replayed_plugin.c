/* A library that replayed.c opens: works for so many ns of CPU time, and says how long it did. */
#include <stdint.h>
#include <time.h>

static int64_t cpu(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

int64_t work(int64_t length) {
    volatile uint64_t sum = PLUGIN;
    int64_t began = cpu(), at = began;
    while (at - began < length) {
        for (int i = 0; i < 3000; i++) sum += (uint64_t)i * i;
        at = cpu();
    }
    return at - began;
}
