// Calls every function of the allocator with a stack pointer that is off by 0 to 15 bytes from what the calling convention wants.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

// Calls a function of up to six arguments with the stack `off` bytes lower than it should be.
long call_off(void *function, long off, const long arguments[6]);
__asm__(".text\n.globl call_off\n.type call_off,@function\ncall_off:\n.cfi_startproc\n"
        "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbp,0\nmov %rsp,%rbp\n.cfi_def_cfa_register rbp\n"
        "sub %rsi,%rsp\nmov %rdi,%rax\nmov %rdx,%r11\n"
        "mov (%r11),%rdi\nmov 8(%r11),%rsi\nmov 16(%r11),%rdx\nmov 24(%r11),%rcx\nmov 32(%r11),%r8\nmov 40(%r11),%r9\n"
        "call *%rax\n"
        "mov %rbp,%rsp\npop %rbp\n.cfi_def_cfa rsp,8\nret\n.cfi_endproc\n.size call_off,.-call_off\n");

static long call(void *function, long off, long a, long b, long c, long d, long e, long f) {
    long arguments[6] = {a, b, c, d, e, f};
    return call_off(function, off, arguments);
}

__attribute__((noinline)) static void every_entry(long off) {
    void *p, *q = 0;
    p = (void *)call(malloc, off, 100, 0, 0, 0, 0, 0);
    p = (void *)call(realloc, off, (long)p, 3000, 0, 0, 0, 0);
    p = (void *)call(reallocarray, off, (long)p, 10, 20, 0, 0, 0);
    call(free, off, (long)p, 0, 0, 0, 0, 0);
    p = (void *)call(calloc, off, 7, 9, 0, 0, 0, 0);
    call(free, off, (long)p, 0, 0, 0, 0, 0);
    p = (void *)call(memalign, off, 64, 300, 0, 0, 0, 0);
    call(free, off, (long)p, 0, 0, 0, 0, 0);
    p = (void *)call(aligned_alloc, off, 64, 320, 0, 0, 0, 0);
    call(free, off, (long)p, 0, 0, 0, 0, 0);
    if (call(posix_memalign, off, (long)&q, 64, 500, 0, 0, 0)) exit(2);
    call(free, off, (long)q, 0, 0, 0, 0, 0);
    p = (void *)call(valloc, off, 10, 0, 0, 0, 0, 0);
    call(free, off, (long)p, 0, 0, 0, 0, 0);
    p = (void *)call(pvalloc, off, 10, 0, 0, 0, 0, 0);
    call(free, off, (long)p, 0, 0, 0, 0, 0);
    long size = 1 << 20;
    p = (void *)call(mmap, off, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(3);
    if (call(munmap, off, (long)p, size, 0, 0, 0, 0)) exit(4);
}

// Allocations on stacks that were not seen before. (The C library does not bear such a first allocation of a thread.)
__attribute__((noinline)) static void deep(int depth, long off) {
    if (depth > 0) deep(depth - 1, off);
    else call(free, off, call(malloc, off, 100, 0, 0, 0, 0, 0), 0, 0, 0, 0, 0);
    __asm__ volatile("");
}
static void *first(void *off) {
    void *volatile own = malloc(10);
    free(own);
    deep(3, (long)off);
    for (int depth = 0; depth < 40; depth++) deep(depth * 7 % 200, (long)off);
    return 0;
}

int main(void) {
    for (long off = 15; off >= 0; off--) {
        pthread_t thread;
        if (pthread_create(&thread, 0, first, (void *)off)) return 5;
        pthread_join(thread, 0);
    }
    for (int round = 0; round < 100; round++)
        for (long off = 0; off < 16; off++) every_entry(off);
    puts("every entry, every misalignment");
}
