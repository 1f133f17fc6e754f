/* Calls a function through a trampoline generated at run time, as CPython's interpreter does for perf: without frame
   pointer and without unwind rules. Writes its name to /tmp/perf-PID.map, which is left there. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noipa))

static volatile uint64_t sink;

KEPT void work(void) {
    struct timespec at;
    int64_t end = 0;
    for (;;) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
        int64_t now = at.tv_sec * 1000000000LL + at.tv_nsec;
        if (!end) end = now + 300000000;
        if (now > end) return;
        for (int i = 0; i < 20000; i++) sink += (uint64_t)i * i;
    }
}

/* rbp holds a number, as in code without frame pointers. */
void outer(void *trampoline);
__asm__(".text\n.globl outer\n.type outer, @function\n"
        "outer: .cfi_startproc\n"
        "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
        "mov $3, %ebp\n"
        "mov %rdi, %rax\n"
        "lea work(%rip), %rcx\n"
        "call *%rax\n"
        "pop %rbp\n.cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n.size outer, .-outer\n");

int main(void) {
    /* sub $8, %rsp; call *%rcx; add $8, %rsp; ret */
    static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 1;
    memcpy(page, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC)) return 1;
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (!map) return 1;
    fprintf(map, "%lx %zx py::interpreted:/srv/app.py\n", (unsigned long)page, sizeof code);
    fclose(map);
    outer(page);
    puts("done");
    return 0;
}
