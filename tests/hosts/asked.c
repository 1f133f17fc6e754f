// Programs that a stray SIGUSR1 would harm. `asked WHAT`: `waits` blocks the signal and waits for it, `confined` is killed if it
// returns from a handler, `plain` only computes. Each lives until a file `stop` exists, and says what it has met.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int goes_on(void) { return access("stop", F_OK) != 0; }

__attribute__((noinline)) static void compute(void) {
    for (volatile int i = 0; i < 1000000; i++) {
    }
}

static int confine(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "plain";
    int got = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (!strcmp(what, "waits") && sigprocmask(SIG_BLOCK, &set, NULL)) return 1;
    if (!strcmp(what, "confined") && confine()) return 1;
    FILE *ready = fopen("ready", "w");
    if (!ready) return 1;
    fprintf(ready, "%d\n", getpid());
    fclose(ready);
    while (goes_on()) {
        compute();
        struct timespec moment = {0, 2000000};
        if (!strcmp(what, "waits")) got += sigtimedwait(&set, NULL, &moment) == SIGUSR1;
    }
    printf("%s: %d signals\n", what, got);
    return 0;
}
