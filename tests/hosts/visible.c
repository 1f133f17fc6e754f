/* Prints all that a program can ask the kernel and the C library about itself, and that is the same in each run. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void status(void)
{
    static const char *const wanted[] = {"Name", "Umask", "TracerPid", "Uid", "Gid", "FDSize", "Groups",
        "VmLck", "VmPin", "CoreDumping", "THP_enabled", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
        "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters",
        "Speculation_Store_Bypass", "Cpus_allowed", "Mems_allowed"};
    char line[4096];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
            size_t length = strlen(wanted[i]);
            if (!strncmp(line, wanted[i], length) && line[length] == ':')
                fputs(line, stdout);
        }
    if (file)
        fclose(file);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Descriptors and where they lead; the one of this folder itself is left out. */
static void descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    char *found[64];
    size_t count = 0;
    for (struct dirent *entry; folder && count < 64 && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(folder))
            continue;
        char path[300], target[300];
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        if (asprintf(&found[count], "fd %s -> %s", entry->d_name, target) > 0)
            count++;
    }
    if (folder)
        closedir(folder);
    qsort(found, count, sizeof found[0], by_text);
    for (size_t i = 0; i < count; i++)
        puts(found[i]);
}

/* Mappings in their order. Sizes differ by chance, and so does how many nameless ones without code there are: the
   kernel joins neighbours. */
static void mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[4096];
    while (file && fgets(line, sizeof line, file)) {
        char rights[8] = "", path[4000] = "";
        sscanf(line, "%*s %7s %*s %*s %*s %3999s", rights, path);
        if (path[0] || strchr(rights, 'x'))
            printf("map %s %s\n", rights, path);
    }
    if (file)
        fclose(file);
}

static int module(struct dl_phdr_info *info, size_t size, void *nothing)
{
    (void)size, (void)nothing;
    printf("module %s\n", info->dlpi_name);
    return 0;
}

static void threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    printf("%d threads, single-threaded %d\n", count, __libc_single_threaded);
}

static void signals(void)
{
    for (int signal = 1; signal <= 64; signal++) {
        struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } action = {0};
        if (syscall(SYS_rt_sigaction, signal, 0, &action, 8) == 0 && (action.handler || action.flags))
            printf("signal %d: %p %lx\n", signal, action.handler, action.flags);
    }
    stack_t stack;
    sigaltstack(0, &stack);
    printf("alternate stack %p %d\n", stack.ss_sp, stack.ss_flags);
    for (int which = 0; which < 3; which++) {
        struct itimerval timer;
        getitimer(which, &timer);
        printf("timer %d: %ld\n", which, timer.it_value.tv_sec + timer.it_value.tv_usec);
    }
    FILE *file = fopen("/proc/self/timers", "r");
    int first = file ? fgetc(file) : EOF;
    printf("%s\n", first == EOF ? "no timers" : "timers");
    if (file)
        fclose(file);
}

static void limits(void)
{
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        struct rlimit limit;
        getrlimit(which, &limit);
        printf("limit %d: %lx %lx\n", which, (long)limit.rlim_cur, (long)limit.rlim_max);
    }
    printf("priority %d, policy %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
    cpu_set_t processors;
    sched_getaffinity(0, sizeof processors, &processors);
    printf("%d processors, personality %x\n", CPU_COUNT(&processors), personality(0xffffffff));
    int death = -1, reaper = -1;
    prctl(PR_GET_PDEATHSIG, &death);
    prctl(PR_GET_CHILD_SUBREAPER, &reaper);
    printf("dumpable %d, death signal %d, reaper %d, slack %d, kept %d\n", prctl(PR_GET_DUMPABLE), death, reaper,
           prctl(PR_GET_TIMERSLACK), prctl(PR_GET_KEEPCAPS));
    char score[32] = "";
    FILE *file = fopen("/proc/self/oom_score_adj", "r");
    if (file && fgets(score, sizeof score, file))
        printf("oom %s", score);
    if (file)
        fclose(file);
}

static void family(void)
{
    char folder[4096];
    printf("in %s\n", getcwd(folder, sizeof folder) ? folder : "nowhere");
    errno = 0;
    printf("wait %d %s\n", waitpid(-1, 0, WNOHANG), strerror(errno));
    printf("session is the parent's %d, group is the parent's %d\n", getsid(0) == getsid(getppid()),
           getpgrp() == getpgid(getppid()));
    printf("secure %ld, console %s\n", getauxval(AT_SECURE), isatty(0) ? "yes" : "no");
}

static void *one_of_many(void *barrier)
{
    pid_t id = gettid();
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return (void *)(long)id;
}

/* A thread that has been joined leaves /proc/self/task a moment later. */
static void wait_until_gone(long id)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld", id);
    while (access(path, F_OK) == 0)
        usleep(100);
}

static void with_threads(void)
{
    pthread_t started[10];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, 0, 11);
    for (int i = 0; i < 10; i++)
        pthread_create(&started[i], 0, one_of_many, &barrier);
    pthread_barrier_wait(&barrier);
    threads();
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 10; i++) {
        void *id;
        pthread_join(started[i], &id);
        wait_until_gone((long)id);
    }
    threads();
}

/* Names, and values as a number: they may be secrets, and output is shown when a test fails. */
static void show_variable(const char *variable)
{
    unsigned long hash = 5381;
    size_t name = strcspn(variable, "=");
    for (const char *c = variable; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    printf("variable %.*s %lx\n", (int)name, variable, hash);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        printf("argument %s\n", argv[i]);
    for (char **variable = environ; *variable; variable++)
        show_variable(*variable);
    status();
    threads();
    descriptors();
    mappings();
    dl_iterate_phdr(module, 0);
    signals();
    limits();
    family();
    struct mallinfo2 heap = mallinfo2();
    printf("heap of %zu bytes in %zu blocks\n", heap.uordblks, heap.ordblks);
    with_threads();
    fflush(stdout);
    /* A program that is started finds the same. */
    if (argc == 1) {
        execl("/proc/self/exe", argv[0], "again", (char *)0);
        return 1;
    }
    /* ptrace finds a program some milliseconds after its start. */
    usleep(50000);
    return 0;
}
