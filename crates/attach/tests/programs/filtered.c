// Confined by seccomp. Without an argument, a filter ends the program at calls that copy it. "strict": only read, write and
// _exit. "sleeps": the main thread and others sleep, and a filter ends the program at every call but theirs, restart_syscall
// included. "one": only one thread has the filter of "sleeps", and the main thread has none.
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ENDS_AT(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ALLOWS(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

static void install(struct sock_filter *filter, unsigned short length) {
    struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(3);
}

static void forbid_copies(void) {
    struct sock_filter filter[] = {
        NUMBER,
        ENDS_AT(SYS_clone), ENDS_AT(SYS_clone3), ENDS_AT(SYS_fork), ENDS_AT(SYS_vfork), ENDS_AT(SYS_prctl), ENDS_AT(SYS_wait4),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install(filter, sizeof filter / sizeof *filter);
}

static void allow_sleeps(void) {
    struct sock_filter filter[] = {
        NUMBER,
        ALLOWS(SYS_write), ALLOWS(SYS_clock_nanosleep), ALLOWS(SYS_nanosleep), ALLOWS(SYS_poll), ALLOWS(SYS_futex),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    install(filter, sizeof filter / sizeof *filter);
}

static void *sleeper(void *kind) {
    struct timespec long_time = {600, 0}, short_time = {0, 1000000};
    int word = 0;
    allow_sleeps();
    for (;;) switch ((long)kind) {
    case 0: syscall(SYS_nanosleep, &long_time, 0); break;
    case 1: poll(0, 0, 600000); break;
    case 2: syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &long_time, 0, 0); break;
    // It runs for a while, so that samplers stop it, and then sleeps.
    case 3: for (volatile int work = 0; work < 100000; work++) {} poll(0, 0, 1); break;
    default: clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, 0);
    }
}

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "";
    int sleeps = !strcmp(kind, "sleeps");
    pthread_t thread;
    char byte;
    if (sleeps || !strcmp(kind, "one")) {
        for (long which = sleeps ? 0 : 4; which < 5; which++) pthread_create(&thread, 0, sleeper, (void *)which);
        usleep(50000);
        if (sleeps) allow_sleeps();
    } else if (!strcmp(kind, "strict")) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(3);
    } else {
        forbid_copies();
    }
    if (write(1, "ready\n", 6) != 6) _exit(4);
    if (!strcmp(kind, "strict")) {
        while (read(0, &byte, 1) > 0) {}
        syscall(SYS_exit, 0);
    }
    for (;;) usleep(1000);
}
