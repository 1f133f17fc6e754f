// A program that knows nothing of anybody who looks at it. What it does is its first argument.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile uint64_t sink;

static APART void burn(long rounds) {
    uint64_t x = rounds | 1;
    for (long i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + i;
    sink = x;
}

// Known shares: 1 : 2 : 5. What follows each call keeps it from being a jump.
static APART void one(void) { burn(20000); sink++; }
static APART void two(void) { burn(40000); sink++; }
static APART void five(void) { burn(100000); sink++; }
static APART void turn(void) { one(); two(); five(); sink++; }

static APART void known(void) {
    for (;;)
        turn();
}

static APART void deep(int depth) {
    if (depth > 0)
        deep(depth - 1);
    else
        for (;;)
            turn();
    sink++;
}

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0)
        _exit(9);
}

static void *parked(void *unused) {
    for (;;)
        pause();
    return unused;
}

// Runs for a while and ends.
static void *brief(void *name) {
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 150; i++)
        turn();
    return NULL;
}

static void threads(int n) {
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    for (int i = 0; i < n; i++)
        if (pthread_create(&thread, &attr, parked, NULL))
            _exit(8);
}

// Calls that a stop may break: each breach is told.
static void waits(void) {
    int epoll = epoll_create1(0);
    for (;;) {
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, 2) < 0 && errno == EINTR)
            say("interrupted\n");
        burn(300000);
    }
}

static volatile sig_atomic_t got;
static void count(int signal) { (void)signal; got++; }

// Every signal that is asked for arrives, and the number is told.
static void signals(int n) {
    struct sigaction action = {.sa_handler = count};
    sigaction(SIGRTMIN, &action, NULL);
    say("ready\n");
    while (got < n)
        turn();
    say("all\n");
    known();
}

// A wait that only a signal ends, open to it in the call alone: each time EINTR and the handler belong together.
static void wakes(int n) {
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigset_t alarm_only, none;
    sigemptyset(&none);
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm_only, NULL);
    int poll = epoll_create1(0), lost = 0, early = 0;
    say("ready\n");
    burn(400000000);
    for (int i = 0; i < n && lost < 3; i++) {
        struct itimerval soon = {.it_value = {0, 200 + i * 37 % 1900}};
        setitimer(ITIMER_REAL, &soon, NULL);
        int before = got;
        burn(i * 7919 % 900000);
        struct epoll_event event;
        int answer = epoll_pwait(poll, &event, 1, 3000, &none);
        lost += answer == 0;
        early += answer < 0 && errno == EINTR && got == before;
    }
    char line[60];
    snprintf(line, sizeof line, "%d lost, %d early\n", lost, early);
    say(line);
    say("all\n");
    known();
}

// The main thread leaves the others to it: `after` a while, or at once.
static APART void *left(void *unused) {
    struct timespec time = {0, 5000000};
    for (;;) {
        turn();
        turn();
        nanosleep(&time, NULL);
    }
    return unused;
}

static void leaves(int after) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, left, NULL))
        _exit(8);
    struct timespec time = {after / 1000, after % 1000 * 1000000};
    nanosleep(&time, NULL);
    pthread_exit(NULL);
}

static void forks(void) {
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            burn(100000);
            _exit(7);
        }
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
            say("a child came to harm\n");
        burn(500000);
    }
}

static void come_and_go(void) {
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, brief, "late"))
            _exit(8);
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(what, "known"))
        known();
    if (!strcmp(what, "deep"))
        deep(n);
    if (!strcmp(what, "parked")) {
        threads(n);
        say("ready\n");
        known();
    }
    if (!strcmp(what, "waits"))
        waits();
    if (!strcmp(what, "signals"))
        signals(n);
    if (!strcmp(what, "wakes"))
        wakes(n);
    if (!strcmp(what, "leaves"))
        leaves(n);
    if (!strcmp(what, "forks"))
        forks();
    if (!strcmp(what, "threads"))
        come_and_go();
    if (!strcmp(what, "execs")) {
        struct timespec time = {0, 500000000};
        nanosleep(&time, NULL);
        execl(argv[0], argv[0], "deep", "3", (char *)NULL);
    }
    return 3;
}
