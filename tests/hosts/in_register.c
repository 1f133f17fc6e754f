// A program whose only pointer to its items is in a register that no called function has saved: it sleeps in the system call itself.
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

struct item {
    struct item *next;
    long numbers[8];
};

static struct item *__attribute__((noinline)) make(void) {
    struct item *items = NULL;
    for (int i = 0; i < 10; i++) {
        struct item *item = calloc(1, sizeof *item);
        item->next = items;
        items = item;
    }
    return items;
}

int main(void) {
    struct item *items = make();
    fputs("ready\n", stderr);
    long result;
    // No copy of the pointer stays in the 128 bytes below the stack pointer, which belong to the frame (System V ABI x86-64, 3.2.2).
    asm volatile(
        "lea -128(%%rsp), %%rdi\n"
        "mov $16, %%ecx\n"
        "xor %%eax, %%eax\n"
        "rep stosq\n"
        "mov %[pause], %%eax\n"
        "syscall"
        : "=&a"(result)
        : "b"(items), [pause] "i"(SYS_pause)
        : "rcx", "rdi", "r11", "memory", "cc");
    return (int)result;
}
