// Odd stacks: small ones, alternate ones, fibres, very deep recursion. First argument: which.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "work.h"

NOINLINE void small_work(void) { work(0.4); sink++; }
static void *small(void *p) { (void)p; small_work(); return 0; }

static char alternate[8192];
static volatile int handled;
static int long_handlers;
NOINLINE void cpu_work(double seconds) {
  struct timespec t, u;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  do {
    for (int i = 0; i < 1000; i++) sink = sink * 6364136223846793005ul + 1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &u);
  } while (u.tv_sec - t.tv_sec + (u.tv_nsec - t.tv_nsec) * 1e-9 < seconds);
}
NOINLINE void in_handler(void) {
  if (long_handlers) cpu_work(0.004); else work(0.001);
  sink++;
}
static void on_alternate(int n) {
  (void)n;
  // Whatever signal the profiler uses, nobody but the program itself blocks any here.
  sigset_t now, none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, 0, &now);
  for (int i = 1; i < 32; i++) if (i != SIGUSR1 && sigismember(&now, i)) _exit(9);
  sigprocmask(SIG_SETMASK, &now, &none);
  in_handler();
  handled++;
}

static ucontext_t main_context, fibres[4];
static double fibre_end;
NOINLINE void fibre_work(int i) { work(0.003); sink += i; }
static void fibre(int i) {
  while (now() < fibre_end) { fibre_work(i); swapcontext(&fibres[i], &fibres[(i + 1) % 4]); }
  setcontext(&main_context);
}

NOINLINE long recurse(long n) {
  if (n == 0) { work(0.5); return 1; }
  return recurse(n - 1) + sink % 3;
}
static void *recursive(void *p) { sink += recurse((long)p); return 0; }

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  if (!strcmp(kind, "small")) {
    pthread_attr_t a;
    pthread_t t[4];
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 64 << 10);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], &a, small, 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  } else if (!strcmp(kind, "alternate") || !strcmp(kind, "tiny-alternate") || !strcmp(kind, "long-handlers")) {
    stack_t s = {.ss_sp = alternate, .ss_size = strcmp(kind, "tiny-alternate") ? 8192 : 2048};
    if (sigaltstack(&s, 0)) { printf("refused\n"); return 0; }
    struct sigaction a, b;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_alternate;
    a.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &a, 0);
    sigaction(SIGUSR1, 0, &b);
    if (sigismember(&b.sa_mask, SIGURG)) return 1;
    if (!strcmp(kind, "long-handlers")) {
      long_handlers = 1;
      for (int i = 0; i < 150; i++) raise(SIGUSR1);
    } else if (s.ss_size == 8192) for (int i = 0; i < 200; i++) { raise(SIGUSR1); work(0.001); }
    else work(0.3);
  } else if (!strcmp(kind, "fibres")) {
    fibre_end = now() + 0.5;
    for (int i = 0; i < 4; i++) {
      getcontext(&fibres[i]);
      fibres[i].uc_stack.ss_sp = mmap(0, 32 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      fibres[i].uc_stack.ss_size = 32 << 10;
      makecontext(&fibres[i], (void (*)(void))fibre, 1, i);
    }
    swapcontext(&main_context, &fibres[0]);
  } else if (!strcmp(kind, "recursion")) {
    pthread_attr_t a;
    pthread_t t;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 64 << 20);
    pthread_create(&t, &a, recursive, (void *)100000);
    pthread_join(t, 0);
  }
  printf("%d\n", handled);
  return 0;
}
