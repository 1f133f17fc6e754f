/* Walked at every single instruction: the shapes of code that make unwinding hard.
 * Calls through a lazily bound PLT, tail calls, alloca, realigned stacks, callbacks through the C library, function
 * pointers, a signal handler, vfork, variadic functions, deep recursion. Compiled without frame pointers.
 * Argument 1: how many rounds. */
#include <alloca.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

/* from the shared library */
extern long library_sum(const long *values, long count);
extern long library_call_back(long (*f)(long), long value);
extern long library_once_0(long), library_once_1(long), library_once_2(long), library_once_3(long);

static volatile long sink;
static volatile long handled;

NOINLINE static long leaf(long x) { return x * 3 + 1; }

NOINLINE static long tail_target(long x, long y) { return sink = leaf(x) + y; }
NOINLINE static long tail_caller(long x) { return tail_target(x + 1, x); }

NOINLINE static long recurse(long depth) {
    if (depth == 0) return leaf(depth);
    return sink = recurse(depth - 1) + depth; /* the store keeps it a recursion */
}

NOINLINE static long with_alloca(long n) {
    char *bytes = alloca(16 + n % 64);
    memset(bytes, (int)n, 16 + n % 64);
    return leaf(bytes[n % 16]) + (long)strlen("frame pointer needed");
}

NOINLINE static long realigned(long n) {
    _Alignas(64) volatile long block[16];
    for (int i = 0; i < 16; i++) block[i] = n + i;
    return leaf(block[n & 15]);
}

NOINLINE static long realigned_many_arguments(long a, long b, long c, long d, long e, long f, long g, long h) {
    _Alignas(64) volatile long block[8] = {a, b, c, d, e, f, g, h};
    return leaf(block[a & 7]) + g + h;
}

NOINLINE static long early_exit(long n) {
    if (n & 1) return n;
    volatile long saved[4] = {n, n, n, n};
    return leaf(saved[n & 3]) + recurse(n & 7);
}

NOINLINE static long variadic(int count, ...) {
    va_list list;
    long sum = 0;
    va_start(list, count);
    while (count-- > 0) sum += va_arg(list, long);
    va_end(list);
    return leaf(sum);
}

static int compare(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (leaf(x) > leaf(y)) - (x < y);
}

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    handled += leaf(handled) != 0;
}

NOINLINE static long many_registers(long a, long b, long c, long d, long e, long f) {
    long g = leaf(a), h = leaf(b), i = leaf(c), j = leaf(d), k = leaf(e), l = leaf(f);
    return leaf(g + h) + leaf(i + j) + leaf(k + l) + a + b + c + d + e + f + g * h * i * j * k * l;
}

static long (*volatile pointers[3])(long) = {leaf, tail_caller, realigned};

NOINLINE static void round_of_work(long n) {
    char text[64];
    long values[32];
    for (long i = 0; i < 32; i++) values[i] = (i * 7919 + n) % 97;
    sink += library_sum(values, 32);
    sink += library_call_back(tail_caller, n);
    sink += n == 0 ? library_once_0(n) : n == 1 ? library_once_1(n) : n == 2 ? library_once_2(n) : library_once_3(n);
    sink += tail_caller(n) + recurse((n + 1) * 13 % 60) + with_alloca(n) + realigned(n) + early_exit(n) + early_exit(n + 1);
    sink += realigned_many_arguments(n, 1, 2, 3, 4, 5, 6, 7) + variadic(3, 1L, n, 2L);
    sink += many_registers(n, n + 1, n + 2, n + 3, n + 4, n + 5) + pointers[n % 3](n);
    qsort(values, 32, sizeof values[0], compare);
    snprintf(text, sizeof text, "%ld %s %.3f", n, "text", (double)n / 3);
    void *block = malloc(100 + n * 16);
    sink += strtol(text, NULL, 10) + (block != NULL);
    free(block);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (n % 4 == 1) raise(SIGUSR1);
    if (n % 16 == 2) {
        pid_t child = vfork(); /* keeps its return address in a register */
        if (child == 0) _exit(0);
        waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv) {
    struct sigaction action = {0};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &action, NULL);
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    __asm__ volatile("int3"); /* the test begins to look here */
    for (long n = 0; n < rounds; n++) round_of_work(n);
    return handled > 0 ? 7 : 8;
}
