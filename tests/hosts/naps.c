// Two threads with known parts of their time: one sleeps for most of it, one waits for the other. It prints what it slept, in
// nanoseconds, how long it lived, and how long it waited for a CPU by the kernel's account.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

__attribute__((noinline)) static void compute(uint64_t span) {
    uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + span;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
    __asm__ volatile("");
}

__attribute__((noinline)) static void nap(long span) {
    struct timespec time = {0, span};
    nanosleep(&time, NULL);
    __asm__ volatile("");
}

static void *work(void *unused) {
    (void)unused;
    uint64_t began = now(CLOCK_MONOTONIC), slept = 0;
    for (int i = 0; i < 25; i++) {
        uint64_t before = now(CLOCK_MONOTONIC);
        nap(70000000);
        slept += now(CLOCK_MONOTONIC) - before;
        compute(30000000);
    }
    unsigned long long lived = now(CLOCK_MONOTONIC) - began, ran = 0, waited = 0;
    FILE *account = fopen("/proc/thread-self/schedstat", "r");
    if (!account || fscanf(account, "%llu %llu", &ran, &waited) != 2) return NULL;
    printf("%llu %llu %llu\n", (unsigned long long)slept, lived, waited);
    return NULL;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
    pthread_join(thread, NULL);
    return 0;
}
