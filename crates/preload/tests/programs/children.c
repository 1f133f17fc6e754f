// Children of every kind, each with its own work. The first argument says which kind.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "work.h"

extern char **environ;

NOINLINE void parent_work(void) { work(0.2); sink++; }
NOINLINE void child_work(void) { work(0.2); sink++; }
NOINLINE void exec_work(void) { work(0.2); sink++; }

static int status_of(pid_t child) {
  int status;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  if (!strcmp(kind, "work")) { exec_work(); return 5; }
  char *self[] = {argv[0], "work", 0};
  parent_work();
  if (!strcmp(kind, "fork")) {
    pid_t child = fork();
    if (!child) { child_work(); exit(3); }
    printf("%d %d\n", (int)child, status_of(child));
  } else if (!strcmp(kind, "fork-exec")) {
    pid_t child = fork();
    if (!child) { execv(argv[0], self); _exit(99); }
    printf("%d %d\n", (int)child, status_of(child));
  } else if (!strcmp(kind, "vfork")) {
    pid_t child = vfork();
    if (!child) { execv(argv[0], self); _exit(99); }
    printf("%d %d\n", (int)child, status_of(child));
  } else if (!strcmp(kind, "spawn")) {
    pid_t child;
    if (posix_spawn(&child, argv[0], 0, 0, self, environ)) return 1;
    printf("%d %d\n", (int)child, status_of(child));
  } else if (!strcmp(kind, "clone")) {
    // A raw clone runs no handlers of the C library; our signal may even be sent to it by hand.
    pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!child) { kill(getpid(), SIGURG); child_work(); _exit(4); }
    printf("%d %d\n", (int)child, status_of(child));
  } else if (!strcmp(kind, "many")) {
    int bad = 0;
    for (int i = 0; i < 200; i++) {
      pid_t child = fork();
      if (!child) { if (i % 2) _exit(i % 100); execl("/bin/true", "true", (char *)0); _exit(99); }
      bad += status_of(child) != (i % 2 ? i % 100 : 0);
    }
    printf("%d\n", bad);
  } else if (!strcmp(kind, "exec")) {
    execv(argv[0], self);
  }
  return 0;
}
