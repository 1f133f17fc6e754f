// A program that confines itself by seccomp, and is killed by any system call that is not its own.
// `filtered HOW SCOPE WHAT`. HOW: `prctl`, `syscall`, `raw` (by the instruction), or `start` (executes itself confined). SCOPE: `one`, `all` (all threads) or `strict`.
// WHAT it does then: `end` (nothing), `allocate`, `threads`, `fork`.
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int confined, other_ended;
static void *volatile kept;

static long raw(long number, long a, long b, long c, long d, long e) {
    long answer;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return answer;
}

static void say(const char *text) { (void)!write(1, text, strlen(text)); }

// Stacks of many depths, and sizes that a table has not seen.
__attribute__((noinline)) static void deep(int depth, size_t size) {
    if (depth > 0) deep(depth - 1, size);
    else { kept = malloc(size); free(kept); }
    __asm__ volatile("");
}
static void allocate(int rounds) {
    for (int i = 0; i < rounds; i++) deep(i % 40, 16 + i * 7 % 5000);
}
// All the memory that is needed later, so that the allocator asks for none.
static void warm_up(void) {
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 1 << 20);
    for (int i = 0; i < 4; i++) allocate(1);
    free(malloc(100000));
}
static void *other(void *nothing) {
    warm_up();
    allocate(50);
    other_ended = 1;
    while (!confined) allocate(1);
    allocate(200);
    other_ended = 2;
    for (;;) {}
    return nothing;
}
static void *late(void *nothing) { allocate(1); return nothing; }

#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(write), ALLOW(exit), ALLOW(exit_group),
    // What the C library needs for threads and children.
    ALLOW(clone), ALLOW(clone3), ALLOW(mmap), ALLOW(munmap), ALLOW(mprotect), ALLOW(madvise), ALLOW(set_robust_list),
    ALLOW(rseq), ALLOW(rt_sigaction), ALLOW(sched_getaffinity), ALLOW(rt_sigprocmask), ALLOW(futex), ALLOW(wait4),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
// The same without the calls for threads and children.
static struct sock_filter narrow[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(write), ALLOW(exit), ALLOW(exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

// What the loader and this program need, and no more.
static struct sock_filter at_start[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(execve), ALLOW(brk), ALLOW(arch_prctl), ALLOW(access), ALLOW(openat), ALLOW(newfstatat), ALLOW(fstat), ALLOW(mmap),
    ALLOW(close), ALLOW(read), ALLOW(pread64), ALLOW(mprotect), ALLOW(munmap), ALLOW(set_tid_address),
    ALLOW(set_robust_list), ALLOW(rseq), ALLOW(prlimit64), ALLOW(getrandom), ALLOW(write), ALLOW(exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

int main(int argc, char **argv) {
    if (argc == 2) { say("confined\nends\n"); return 0; }
    if (argc != 4) return 2;
    const char *how = argv[1], *scope = argv[2], *what = argv[3];
    setvbuf(stdout, 0, _IONBF, 0);
    warm_up();
    int all = !strcmp(scope, "all"), strict = !strcmp(scope, "strict");
    if (all) {
        pthread_t thread;
        if (pthread_create(&thread, 0, other, 0)) return 3;
        while (!other_ended) {}
    }
    int wide = !strcmp(what, "threads") || !strcmp(what, "fork");
    struct sock_fprog program = {wide ? sizeof filter / 8 : sizeof narrow / 8, wide ? filter : narrow};
    long flags = all ? SECCOMP_FILTER_FLAG_TSYNC : 0, failed;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 4;
    if (!strcmp(how, "start")) {
        struct sock_fprog narrow_start = {sizeof at_start / 8, at_start};
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &narrow_start)) return 5;
        char *arguments[] = {argv[0], "confined", 0};
        execv(argv[0], arguments);
        return 8;
    }
    if (!strcmp(how, "prctl"))
        failed = strict ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0)
                        : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    else if (!strcmp(how, "syscall"))
        failed = strict ? syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0)
                        : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    else
        failed = strict ? raw(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0, 0, 0)
                        : raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, (long)&program, 0, 0);
    if (failed) return 5;
    confined = 1;
    say("confined\n");
    if (all) while (other_ended != 2) {}
    if (!strcmp(what, "allocate")) allocate(2000);
    if (!strcmp(what, "threads"))
        for (int i = 0; i < 10; i++) {
            pthread_t thread;
            if (pthread_create(&thread, 0, late, 0) || pthread_join(thread, 0)) return 6;
        }
    if (!strcmp(what, "fork")) {
        pid_t child = fork();
        if (!child) { allocate(100); say("child\n"); exit(0); }
        int status;
        if (waitpid(child, &status, 0) != child || status) return 7;
    }
    say("ends\n");
    // Strict mode has no exit_group, which the C library's exit would call; its handlers run all the same.
    if (strict) { fflush(0); raw(SYS_exit, 0, 0, 0, 0, 0); }
    return 0;
}
