/* Static functions with known shares of CPU time, each by its own thread's clock: alpha 50 % (30 % for left, 20 %
   for right), beta 30 %, gamma 20 % below a recursion. Prints where each function starts in the file. */
#include <stdio.h>
#include <stdint.h>
#include <time.h>

#define KEPT static __attribute__((noinline, noipa))
#define NO_TAIL_CALL __asm__ volatile("")

extern char __ehdr_start;
static volatile uint64_t sink;

static inline __attribute__((always_inline)) int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

#define SPIN(ms)                                                  \
    int64_t end = now() + (ms) * 1000000LL;                       \
    do                                                            \
        for (int i = 0; i < 20000; i++) sink += (uint64_t)i * i;  \
    while (now() < end)

KEPT void alpha(int ms) { SPIN(ms); NO_TAIL_CALL; }
KEPT void beta(int ms) { SPIN(ms); sink ^= 1; NO_TAIL_CALL; }
KEPT void gamma_(int ms) { SPIN(ms); sink ^= 2; NO_TAIL_CALL; }
KEPT void left(void) { alpha(30); NO_TAIL_CALL; }
KEPT void right(void) { alpha(20); beta(30); NO_TAIL_CALL; }
KEPT void down(int depth) {
    if (depth) down(depth - 1);
    else gamma_(20);
    NO_TAIL_CALL;
}
KEPT void whole(void) { left(); right(); down(5); NO_TAIL_CALL; }

int main(void) {
    for (int i = 0; i < 15; i++) whole();
    void *starts[] = {(void *)alpha, (void *)beta, (void *)gamma_, (void *)left, (void *)right, (void *)down, (void *)whole};
    for (int i = 0; i < 7; i++) printf("shares+0x%lx\n", (unsigned long)((char *)starts[i] - &__ehdr_start));
    return 0;
}
