// A program whose entry has no unwind rules and leaves something else than zero in rbp. Sleeps and works by turns.
#define _GNU_SOURCE
#include <time.h>
#include "work.h"

__asm__(".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "  mov $0x1001, %ebp\n"
        "  mov %rdx, %r9\n"
        "  pop %rsi\n"
        "  mov %rsp, %rdx\n"
        "  and $-16, %rsp\n"
        "  push %rax\n"
        "  push %rsp\n"
        "  xor %ecx, %ecx\n"
        "  xor %r8d, %r8d\n"
        "  lea main(%rip), %rdi\n"
        "  call *__libc_start_main@GOTPCREL(%rip)\n"
        "  hlt\n"
        ".size _start, .-_start\n");

__attribute__((noinline, noclone)) void sleeps(void) {
  struct timespec t = {0, 60 * 1000 * 1000};
  nanosleep(&t, 0);
  sink++;
}
int main(void) {
  for (int i = 0; i < 5; i++) {
    work(0.05);
    sleeps();
  }
  return 0;
}
