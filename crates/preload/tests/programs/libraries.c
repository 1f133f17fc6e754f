// Opens and closes a library without end in one thread while others run in it and out of it.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "work.h"

static double until;
static const char *library;

static void *open_and_close(void *p) {
  long rounds = 0;
  while (now() < until) {
    void *l = dlopen(library, RTLD_NOW);
    if (!l) { fprintf(stderr, "%s\n", dlerror()); exit(1); }
    void (*f)(double, void (*)(double)) = (void (*)(double, void (*)(double)))dlsym(l, "in_library");
    f(0.005, work);
    dlclose(l);
    rounds++;
  }
  *(long *)p = rounds;
  return 0;
}
int main(int argc, char **argv) {
  (void)argc;
  library = argv[1];
  until = now() + atof(argv[2]);
  pthread_t t;
  long rounds = 0;
  pthread_create(&t, 0, open_and_close, &rounds);
  while (now() < until) work(0.01);
  pthread_join(t, 0);
  printf("%ld\n", rounds);
  return 0;
}
