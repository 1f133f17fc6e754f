// Many parked threads and one that works. Prints, for the time after the first second: CPU ns of the working
// thread, CPU ns of the process, voluntary context switches of the parked threads, and resident KiB.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int *tids;

static long cpu(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000l + t.tv_nsec;
}
static void *park(void *p) {
  tids[(long)p] = syscall(SYS_gettid);
  pthread_mutex_lock(&lock);
  for (;;) pthread_cond_wait(&never, &lock);
  return 0;
}
static long switches(int n) {
  long sum = 0;
  for (int i = 0; i < n; i++) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", tids[i]);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
      long v;
      if (sscanf(line, "voluntary_ctxt_switches: %ld", &v) == 1) sum += v;
    }
    if (f) fclose(f);
  }
  return sum;
}
static long resident(void) {
  char line[256];
  long kib = 0, v;
  FILE *f = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, f)) if (sscanf(line, "VmRSS: %ld", &v) == 1) kib = v;
  fclose(f);
  return kib;
}
static void work(long rounds) {
  for (long i = 0; i < rounds; i++)
    for (int k = 0; k < 1000; k++) sink = sink * 6364136223846793005ul + 1;
}
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  long rounds = atol(argv[2]);
  tids = calloc(n + 1, sizeof *tids);
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, 64 << 10);
  for (long i = 0; i < n; i++) { pthread_t t; if (pthread_create(&t, &a, park, (void *)i)) return 1; }
  sleep(1);
  (void)argc;
  long before = switches(n), own = cpu(CLOCK_THREAD_CPUTIME_ID), all = cpu(CLOCK_PROCESS_CPUTIME_ID);
  work(rounds);
  long own_used = cpu(CLOCK_THREAD_CPUTIME_ID) - own, all_used = cpu(CLOCK_PROCESS_CPUTIME_ID) - all;
  printf("%ld %ld %ld %ld\n", own_used, all_used, switches(n) - before, resident());
  return 0;
}
