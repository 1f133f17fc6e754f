/* What these programs share: the time, and work under a name of its own that takes so many seconds. */
#ifndef WORK_H
#define WORK_H
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
__attribute__((unused)) NOINLINE void work(double seconds) {
  double until = now() + seconds;
  while (now() < until)
    for (int i = 0; i < 1000; i++) sink = sink * 6364136223846793005ul + 1;
}
#endif
