// Holds a record lock (fcntl(2)) on a file, and executes itself: such locks live on through that.
//
// `locks FILE N`: executes itself N times, at a line of its standard input if that is a pipe, otherwise after a moment of work.
// Prints the lock's state before each, as a child sees it, who does not inherit it: "held" or "lost".
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *compute(void *unused) {
    for (volatile long i = 0;; i++) {}
    return unused;
}

// What another process is told of the lock.
static int is_held(int file) {
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        _exit(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid == getppid());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void work(long microseconds) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < microseconds);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    int left = atoi(arguments[2]), file = count > 3 ? atoi(arguments[3]) : -1;
    if (file < 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        file = open(arguments[1], O_RDWR | O_CREAT, 0600);
        if (file < 0 || fcntl(file, F_SETLK, &lock) != 0) return 3;
    }
    printf("%s\n", is_held(file) ? "held" : "lost");
    fflush(stdout);
    struct stat input;
    if (fstat(0, &input) == 0 && S_ISFIFO(input.st_mode)) {
        // A thread that computes can be copied.
        pthread_t thread;
        if (pthread_create(&thread, 0, compute, 0) != 0) return 3;
        char order;
        if (read(0, &order, 1) != 1) return 0;
    } else {
        work(3000);
    }
    if (left == 0) return 0;
    char next[16], descriptor[16];
    snprintf(next, sizeof next, "%d", left - 1);
    snprintf(descriptor, sizeof descriptor, "%d", file);
    char *const again[] = {arguments[0], arguments[1], next, descriptor, 0};
    execv("/proc/self/exe", again);
    return 4;
}
