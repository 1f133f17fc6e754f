// Works, then ends in the way that the first argument says.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "work.h"

static volatile int *volatile nowhere;

NOINLINE void alone_work(void) { work(0.3); sink++; }
NOINLINE void alone_asleep(void) {
  struct timespec t = {0, 200000000};
  nanosleep(&t, 0);
  sink++;
}
// The first thread has left; the process goes on without it.
static void *alone(void *p) {
  (void)p;
  usleep(20000);
  alone_work();
  alone_asleep();
  exit(9);
}

static void *forever(void *p) { (void)p; for (;;) work(1); return 0; }

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  setvbuf(stdout, 0, _IONBF, 0);
  if (!strcmp(kind, "again")) {
    // Replaces itself under fire, with threads that run meanwhile.
    int left = atoi(argv[2]);
    pthread_t t;
    pthread_create(&t, 0, forever, 0);
    work(0.01);
    if (left == 0) { printf("done\n"); _exit(6); }
    char text[16];
    snprintf(text, sizeof text, "%d", left - 1);
    execl(argv[0], argv[0], "again", text, (char *)0);
    _exit(99);
  }
  double seconds = argc > 2 ? atof(argv[2]) : 0.3;
  if (!strcmp(kind, "closing")) for (int fd = 3; fd < 1024; fd++) close(fd);
  work(seconds);
  if (!strcmp(kind, "closing")) printf("%d\n", dup(1));
  if (!strcmp(kind, "leader")) { pthread_t t; pthread_create(&t, 0, alone, 0); pthread_exit(0); }
  if (!strcmp(kind, "_exit")) _exit(7);
  if (!strcmp(kind, "exit_group")) syscall(SYS_exit_group, 8);
  if (!strcmp(kind, "abort")) abort();
  if (!strcmp(kind, "segfault")) *nowhere = 1;
  if (!strcmp(kind, "thread")) { pthread_t t; pthread_create(&t, 0, forever, 0); work(0.05); exit(9); }
  if (!strcmp(kind, "forever")) forever(0);
  return 0;
}
