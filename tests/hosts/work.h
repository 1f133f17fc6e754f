/* Work of a known kind for the hosts: it takes time, gives a number, and no compiler removes it. */
#ifndef WORK_H
#define WORK_H
#include <stdint.h>
#include <time.h>

static inline double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline, unused)) static uint64_t rounds(uint64_t n)
{
    uint64_t x = 88172645463325252u;
    for (uint64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

/* Uses so many seconds of CPU time, however busy the machine is. The caller stays in the stack. */
__attribute__((noinline, unused)) static uint64_t work_for(double seconds)
{
    uint64_t x = 0;
    const clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
    for (double end = seconds_of(clock) + seconds; seconds_of(clock) < end;)
        x += rounds(20000);
    __asm__ volatile("" : "+r"(x));
    return x;
}

/* A function of its own name that works and is not left by a tail call. */
#define WORKER(name)                                   \
    __attribute__((noinline)) void name(double seconds) \
    {                                                  \
        volatile uint64_t sink = work_for(seconds);    \
        (void)sink;                                    \
    }
#endif
