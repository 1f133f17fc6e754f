/* 30 us of arithmetic, then a system call of a tenth of a microsecond, over and over: hardly any time is in
   the call, however often a signal finds the thread at its end. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile unsigned long sink;

__attribute__((noipa)) unsigned long arithmetic(unsigned long rounds) {
    unsigned long x = rounds | 1;
    for (unsigned long i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

__attribute__((noinline)) void cheap_call(void) {
    syscall(SYS_getppid);
    sink++;
}

int main(void) {
    for (int i = 0; i < 40000; i++) {
        sink += arithmetic(20000);
        cheap_call();
    }
    puts("called");
    return 0;
}
