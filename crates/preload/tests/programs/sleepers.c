// Threads that loop over every kind of sleep with a time-out and count what came back interrupted.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "work.h"

static double until;
static long interrupted[8];

static struct timespec in_ms(clockid_t clock, long ms) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += ms * 1000000;
  if (t.tv_nsec >= 1000000000) { t.tv_nsec -= 1000000000; t.tv_sec++; }
  return t;
}
static void note(int kind, int failed) {
  if (failed && errno == EINTR) interrupted[kind]++;
}
NOINLINE void in_poll(void) {
  int fd[2];
  if (pipe(fd)) return;
  struct pollfd p = {fd[0], POLLIN, 0};
  while (now() < until) note(0, poll(&p, 1, 3) < 0);
  close(fd[0]);
  close(fd[1]);
}
NOINLINE void in_epoll(void) {
  int e = epoll_create1(0);
  struct epoll_event v;
  while (now() < until) note(1, epoll_wait(e, &v, 1, 3) < 0);
  close(e);
}
NOINLINE void in_nanosleep(void) {
  struct timespec t = {0, 3000000};
  while (now() < until) note(2, nanosleep(&t, 0) < 0);
  sink++;
}
NOINLINE void in_socket(void) {
  int s[2];
  char c;
  struct timeval t = {0, 4000};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, s)) return;
  setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  while (now() < until) note(3, recv(s[0], &c, 1, 0) < 0);
  close(s[0]);
  close(s[1]);
}
NOINLINE void in_select(void) {
  while (now() < until) {
    struct timeval t = {0, 3000};
    note(4, select(0, 0, 0, 0, &t) < 0);
  }
  sink++;
}
NOINLINE void in_condition(void) {
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&m);
  while (now() < until) {
    struct timespec t = in_ms(CLOCK_REALTIME, 3);
    if (pthread_cond_timedwait(&c, &m, &t) != ETIMEDOUT) interrupted[5]++;
  }
  pthread_mutex_unlock(&m);
}
NOINLINE void in_semaphore(void) {
  sem_t s;
  sem_init(&s, 0, 0);
  while (now() < until) {
    struct timespec t = in_ms(CLOCK_REALTIME, 3);
    note(6, sem_timedwait(&s, &t) < 0);
  }
  sem_destroy(&s);
}
NOINLINE void in_usleep(void) {
  while (now() < until) note(7, usleep(3000) < 0);
  sink++;
}

// Between two short sleeps it runs for about as long, so that signals often meet it going to sleep.
NOINLINE void racing(void) {
  long count = 0;
  while (now() < until) {
    struct timespec t = {0, 20000};
    struct timeval v = {0, 20};
    for (int i = 0; i < 2000 + (int)(sink % 20000); i++) sink = sink * 6364136223846793005ul + 1;
    note(2, nanosleep(&t, 0) < 0);
    for (int i = 0; i < 2000 + (int)(sink % 20000); i++) sink = sink * 6364136223846793005ul + 1;
    note(4, select(0, 0, 0, 0, &v) < 0);
    note(0, ppoll(0, 0, &t, 0) < 0);
    count++;
  }
  sink += count;
}
static void *race(void *p) { racing(); return p; }

static void *run(void *p) {
  static void (*const kinds[8])(void) = {in_poll, in_epoll, in_nanosleep, in_socket, in_select, in_condition, in_semaphore, in_usleep};
  static const char *const names[8] = {"poll", "epoll", "nanosleep", "socket", "select", "condition", "semaphore", "usleep"};
  pthread_setname_np(pthread_self(), names[(long)p % 8]);
  kinds[(long)p % 8]();
  return 0;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 96;
  until = now() + (argc > 2 ? atof(argv[2]) : 1.5);
  pthread_t *t = calloc(n, sizeof *t);
  void *(*start)(void *) = argc > 3 ? race : run;
  for (long i = 0; i < n; i++) pthread_create(&t[i], 0, start, (void *)i);
  for (int i = 0; i < n; i++) pthread_join(t[i], 0);
  for (int i = 0; i < 8; i++) printf("%ld ", interrupted[i]);
  printf("\n");
  return 0;
}
