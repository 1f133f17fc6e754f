// A program that redirects its system calls to SIGSYS (Syscall User Dispatch) while it computes, as Wine does in a program's code.
// `redirected HOW WHAT`. HOW: `prctl` or `syscall`. WHAT it does: `grows` (allocates in between), `computes` until a thread has slept
// for some seconds, or `beside` (the same, and that thread computes as well).
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
enum { ALLOW, BLOCK };

static volatile char selector = ALLOW;
static volatile int redirected, is_over;

// It returns by a call.
static void handler(int signal) { selector = ALLOW; redirected++; }

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}
static void *other(void *computes) {
    double until = now() + 4;
    if (computes) while (now() < until) {}
    else sleep(4);
    is_over = 1;
    return 0;
}
// Each redirected part is much longer than what comes between.
static void grow(void) {
    double until = now() + 1.5;
    for (size_t size = 1 << 20; now() < until;) {
        void *block = malloc(size);
        memset(block, 1, size);
        if (size < 100 << 20) size += size / 8;
        selector = BLOCK;
        for (volatile int i = 0; i < 20000000; i++) {}
        selector = ALLOW;
        free(block);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int grows = !strcmp(argv[2], "grows"), beside = !strcmp(argv[2], "beside");
    signal(SIGSYS, handler);
    pthread_t thread;
    if (!grows && pthread_create(&thread, 0, other, beside ? argv : 0)) return 3;
    long failed = !strcmp(argv[1], "prctl") ? prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector)
                                            : syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector);
    // A kernel without it has nothing to show.
    if (!failed) { printf("ready\n"); fflush(stdout); }
    else { printf("not supported\n"); return 0; }
    if (grows) grow();
    else {
        selector = BLOCK;
        while (!is_over) {}
        selector = ALLOW;
        pthread_join(thread, 0);
    }
    printf("redirected %d\n", redirected);
    return 0;
}
