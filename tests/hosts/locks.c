// Threads that wait for locks, each named after how it waits. Writes `ready` when all of them wait.
#define _GNU_SOURCE
#include "asleep.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER, right_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER, lost = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t twice = PTHREAD_MUTEX_INITIALIZER, free_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inherits, shared;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both, held;
static pthread_t keeper_thread;
// A lock of the program's own that looks like one of glibc: taken, with the id of a thread where the owner is.
static struct { int word, count, owner, users, kind; } own = {2, 0, 0, 1, 0};
static int file;

static void *left(void *unused) {
    pthread_mutex_lock(&left_lock);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&right_lock);
    return unused;
}
static void *right(void *unused) {
    pthread_mutex_lock(&right_lock);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&left_lock);
    return unused;
}
static void *keeper(void *unused) {
    pthread_mutex_lock(&kept);
    pthread_mutex_lock(&inherits);
    pthread_mutex_lock(&shared);
    pthread_rwlock_wrlock(&written);
    own.owner = syscall(SYS_gettid);
    pthread_barrier_wait(&held);
    for (;;) pause();
    return unused;
}
static void *waiter(void *unused) { pthread_mutex_lock(&kept); return unused; }
static void *timed(void *unused) {
    struct timespec end = {time(0) + 1000, 0};
    pthread_mutex_timedlock(&kept, &end);
    return unused;
}
static void *pi(void *unused) { pthread_mutex_lock(&inherits); return unused; }
static void *across(void *unused) { pthread_mutex_lock(&shared); return unused; }
static void *reader(void *unused) { pthread_rwlock_rdlock(&written); return unused; }
static void *loser(void *unused) { pthread_mutex_lock(&lost); return unused; }
static void *after(void *unused) { pthread_mutex_lock(&lost); return unused; }
static void *itself(void *unused) {
    pthread_mutex_lock(&twice);
    pthread_mutex_lock(&twice);
    return unused;
}
static void *condition(void *unused) {
    pthread_mutex_lock(&free_lock);
    for (;;) pthread_cond_wait(&never, &free_lock);
    return unused;
}
static void *futex(void *unused) {
    for (;;) syscall(SYS_futex, &own.word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
    return unused;
}
static void *flocked(void *unused) { flock(file, LOCK_EX); return unused; }
static void *joins(void *unused) { pthread_join(keeper_thread, 0); return unused; }

static pthread_t start(const char *name, void *(*run)(void *)) {
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_setname_np(thread, name);
    return thread;
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared, &attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_PRIVATE);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inherits, &attributes);
    pthread_barrier_init(&both, 0, 2);
    pthread_barrier_init(&held, 0, 2);
    int told[2];
    if (pipe(told)) return 1;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int own_file = open("locked", O_RDWR | O_CREAT, 0600);
        flock(own_file, LOCK_EX);
        if (write(told[1], "x", 1) != 1) return 1;
        for (;;) pause();
    }
    char byte;
    if (read(told[0], &byte, 1) != 1) return 1;
    file = open("locked", O_RDWR);
    keeper_thread = start("keeper", keeper);
    pthread_barrier_wait(&held);
    pthread_join(start("loser", loser), 0);
    start("left", left);
    start("right", right);
    start("waiter", waiter);
    start("timed", timed);
    start("pi", pi);
    start("across", across);
    start("reader", reader);
    start("after", after);
    start("itself", itself);
    start("condition", condition);
    start("futex", futex);
    start("flocked", flocked);
    start("joins", joins);
    until_all_sleep();
    FILE *ready = fopen("ready", "w");
    fprintf(ready, "%d %d\n", getpid(), child);
    fclose(ready);
    for (;;) pause();
}
