/* Programs whose records are kept as traces. Each prints what is true of it, by its own clocks: lines of words and numbers, times in ns.

   cpu TID NS         CPU time of a thread, at its end
   slept TID NS       how long a thread was in sleeping calls
   part NAME FROM TO NS   a function: its addresses in the file, and the time spent in it */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern const char __executable_start[];

/* A function in a section of its own: the linker knows where it begins and ends. */
#define PLACED(name) __attribute__((noinline, noipa, section(#name "_code")))
#define ENDS(name) extern const char __start_##name##_code[], __stop_##name##_code[]
#ifdef __PIE__
#define PLACE(address) ((long)((address) - __executable_start))
#else
#define PLACE(address) ((long)(address))
#endif
#define SAY(name, ns)                                                                             \
    printf("part %s %ld %ld %lld\n", #name, PLACE(__start_##name##_code), PLACE(__stop_##name##_code), \
           (long long)(ns))

typedef int64_t ns_t;
static volatile uint64_t sink;

static inline __attribute__((always_inline)) ns_t clock_of(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static inline __attribute__((always_inline)) ns_t cpu(void) { return clock_of(CLOCK_THREAD_CPUTIME_ID); }

static void say_cpu(void) { printf("cpu %ld %lld\n", (long)syscall(SYS_gettid), (long long)cpu()); }

#define SPIN(until)                                            \
    ns_t began = cpu(), at = began;                            \
    while (at < (until)) {                                     \
        for (int i = 0; i < 3000; i++) sink += (uint64_t)i * i; \
        at = cpu();                                            \
    }                                                          \
    return at - began

ENDS(first);
ENDS(second);
PLACED(first) static ns_t first(ns_t until) { SPIN(until); }
PLACED(second) static ns_t second(ns_t until) { SPIN(until); }

/* Turns of 5 ms: 30 % in one function, the rest in the other. */
static int spin(ns_t length) {
    ns_t in_first = 0, in_second = 0;
    for (ns_t at = 0; at < length; at += 5000000) {
        ns_t start = cpu();
        in_first += first(start + 1500000);
        in_second += second(start + 5000000);
    }
    SAY(first, in_first);
    SAY(second, in_second);
    say_cpu();
    return 0;
}

static ns_t life;
static void *live(void *cpu_at_end) {
    first(cpu() + life);
    *(ns_t *)cpu_at_end = cpu();
    return (void *)syscall(SYS_gettid);
}

/* Threads one after the other, and as many in groups of four. */
static int threads(int count, ns_t length) {
    life = length;
    ns_t used[4];
    void *tid;
    for (int i = 0; i < count; i += 1) {
        pthread_t group[4];
        int size = i % 2 ? 4 : 1;
        for (int j = 0; j < size; j++)
            if (pthread_create(group + j, NULL, live, used + j)) return 1;
        for (int j = 0; j < size; j++) {
            pthread_join(group[j], &tid);
            printf("cpu %ld %lld\n", (long)tid, (long long)used[j]);
        }
    }
    say_cpu();
    return 0;
}

ENDS(nap_long);
ENDS(nap_short);
#define NAP(length)                       \
    struct timespec span = {0, length};   \
    ns_t began = clock_of(CLOCK_MONOTONIC); \
    clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL); \
    return clock_of(CLOCK_MONOTONIC) - began
PLACED(nap_long) static ns_t nap_long(void) { NAP(15000000); }
PLACED(nap_short) static ns_t nap_short(void) { NAP(2000000); }

static ns_t in_long, in_short;
static void *sleeper(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "sleeper");
    for (int i = 0; i < 60; i++) {
        in_long += nap_long();
        in_short += nap_short();
        second(cpu() + 300000);
    }
    printf("slept %ld %lld\n", (long)syscall(SYS_gettid), (long long)(in_long + in_short));
    say_cpu();
    return NULL;
}

static int sleeps(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeper, NULL)) return 1;
    pthread_join(thread, NULL);
    SAY(nap_long, in_long);
    SAY(nap_short, in_short);
    say_cpu();
    return 0;
}

static void *forever(void *unused) {
    for (;;) second(cpu() + 1000000);
    return unused;
}

static char count_text[16];
static void *replace(void *program) {
    usleep(3000);
    execl("/proc/self/exe", program, "execs", count_text, (char *)NULL);
    _exit(98);
}

/* A thread that is not the first one replaces the program, while others run. */
static int execs(char *program, int left) {
    pthread_t thread;
    if (left == 0) return 7;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, forever, NULL)) return 1;
    snprintf(count_text, sizeof count_text, "%d", left - 1);
    if (pthread_create(&thread, NULL, replace, program)) return 1;
    for (;;) pause();
}

ENDS(descend);
/* Each level keeps words that the next one needs. */
PLACED(descend) static uint64_t descend(int left, ns_t length) {
    volatile uint64_t kept[6];
    for (int i = 0; i < 6; i++) kept[i] = left * 6u + i;
    uint64_t below = left ? descend(left - 1, length) : (uint64_t)first(cpu() + length);
    for (int i = 0; i < 6; i++) below += kept[i];
    return below;
}

static int deep(int levels) {
    sink = descend(levels, 260000000);
    SAY(descend, levels + 1);
    say_cpu();
    return 0;
}

static int there[2], back[2];
static void *answer(void *unused) {
    char byte;
    prctl(PR_SET_NAME, "answerer");
    while (read(there[0], &byte, 1) == 1) {
        sink += 1;
        if (write(back[1], &byte, 1) != 1) break;
    }
    say_cpu();
    return unused;
}

/* Two threads wake each other as fast as they can, more often than records fit. Then both rest, so that the records can be read. */
static int switches(int count) {
    pthread_t thread;
    char byte = 1;
    if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answer, NULL)) return 1;
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < count; i++)
            if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
        second(cpu() + 20000000);
        usleep(30000);
    }
    close(there[1]);
    pthread_join(thread, NULL);
    say_cpu();
    return 0;
}

static int killed(void) {
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, forever, NULL)) return 1;
    usleep(100000);
    raise(SIGKILL);
    return 1;
}

extern char **environ;
/* Children by vfork(2) and by posix_spawn(3), in turn. */
static int children(int count) {
    for (volatile int i = 0; i < count; i++) {
        pid_t child;
        char *const words[] = {"true", NULL};
        if (i % 2) {
            if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ)) return 1;
        } else {
            child = vfork();
            if (child == 0) {
                execv("/bin/true", words);
                _exit(99);
            }
        }
        int status;
        if (waitpid(child, &status, 0) != child || status) return 1;
        printf("child %d\n", (int)child);
    }
    say_cpu();
    return 0;
}

static int renames(int count) {
    char name[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "name %d", i);
        prctl(PR_SET_NAME, name);
        first(cpu() + 100000);
    }
    say_cpu();
    return 0;
}

/* Code of two libraries, at the same addresses if the loader wants it so. */
static int plugins(int count, char **paths) {
    for (int i = 0; i < 2 * count; i++) {
        void *plugin = dlopen(paths[i % count], RTLD_NOW);
        if (!plugin) return 1;
        ns_t (*work)(ns_t) = (ns_t (*)(ns_t))dlsym(plugin, "work");
        printf("library %s %lld\n", paths[i % count], (long long)work(50000000));
        dlclose(plugin);
    }
    say_cpu();
    return 0;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    int number = count > 2 ? atoi(words[2]) : 0;
    if (!strcmp(what, "spin")) return spin(number * 1000000LL);
    if (!strcmp(what, "threads")) return threads(number, 200000);
    if (!strcmp(what, "sleeps")) return sleeps();
    if (!strcmp(what, "execs")) return execs(words[0], number);
    if (!strcmp(what, "deep")) return deep(number);
    if (!strcmp(what, "switches")) return switches(number);
    if (!strcmp(what, "killed")) return killed();
    if (!strcmp(what, "children")) return children(number);
    if (!strcmp(what, "renames")) return renames(number);
    if (!strcmp(what, "plugins")) return plugins(count - 2, words + 2);
    return 2;
}
