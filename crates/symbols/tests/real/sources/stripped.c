/* Prints where functions that no symbol will name start in its file. */
#include <stdio.h>

extern char __ehdr_start;
static volatile unsigned long sink;

__attribute__((noinline, noipa)) static void alpha(unsigned long n) { for (; n; n--) sink += n * n; }
__attribute__((noinline, noipa)) static void beta(unsigned long n) { alpha(n); sink++; }
__attribute__((noinline, noipa)) static void gamma_(unsigned long n) { beta(n); alpha(n); }

int main(void) {
    gamma_(3);
    void *functions[] = {(void *)alpha, (void *)beta, (void *)gamma_, (void *)main};
    const char *names[] = {"alpha", "beta", "gamma", "main"};
    for (int i = 0; i < 4; i++) printf("%s %lu\n", names[i], (unsigned long)((char *)functions[i] - &__ehdr_start));
    return 0;
}
