// A thread that forbids itself system calls, works without any, and ends. First argument: how it does so.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "work.h"

static volatile int done;
static int strict;
// By counting: in strict mode even the clock may be a system call.
NOINLINE void confined_work(void) {
  for (long i = 0; i < 300000000; i++) sink = sink * 6364136223846793005ul + 1;
}
NOINLINE void confined_end(void) { done = 1; syscall(SYS_exit, 0); }

static void *confined(void *p) {
  (void)p;
  if (strict) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 0;
  } else {
    // Only the end of the thread; not even the return from a signal handler.
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {4, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 0;
  }
  confined_work();
  confined_end();
  return 0;
}

int main(int argc, char **argv) {
  strict = argc > 1 && !strcmp(argv[1], "strict");
  // Its first thread is on a CPU for a while, so that sampling goes on before the other one begins.
  work(0.05);
  pthread_t t;
  pthread_create(&t, 0, confined, 0);
  double until = now() + 20;
  while (!done && now() < until) usleep(1000);
  usleep(20000);
  printf("%d\n", done);
  return 0;
}
