/* Short lives and loops whose parts are known: of each turn, `first` has 30 % of the CPU time and `second` the rest, by the
   thread's own clock.
   lives threads|at-once|processes N US: N lives of US microseconds, one after another or all at once.
   lives loop US MS: turns of US microseconds, for MS milliseconds.
   Prints the CPU time of both functions in µs. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static _Atomic int64_t *spent;
static int64_t life;

static inline __attribute__((always_inline)) int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

#define SPIN(which, until)                                \
    int64_t start = now(), at = start;                    \
    while (at < (until)) {                                \
        for (int i = 0; i < 300; i++) sink += (uint64_t)i * i; \
        at = now();                                       \
    }                                                     \
    spent[which] += at - start;                           \
    __asm__ volatile("")

static __attribute__((noinline, noipa)) void first(int64_t until) { SPIN(0, until); }
static __attribute__((noinline, noipa)) void second(int64_t until) { SPIN(1, until); sink ^= 1; }

static void turn(int64_t ns) {
    int64_t start = now();
    first(start + ns * 3 / 10);
    second(start + ns);
}

static void *live(void *unused) {
    (void)unused;
    turn(life);
    return NULL;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    long n = atol(words[2]);
    life = atol(words[3]) * 1000;
    spent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(words[1], "loop")) {
        int64_t end = now() + atol(words[3]) * 1000000;
        while (now() < end) turn(n * 1000);
    } else if (!strcmp(words[1], "threads")) {
        for (long i = 0; i < n; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, live, NULL)) return 1;
            pthread_join(thread, NULL);
        }
    } else if (!strcmp(words[1], "at-once")) {
        pthread_t *threads = calloc((size_t)n, sizeof *threads);
        for (long i = 0; i < n; i++)
            if (pthread_create(threads + i, NULL, live, NULL)) return 1;
        for (long i = 0; i < n; i++) pthread_join(threads[i], NULL);
    } else {
        for (long i = 0; i < n; i++) {
            pid_t child = fork();
            if (child == 0) {
                turn(life);
                _exit(0);
            }
            waitpid(child, NULL, 0);
        }
    }
    printf("%lld %lld\n", (long long)spent[0] / 1000, (long long)spent[1] / 1000);
    return 0;
}
