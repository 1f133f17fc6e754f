// Checks all the time what a copy could change for its parent: children, SIGCHLD, the blocked and pending signals, and the
// descriptors. Prints what has changed when its standard input ends. With an argument, it adopts orphans.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int signals;
static void count(int signal) { signals += signal == SIGCHLD; }

static void *wait_for_children(void *found) {
    for (;;) {
        int status;
        if (waitpid(-1, &status, 0) >= 0 || errno != ECHILD) ++*(volatile int *)found;
        usleep(100);
    }
    return 0;
}

int main(int arguments, char **argument) {
    (void)argument;
    signal(SIGCHLD, count);
    if (arguments > 1) prctl(PR_SET_CHILD_SUBREAPER, 1);
    static int found, by_all;
    // Zeroed: the C library writes only the bytes that have signals.
    static sigset_t before, after;
    pthread_t thread;
    if (pthread_create(&thread, 0, wait_for_children, &found)) return 3;
    pthread_sigmask(SIG_BLOCK, 0, &before);
    printf("ready\n");
    fflush(stdout);
    int masks = 0, misaligned = 0;
    for (;;) {
        struct pollfd input = {0, POLLIN, 0};
        volatile double sum = 0;
        for (int i = 0; i < 1000; i++) sum += i * 0.5;
        misaligned += sum != 249750.0;
        if (poll(&input, 1, 0) > 0) break;
        if (waitpid(-1, 0, WNOHANG) != -1 || errno != ECHILD) found++;
        if (arguments == 1 && (waitpid(-1, 0, WNOHANG | __WALL) != -1 || errno != ECHILD)) by_all++;
        pthread_sigmask(SIG_BLOCK, 0, &after);
        masks += memcmp(&before, &after, sizeof before) != 0;
    }
    printf("children %d all %d SIGCHLD %d masks %d sums %d\n", found, by_all, signals, masks, misaligned);
    fflush(stdout);
    _exit(0);
}
