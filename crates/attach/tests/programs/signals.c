// A thread that blocks all signals, computes, and waits for any of them; one that unblocks them while it waits; one that computes. Says
// how many signals came, and the longest time in which the last one did not run, ms.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile int over;
static volatile unsigned long sum;
static long came, gap;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
static void compute(long micros) {
    for (long end = now() + micros; now() < end;) sum++;
}
static void block(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
}
static void *waits(void *nothing) {
    (void)nothing;
    sigset_t all;
    sigfillset(&all);
    block();
    for (struct timespec time = {0, 1000000}; !over; compute(300)) came += sigtimedwait(&all, NULL, &time) > 0;
    return NULL;
}
static void *polls(void *nothing) {
    (void)nothing;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    block();
    for (struct timespec time = {0, 2000000}, no = {0, 0}; !over; compute(300)) {
        ppoll(NULL, 0, &time, &none);
        came += sigtimedwait(&all, NULL, &no) > 0;
    }
    return NULL;
}
static void *computes(void *nothing) {
    for (long last = now(), at; !over; last = at) {
        at = now();
        if (at - last > gap) gap = at - last;
        sum++;
    }
    return nothing;
}
int main(int count, char **arguments) {
    (void)arguments;
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, waits, NULL);
    pthread_create(&threads[1], NULL, polls, NULL);
    pthread_create(&threads[2], NULL, computes, NULL);
    puts("ready");
    fflush(stdout);
    // With an argument, this thread blocks all signals as well, and computes.
    if (count > 1) block();
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, count > 1 ? 0 : -1) == 0) compute(1000);
    over = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("signals %ld gap %ld\n", came, gap / 1000);
    return 0;
}
