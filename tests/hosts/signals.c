/* Programs that use signals themselves, in the ways that get into a profiler's way. */
#define _GNU_SOURCE
#include "work.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

WORKER(handler_owner_work)
WORKER(blocking_work)
WORKER(open_work)
WORKER(timer_work)

static volatile sig_atomic_t handled, strange;

static void on_urgent(int signal, siginfo_t *info, void *context)
{
    if (signal != SIGURG || info->si_code != SI_TKILL || info->si_pid != getpid() || !context)
        strange++;
    handled++;
}

/* Its own handler for SIGURG, which must see its own signals, all of them, and no others. */
static int own_handler(void)
{
    struct sigaction mine, old, back;
    memset(&mine, 0, sizeof mine);
    mine.sa_sigaction = on_urgent;
    mine.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGURG, 0, &old);
    sigaction(SIGURG, &mine, 0);
    sigaction(SIGURG, 0, &back);
    int sent = 0;
    for (; sent < 400; sent++) {
        raise(SIGURG);
        handler_owner_work(0.001);
    }
    handler_owner_work(0.2);
    printf("first %s, then %s, missed %d, strange %d\n", old.sa_handler == SIG_DFL ? "default" : "taken",
           back.sa_sigaction == on_urgent ? "mine" : "taken", sent - (int)handled, (int)strange);
    return 0;
}

static int by_system_call, as_asked;

static void *blocks_all(void *nothing)
{
    sigset_t all, now_blocked;
    sigfillset(&all);
    if (by_system_call)
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, 0, 8);
    else
        pthread_sigmask(SIG_BLOCK, &all, 0);
    blocking_work(0.6);
    pthread_sigmask(SIG_BLOCK, 0, &now_blocked);
    as_asked = sigismember(&now_blocked, SIGTERM) && sigismember(&now_blocked, SIGUSR1);
    return nothing;
}

/* A thread that blocks all signals beside one that does not. */
static int blocked(int raw)
{
    pthread_t thread;
    by_system_call = raw;
    pthread_create(&thread, 0, blocks_all, 0);
    open_work(0.6);
    pthread_join(thread, 0);
    printf("both done, %s\n", as_asked ? "blocked as asked" : "not blocked");
    return 0;
}

static volatile sig_atomic_t alarms;

static void on_alarm(int signal)
{
    (void)signal;
    int kept = errno;
    alarms++;
    errno = kept;
}

/* A timer of its own, and sleep that must only be broken by it. */
static int timers(void)
{
    struct itimerval every = {{0, 2000}, {0, 2000}};
    struct sigaction mine;
    memset(&mine, 0, sizeof mine);
    mine.sa_handler = on_alarm;
    sigaction(SIGALRM, &mine, 0);
    setitimer(ITIMER_REAL, &every, 0);
    int broken = 0;
    double give_up = seconds_of(CLOCK_MONOTONIC) + 20;
    while (broken < 150 && seconds_of(CLOCK_MONOTONIC) < give_up) {
        struct timespec long_sleep = {10, 0};
        int before = alarms;
        if (nanosleep(&long_sleep, 0) && errno == EINTR && alarms > before)
            broken++;
        timer_work(0.001);
    }
    printf("%s\n", broken == 150 && broken <= alarms ? "timer and sleep agree" : "they do not agree");
    return 0;
}

static void on_user(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
    handled++;
    timer_work(0.002);
}

/* A handler on an alternate stack of 8 KiB that runs while samples are taken. */
static void *small_alternate(void *nothing)
{
    static char memory[3][8192 + 64];
    static int next;
    char *place = memory[next++];
    memset(place, 0x5a, sizeof memory[0]);
    stack_t stack = {.ss_sp = place + 64, .ss_size = 8192};
    sigaltstack(&stack, 0);
    struct sigaction mine;
    memset(&mine, 0, sizeof mine);
    mine.sa_sigaction = on_user;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGUSR2, &mine, 0);
    for (int i = 0; i < 300; i++)
        raise(SIGUSR2);
    for (int i = 0; i < 64; i++)
        if (place[i] != 0x5a)
            strange++;
    return nothing;
}

static int alternate(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, small_alternate, 0);
    pthread_join(thread, 0);
    printf("%s, %d bytes spoilt\n", handled == 300 ? "handled" : "not handled", (int)strange);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "own"))
        return own_handler();
    if (!strcmp(what, "blocked"))
        return blocked(0);
    if (!strcmp(what, "blocked-raw"))
        return blocked(1);
    if (!strcmp(what, "timers"))
        return timers();
    if (!strcmp(what, "alternate"))
        return alternate();
    return 2;
}
