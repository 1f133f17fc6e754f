// Threads that come and go, block signals, or have a handler of their own. First argument: which.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "work.h"

static void *brief(void *p) {
  sink++;
  if ((long)p % 3 == 0) pthread_exit((void *)7);
  return (void *)7;
}
NOINLINE void blocked_work(void) { work(0.6); sink++; }
static void *blocking(void *p) {
  // Past the C library.
  unsigned long all = ~0ul;
  (void)p;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, 8);
  blocked_work();
  return 0;
}
NOINLINE void worker_work(void) { work(0.6); sink++; }
static void *asks(void *p) {
  // Its mask is its maker's.
  sigset_t set;
  (void)p;
  pthread_sigmask(SIG_BLOCK, 0, &set);
  return (void *)(long)(sigismember(&set, SIGURG) != 1 || sigismember(&set, SIGTERM) != 1);
}
static void *worker(void *p) {
  // As libraries do with their workers. What they ask for is what they have set.
  sigset_t all, set, before;
  pthread_t t;
  void *r = 0;
  long bad = 0;
  (void)p;
  sigfillset(&all);
  bad += pthread_sigmask(SIG_SETMASK, &all, &before) || sigismember(&before, SIGURG);
  bad += pthread_sigmask(SIG_BLOCK, 0, &set) || sigismember(&set, SIGURG) != 1;
  pthread_create(&t, 0, asks, 0);
  pthread_join(t, &r);
  bad += r != 0;
  bad += pthread_sigmask(SIG_SETMASK, &before, &set) || sigismember(&set, SIGURG) != 1;
  bad += sigprocmask(SIG_SETMASK, &set, &before) || sigismember(&before, SIGURG);
  sigemptyset(&set);
  sigaddset(&set, SIGURG);
  bad += pthread_sigmask(SIG_UNBLOCK, &set, &before) || sigismember(&before, SIGURG) != 1;
  bad += pthread_sigmask(SIG_SETMASK, &all, &before) || sigismember(&before, SIGURG) || !sigismember(&before, SIGTERM);
  worker_work();
  return (void *)bad;
}
static long waited_for;
static void *waiter(void *p) {
  // A thread that waits for all signals and must not meet one that nobody sent.
  sigset_t all;
  int n = 0;
  (void)p;
  sigfillset(&all);
  for (;;) {
    if (sigwait(&all, &n)) return (void *)1;
    work(0.003);
    waited_for++;
    if (n == SIGTERM) return 0;
    if (n != SIGUSR1) return (void *)2;
  }
}
static volatile int seen, seen_code;
static void own_handler(int n) { (void)n; seen++; }
static void own_info(int n, siginfo_t *info, void *context) { (void)n; (void)context; seen++; seen_code = info->si_code; }

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  int bad = 0;
  if (!strcmp(kind, "many")) {
    for (long i = 0; i < 10000; i += 10) {
      pthread_t t[10];
      for (int k = 0; k < 10; k++) bad += pthread_create(&t[k], 0, brief, (void *)(i + k)) != 0;
      for (int k = 0; k < 10; k++) { void *r = 0; pthread_join(t[k], &r); bad += r != (void *)7; }
    }
  } else if (!strcmp(kind, "blocked")) {
    pthread_t t;
    pthread_create(&t, 0, blocking, 0);
    work(0.3);
    pthread_join(t, 0);
  } else if (!strcmp(kind, "workers")) {
    pthread_t t;
    void *r = 0;
    pthread_create(&t, 0, worker, 0);
    pthread_join(t, &r);
    bad += r != 0;
  } else if (!strcmp(kind, "sigwait")) {
    pthread_t t;
    void *r = 0;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, 0);
    pthread_create(&t, 0, waiter, 0);
    for (int i = 0; i < 100; i++) { kill(getpid(), SIGUSR1); work(0.005); }
    kill(getpid(), SIGTERM);
    pthread_join(t, &r);
    bad += r != 0 || waited_for < 10;
  } else if (!strcmp(kind, "handler")) {
    struct sigaction a, b;
    memset(&a, 0, sizeof a);
    bad += sigaction(SIGURG, 0, &b) != 0 || b.sa_handler != SIG_DFL;
    a.sa_sigaction = own_info;
    a.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaddset(&a.sa_mask, SIGUSR1);
    bad += sigaction(SIGURG, &a, 0) != 0;
    bad += sigaction(SIGURG, 0, &b) != 0 || b.sa_sigaction != own_info || b.sa_flags != (SA_SIGINFO | SA_RESTART);
    bad += !sigismember(&b.sa_mask, SIGUSR1) || sigismember(&b.sa_mask, SIGUSR2);
    int sent = 0;
    for (int i = 0; i < 100; i++) { work(0.002); kill(getpid(), SIGURG); sent++; }
    bad += seen != sent || seen_code != SI_USER;
    bad += signal(SIGURG, own_handler) == SIG_ERR;
    seen = 0;
    raise(SIGURG);
    bad += seen != 1;
    bad += signal(SIGURG, SIG_IGN) != own_handler;
    raise(SIGURG);
    bad += seen != 1 || signal(SIGURG, SIG_DFL) != SIG_IGN;
    work(0.1);
  } else if (!strcmp(kind, "urgent")) {
    // Sent to a thread: the kernel merges it with one that waits already.
    struct sigaction a, b;
    memset(&a, 0, sizeof a);
    a.sa_handler = own_handler;
    a.sa_flags = SA_RESTART;
    bad += sigaction(SIGURG, &a, 0) != 0;
    bad += sigaction(SIGWINCH, 0, &b) != 0 || b.sa_handler != SIG_DFL;
    for (int i = 0; i < 3000; i++) { raise(SIGURG); work(0.0002); }
    bad += seen != 3000;
    // Both at once, the other one as a terminal sends it.
    bad += sigaction(SIGWINCH, &a, 0) != 0;
    bad += sigaction(SIGWINCH, 0, &b) != 0 || b.sa_handler != own_handler;
    for (int i = 0; i < 100; i++) { kill(getpid(), SIGWINCH); raise(SIGURG); work(0.0002); }
    bad += seen != 3200;
  }
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  printf("%d\n", bad);
  return 0;
}
