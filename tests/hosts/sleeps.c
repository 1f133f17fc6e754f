// A program that sleeps for 10 ms in one function and for 2 ms in another one, in turn. It prints how long it slept in each, and in
// those sleeps that ended late, ns.
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

__attribute__((noinline)) static void longer(void) {
    struct timespec time = {0, 10000000};
    nanosleep(&time, NULL);
    __asm__ volatile("");
}

__attribute__((noinline)) static void shorter(void) {
    poll(NULL, 0, 2);
    __asm__ volatile("");
}

int main(void) {
    uint64_t in_longer = 0, in_shorter = 0, late = 0, end = now() + 4000000000;
    while (now() < end) {
        uint64_t first = now();
        longer();
        uint64_t second = now();
        shorter();
        uint64_t third = now();
        in_longer += second - first;
        in_shorter += third - second;
        if (second - first > 11200000) late += second - first;
        if (third - second > 2700000) late += third - second;
    }
    printf("%llu %llu %llu\n", (unsigned long long)in_longer, (unsigned long long)in_shorter, (unsigned long long)late);
    return 0;
}
