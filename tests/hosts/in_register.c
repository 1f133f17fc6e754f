// A program whose only pointer to its items is in a register that no called function has saved: it sleeps in the system call itself.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

// No copy of the pointer stays below the frames that follow.
static void __attribute__((noinline)) clear(void) {
    volatile char bytes[4000];
    memset((void *)bytes, 0, sizeof bytes);
}

int main(void) {
    struct item *items = make();
    fputs("ready\n", stderr);
    clear();
    long result;
    asm volatile("syscall" : "=a"(result) : "a"((long)SYS_pause), "b"(items) : "rcx", "r11", "memory");
    return (int)result;
}
