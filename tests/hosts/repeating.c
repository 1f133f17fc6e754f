/* Rounds of two functions whose shares of CPU time are known by the thread's own clock: `first` has SHARE per cent of each round of
   ROUND µs, `second` the rest. Then it sleeps for PAUSE µs. Ends after SECONDS, or never for 0. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

static int64_t now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

#define SPIN_UNTIL(end)                                         \
    while (now(CLOCK_THREAD_CPUTIME_ID) < (end))                \
        for (int i = 0; i < 200; i++) sink += (uint64_t)i * i

static __attribute__((noinline, noipa)) void first(int64_t end) { SPIN_UNTIL(end); sink ^= 1; }
static __attribute__((noinline, noipa)) void second(int64_t end) { SPIN_UNTIL(end); sink ^= 2; }

int main(int count, char **arguments) {
    if (count < 5) return 2;
    int64_t round = atoll(arguments[1]) * 1000, share = round * atoll(arguments[2]) / 100;
    struct timespec pause = {0, atol(arguments[3]) * 1000};
    int64_t seconds = atoll(arguments[4]), end = now(CLOCK_MONOTONIC) + seconds * 1000000000;
    while (!seconds || now(CLOCK_MONOTONIC) < end) {
        int64_t begin = now(CLOCK_THREAD_CPUTIME_ID);
        first(begin + share);
        second(begin + round);
        if (pause.tv_nsec) nanosleep(&pause, 0);
    }
    return 0;
}
