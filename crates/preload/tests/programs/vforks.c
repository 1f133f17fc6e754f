// Children of vfork that do to themselves what must not happen to their parent, which then goes on. First argument: what.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"

static volatile sig_atomic_t urgent, asked;
static void on_urgent(int n) { (void)n; urgent++; }
static void on_ask(int n) { (void)n; asked++; }
NOINLINE void before_work(void) { work(0.15); sink++; }
NOINLINE void after_work(void) { work(0.3); sink++; }

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  int own = !strcmp(kind, "handlers");
  struct sigaction a, b;
  memset(&a, 0, sizeof a);
  a.sa_handler = on_urgent;
  a.sa_flags = SA_RESTART;
  if (own) sigaction(SIGURG, &a, 0);
  before_work();
  volatile int wrong = 0;
  for (int i = 0; i < 20; i++) {
    pid_t child = vfork();
    if (!child) {
      if (!strcmp(kind, "exit")) exit(4);
      if (!strcmp(kind, "peek")) { signal(SIGUSR1, on_ask); raise(SIGUSR1); _exit(asked == i + 1 ? 4 : 5); }
      sigset_t all;
      sigfillset(&all);
      sigprocmask(SIG_SETMASK, &all, 0);
      stack_t s = {.ss_flags = SS_DISABLE};
      sigaltstack(&s, 0);
      if (own) {
        sigaction(SIGURG, 0, &b);
        if (b.sa_handler != on_urgent) _exit(6);
      }
      for (int n = 1; n < 65; n++) signal(n, SIG_DFL);
      if (signal(SIGURG, SIG_DFL) != SIG_DFL || signal(SIGUSR1, SIG_IGN) != SIG_DFL) _exit(7);
      _exit(4);
    }
    int status;
    waitpid(child, &status, 0);
    wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 4;
  }
  after_work();
  if (own) {
    raise(SIGURG);
    sigaction(SIGURG, 0, &b);
    wrong += urgent != 1 || b.sa_handler != on_urgent || !(b.sa_flags & SA_RESTART);
  }
  sigset_t now;
  sigprocmask(SIG_BLOCK, 0, &now);
  wrong += sigismember(&now, SIGURG) || sigismember(&now, SIGINT);
  sigaction(SIGUSR1, 0, &b);
  wrong += b.sa_handler != SIG_DFL;
  printf("%d\n", wrong);
  fflush(stdout);
  return 0;
}
