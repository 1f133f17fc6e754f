// A thread sleeps in each of many system calls. Prints the calls that returned EINTR, or too early, when its standard
// input ends.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static int endless_pipe(void) {
    int ends[2];
    if (pipe(ends)) abort();
    return ends[0];
}

static long call_epoll_wait(void) {
    static int set;
    struct epoll_event event;
    if (!set) set = epoll_create1(0);
    return epoll_wait(set, &event, 1, 600000);
}
static long call_epoll_pwait(void) {
    static int set;
    struct epoll_event event;
    sigset_t mask;
    sigfillset(&mask);
    if (!set) set = epoll_create1(0);
    return epoll_pwait(set, &event, 1, -1, &mask);
}
static long call_semop(void) {
    static int set = -1;
    struct sembuf down = {0, -1, 0};
    if (set < 0) set = semget(IPC_PRIVATE, 1, 0600);
    return semop(set, &down, 1);
}
static long call_sigtimedwait(void) {
    sigset_t mask;
    struct timespec limit = {600, 0};
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    return sigtimedwait(&mask, 0, &limit);
}
static long call_inotify(void) {
    static int file;
    char event[512];
    if (!file) file = inotify_init1(0);
    return read(file, event, sizeof event);
}
static long call_recv(void) {
    static int ends[2];
    char byte;
    if (!ends[0]) {
        struct timeval limit = {600, 0};
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    return recv(ends[0], &byte, 1, 0);
}
static long call_accept(void) {
    static int listener;
    if (!listener) {
        struct sockaddr_un any = {.sun_family = AF_UNIX};
        listener = socket(AF_UNIX, SOCK_STREAM, 0);
        bind(listener, (struct sockaddr *)&any, sizeof any.sun_family);
        listen(listener, 1);
    }
    return accept(listener, 0, 0);
}
static long call_msgrcv(void) {
    static int queue = -1;
    char text[64];
    if (queue < 0) queue = msgget(IPC_PRIVATE, 0600);
    return msgrcv(queue, text, 8, 0, 0);
}
static long call_poll(void) {
    static int end;
    if (!end) end = endless_pipe();
    struct pollfd one = {end, POLLIN, 0};
    return poll(&one, 1, 600000);
}
static long call_ppoll(void) {
    static int end;
    struct timespec limit = {600, 0};
    sigset_t mask;
    sigemptyset(&mask);
    if (!end) end = endless_pipe();
    struct pollfd one = {end, POLLIN, 0};
    return ppoll(&one, 1, &limit, &mask);
}
static long call_select(void) {
    static int end;
    if (!end) end = endless_pipe();
    fd_set set;
    struct timeval limit = {600, 0};
    FD_ZERO(&set);
    FD_SET(end, &set);
    return select(end + 1, &set, 0, 0, &limit);
}
static long call_pselect(void) {
    struct timespec limit = {600, 0};
    sigset_t mask;
    sigemptyset(&mask);
    return pselect(0, 0, 0, 0, &limit, &mask);
}
static long call_pipe_read(void) {
    static int end;
    char byte;
    if (!end) end = endless_pipe();
    return read(end, &byte, 1);
}
static long call_futex(void) {
    static int word;
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
}
static long call_futex_timed(void) {
    static int word;
    struct timespec limit = {600, 0};
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit, 0, 0);
}
static long call_flock(void) {
    static int other;
    if (!other) {
        char name[] = "/tmp/frozen-lock-XXXXXX";
        int holder = mkstemp(name);
        other = open(name, O_RDWR);
        unlink(name);
        flock(holder, LOCK_EX);
    }
    return flock(other, LOCK_EX);
}
static long call_pause(void) { return pause(); }
static long call_sigsuspend(void) {
    sigset_t mask;
    sigemptyset(&mask);
    return sigsuspend(&mask);
}
// A sleep must take as long as asked for.
static long call_nanosleep(void) {
    double start = seconds();
    struct timespec time = {0, 400 * 1000000};
    long result = nanosleep(&time, 0);
    if (result == 0 && seconds() - start < 0.4) {
        errno = EINTR;
        return -1;
    }
    return result;
}
static long call_clock_nanosleep(void) {
    struct timespec time = {600, 0};
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, 0);
    return errno ? -1 : 0;
}

struct kind {
    const char *name;
    long (*call)(void);
    volatile long interrupted, returned;
};
#define KIND(name) {#name, call_##name, 0, 0}
static struct kind kinds[] = {
    KIND(epoll_wait), KIND(epoll_pwait), KIND(semop),  KIND(sigtimedwait), KIND(inotify),   KIND(recv),  KIND(accept),
    KIND(msgrcv),     KIND(poll),        KIND(ppoll),  KIND(select),       KIND(pselect),   KIND(pipe_read), KIND(futex),
    KIND(futex_timed), KIND(flock),      KIND(pause),  KIND(sigsuspend),   KIND(nanosleep), KIND(clock_nanosleep),
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void *run(void *which) {
    struct kind *kind = which;
    for (;;) {
        errno = 0;
        if (kind->call() < 0 && errno == EINTR) kind->interrupted++;
        else kind->returned++;
    }
    return 0;
}

static void nothing(int signal) { (void)signal; }

int main(void) {
    sigset_t mask;
    struct sigaction action = {.sa_handler = nothing};
    sigaction(SIGUSR1, &action, 0);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_BLOCK, &mask, 0);
    for (int i = 0; i < KINDS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, run, &kinds[i])) return 3;
    }
    usleep(200000);
    printf("%d\n", KINDS);
    fflush(stdout);
    char byte;
    ssize_t read_bytes;
    int main_interrupted = 0;
    while ((read_bytes = read(0, &byte, 1)) != 0)
        if (read_bytes < 0) main_interrupted++;
    printf("interrupted:");
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].interrupted || (kinds[i].returned && strcmp(kinds[i].name, "nanosleep")))
            printf(" %s(%ld,%ld)", kinds[i].name, kinds[i].interrupted, kinds[i].returned);
    if (main_interrupted) printf(" main");
    printf("\n");
    fflush(stdout);
    _exit(0);
}
