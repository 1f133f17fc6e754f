// Opens and closes a library so many times in one thread, while others run in it and out of it.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "work.h"

static atomic_int is_done;
static long rounds;
static const char *library;

static double cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
/* So many seconds of the thread's own CPU clock: each round is as long where others want the CPUs. */
static NOINLINE void work_of_cpu(double seconds) {
  double until = cpu() + seconds;
  while (cpu() < until)
    for (int i = 0; i < 1000; i++) sink = sink * 6364136223846793005ul + 1;
}

static void *open_and_close(void *p) {
  for (long round = 0; round < rounds; round++) {
    void *l = dlopen(library, RTLD_NOW);
    if (!l) { fprintf(stderr, "%s\n", dlerror()); exit(1); }
    void (*f)(double, void (*)(double)) = (void (*)(double, void (*)(double)))dlsym(l, "in_library");
    f(0.005, work_of_cpu);
    dlclose(l);
  }
  is_done = 1;
  return p;
}
int main(int argc, char **argv) {
  (void)argc;
  library = argv[1];
  rounds = atol(argv[2]);
  pthread_t t;
  pthread_create(&t, 0, open_and_close, 0);
  while (!is_done) work(0.01);
  pthread_join(t, 0);
  return 0;
}
