// Checks all the time what a copy could change for its parent: children, SIGCHLD, the blocked and pending signals, and the
// descriptors. Prints what has changed when its standard input ends. With "subreaper", it adopts orphans; with "parent", it is the
// parent of its copies; with "waits", a thread waits for a child of any kind.
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

// Asks for children of any kind all the time. `is_parent`: the copy is one, but is not to be had.
static volatile int by_all, is_parent;
static void *ask_for_all(void *unused) {
    for (;;) {
        pid_t child = waitpid(-1, 0, WNOHANG | __WALL);
        by_all += is_parent ? child > 0 : child != -1 || errno != ECHILD;
    }
    return unused;
}

// A wait that lasts.
static void *wait_for_all(void *unused) {
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    waitpid(-1, 0, __WALL);
    return unused;
}

int main(int arguments, char **argument) {
    int waits = arguments > 1 && !strcmp(argument[1], "waits");
    signal(SIGCHLD, count);
    is_parent = arguments > 1 && !waits;
    if (is_parent && !strcmp(argument[1], "subreaper")) prctl(PR_SET_CHILD_SUBREAPER, 1);
    static int found;
    // Zeroed: the C library writes only the bytes that have signals.
    static sigset_t before, after;
    pthread_t thread;
    if (waits) {
        if (pthread_create(&thread, 0, wait_for_all, 0)) return 3;
        usleep(100000);
        printf("ready\n");
        fflush(stdout);
        // Until it is killed, its child with it.
        for (char end; read(0, &end, 1) > 0;) {}
        kill(0, SIGTERM);
    }
    if (pthread_create(&thread, 0, wait_for_children, &found)) return 3;
    if (pthread_create(&thread, 0, ask_for_all, 0)) return 3;
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
        pthread_sigmask(SIG_BLOCK, 0, &after);
        masks += memcmp(&before, &after, sizeof before) != 0;
    }
    printf("children %d all %d SIGCHLD %d masks %d sums %d\n", found, by_all, signals, masks, misaligned);
    fflush(stdout);
    _exit(0);
}
