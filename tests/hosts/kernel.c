/* What the kernel grants or refuses by the number of threads, by locked memory, by namespaces and by filters: it must
   grant the same to a program that is recorded. */
#define _GNU_SOURCE
#include "work.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

WORKER(work_before)
WORKER(work_under_strict)
WORKER(work_under_filter)
WORKER(work_in_namespace)

static void said(const char *what, long result)
{
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "granted");
    fflush(stdout);
}

static void new_user(void)
{
    said("unshare of the user namespace", unshare(CLONE_NEWUSER));
    work_in_namespace(0.02);
}

static void set_namespace(void)
{
    int space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    said("setns to the own mount namespace", setns(space, CLONE_NEWNS));
    int both[2];
    if (pipe2(both, O_CLOEXEC))
        return;
    pid_t other = fork();
    if (other == 0) {
        char ready = unshare(CLONE_NEWUSER) == 0;
        if (write(both[1], &ready, 1) == 1)
            pause();
        _exit(0);
    }
    char ready = 0, path[64];
    if (read(both[0], &ready, 1) != 1 || !ready)
        puts("there are no user namespaces");
    snprintf(path, sizeof path, "/proc/%d/ns/user", other);
    int user = open(path, O_RDONLY | O_CLOEXEC);
    said("setns to a child's user namespace", setns(user, CLONE_NEWUSER));
    kill(other, SIGKILL);
    waitpid(other, 0, 0);
}

static void lock_memory(void)
{
    struct rlimit eight = {8 << 20, 8 << 20};
    setrlimit(RLIMIT_MEMLOCK, &eight);
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0}};
    /* Without capabilities the limit holds for root too. */
    syscall(SYS_capset, &head, sets);
    said("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
    void *small = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    said("another 1 MiB", small == MAP_FAILED ? -1 : 0);
    work_before(0.05);
    void *large = mmap(0, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    said("another 8 MiB", large == MAP_FAILED ? -1 : 0);
}

static volatile int leave;

static void *waits(void *nothing)
{
    while (!leave)
        work_before(0.002);
    return nothing;
}

static void all_threads_filtered(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, waits, 0);
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    printf("a filter for all threads: %ld\n", result);
    leave = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
}

/* Only read, write, exit and the return from a handler: anything else kills the thread. */
static void *strict(void *nothing)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
        return nothing;
    /* Not by the clock, whose reading may be a system call. */
    static volatile uint64_t sink;
    for (int i = 0; i < 3000; i++)
        sink += rounds(20000 + i);
    (void)!write(1, "strict thread lives\n", 20);
    syscall(SYS_exit, 0);
    return nothing;
}

static void *filtered(void *nothing)
{
#define MAY(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        MAY(write), MAY(exit), MAY(exit_group), MAY(clock_gettime), MAY(madvise), MAY(futex), MAY(munmap),
        MAY(rt_sigprocmask), MAY(rseq), MAY(set_robust_list),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return nothing;
    work_under_filter(0.2);
    (void)!write(1, "filtered thread lives\n", 22);
    return nothing;
}

static void one_thread(void *(*body)(void *))
{
    pthread_t thread;
    pthread_create(&thread, 0, body, 0);
    work_before(0.05);
    pthread_join(thread, 0);
}

static void one_strict(void) { one_thread(strict); }
static void one_filtered(void) { one_thread(filtered); }

static void new_processes(void)
{
    said("unshare of the process namespace", unshare(CLONE_NEWPID));
    pid_t inner = fork();
    if (inner == 0) {
        printf("its first process is %d, its parent %d\n", getpid(), getppid());
        fflush(stdout);
        work_in_namespace(0.2);
        pid_t next = fork();
        if (next == 0) {
            printf("its second process is %d\n", getpid());
            fflush(stdout);
            work_in_namespace(0.1);
            _exit(4);
        }
        int status = -1;
        waitpid(next, &status, 0);
        _exit(WEXITSTATUS(status) + 1);
    }
    int status = -1;
    waitpid(inner, &status, 0);
    printf("ended with %d\n", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*body)(void); } all[] = {
        {"newuser", new_user}, {"setns", set_namespace}, {"mlockall", lock_memory}, {"tsync", all_threads_filtered},
        {"strict", one_strict}, {"filter", one_filtered}, {"newpid", new_processes},
    };
    work_before(0.05);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (argc > 1 && !strcmp(argv[1], all[i].name)) {
            all[i].body();
            return 0;
        }
    return 2;
}
