// Busy, sleeping, waiting for a lock, recursive: each thread with a stack that is known. Prints getrusage.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "work.h"

static double seconds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// So long that its callers, which ask for the time and share a variable with another thread, have less than a thousandth.
NOINLINE unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 400000; i++) x = x * 6364136223846793005ul + 1442695040888963407ul;
  return x;
}
NOINLINE void busy_inner(void) { sink += leaf(sink); }
NOINLINE void busy_outer(double until) { while (now() < until) { busy_inner(); } sink++; }
NOINLINE void deep(int n, double until) {
  volatile char pad[24];
  pad[0] = (char)n;
  if (n == 0) busy_outer(until); else deep(n - 1, until);
  sink += pad[0];
}
NOINLINE void sleep_inner(void) { usleep(200000); sink++; }
NOINLINE void sleep_outer(double until) { while (now() < until) sleep_inner(); sink++; }
NOINLINE void wait_for_lock(void) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); sink++; }

static void *busy_thread(void *p) { (void)p; pthread_setname_np(pthread_self(), "busy"); busy_outer(now() + seconds); return 0; }
static void *deep_thread(void *p) { (void)p; pthread_setname_np(pthread_self(), "deep"); deep(200, now() + seconds); return 0; }
static void *sleep_thread(void *p) { (void)p; pthread_setname_np(pthread_self(), "sleeper"); sleep_outer(now() + seconds); return 0; }
static void *lock_thread(void *p) { (void)p; pthread_setname_np(pthread_self(), "waiter"); wait_for_lock(); return 0; }

int main(int argc, char **argv) {
  seconds = argc > 1 ? atof(argv[1]) : 1;
  pthread_t t[4];
  pthread_mutex_lock(&lock);
  pthread_create(&t[0], 0, busy_thread, 0);
  pthread_create(&t[1], 0, deep_thread, 0);
  pthread_create(&t[2], 0, sleep_thread, 0);
  pthread_create(&t[3], 0, lock_thread, 0);
  pthread_join(t[0], 0);
  pthread_mutex_unlock(&lock);
  for (int i = 1; i < 4; i++) pthread_join(t[i], 0);
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  printf("%ld\n", (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec);
  return 0;
}
