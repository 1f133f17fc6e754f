// Waits for a signal in every call that never resumes after a handler. The handler runs for longer than a tick with all
// signals blocked, so that the profiler's own is pending when it returns. Prints how often a call came back although no
// handler had run; a call that misses its handler waits for ever, and the watchdog ends it.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "work.h"

static volatile sig_atomic_t rang;
static int restart;
static void ring(int n) { (void)n; work(0.0004); rang = 1; }

static void *watchdog(void *p) { (void)p; sleep(20); _exit(42); return 0; }

// One alarm, soon.
static void alarm_soon(long us) {
  struct itimerval t = {{0, 0}, {0, us}};
  setitimer(ITIMER_REAL, &t, 0);
}

int main(int argc, char **argv) {
  const char *kind = argv[1];
  int rounds = argc > 2 ? atoi(argv[2]) : 300, spurious = 0;
  pthread_t w;
  sigset_t all, none, before, alarm;
  sigfillset(&all);
  sigemptyset(&none);
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, &before);
  pthread_create(&w, 0, watchdog, 0);
  restart = argc > 3;
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = ring;
  a.sa_mask = all;
  a.sa_flags = restart ? SA_RESTART : 0;
  sigaction(SIGALRM, &a, 0);
  int e = epoll_create1(0), fd[2];
  if (pipe(fd)) return 1;
  struct pollfd p = {fd[0], POLLIN, 0};
  struct epoll_event v = {EPOLLIN, {0}};
  epoll_ctl(e, EPOLL_CTL_ADD, fd[0], &v);
  for (int i = 0; i < rounds; i++) {
    rang = 0;
    int open = !strcmp(kind, "pause") || !strcmp(kind, "poll");
    // Those without a mask of their own race with the alarm in any case: it comes late enough.
    alarm_soon(open ? 3000 : 100 + i % 700);
    if (open) pthread_sigmask(SIG_UNBLOCK, &alarm, 0);
    while (!rang) {
      int n = -1;
      if (!strcmp(kind, "sigsuspend")) n = sigsuspend(&none);
      else if (!strcmp(kind, "ppoll")) n = ppoll(&p, 1, 0, &none);
      else if (!strcmp(kind, "pselect")) n = pselect(0, 0, 0, 0, 0, &none);
      else if (!strcmp(kind, "epoll_pwait")) n = epoll_pwait(e, &v, 1, -1, &none);
      else if (!strcmp(kind, "pause")) n = pause();
      else if (!strcmp(kind, "poll")) n = poll(&p, 1, -1);
      if (n != -1 || errno != EINTR) return 2;
      if (!rang) spurious++;
    }
    if (open) pthread_sigmask(SIG_BLOCK, &alarm, 0);
  }
  printf("%d\n", spurious);
  return 0;
}
