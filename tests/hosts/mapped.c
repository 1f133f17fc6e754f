// Items that only memory of an unusual kind holds, ITEMS of each kind; and LOST items that nothing holds. Says `ready`.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

enum { PAGE = 4096, ITEMS = 10, LOST = 7, RW = PROT_READ | PROT_WRITE };

void *large[3];
// Where the memory lies: the recorder of allocations counts some mappings as blocks.
void **places[20];
int count;

static void **fill(void **memory) {
    if (memory == MAP_FAILED) exit(2);
    for (int i = 0; i < ITEMS; i++) memory[i] = calloc(1, 300);
    return places[count++] = memory;
}

static void **mapped(int flags, int file) { return mmap(NULL, PAGE, RW, flags, file, 0); }

static int new_file(const char *path) {
    int file = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) : memfd_create("items", 0);
    if (file < 0 || ftruncate(file, PAGE)) exit(3);
    if (path) unlink(path);
    return file;
}

static __attribute__((noinline)) void keep(void) {
    // Before malloc has a heap, between two pieces of it, and behind its end.
    fill(sbrk(PAGE));
    fill(mapped(MAP_PRIVATE, new_file("private")));
    mprotect(fill(mapped(MAP_PRIVATE, new_file("constant"))), PAGE, PROT_READ);
    fill(mapped(MAP_SHARED, new_file("shared")));
    fill(mapped(MAP_SHARED, new_file(NULL)));
    fill(mapped(MAP_SHARED | MAP_ANONYMOUS, -1));
    mprotect(fill(mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1)), PAGE, PROT_NONE);
    madvise(fill(mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1)), PAGE, MADV_DONTFORK);
    madvise(fill(mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1)), PAGE, MADV_WIPEONFORK);
    void **between = sbrk(PAGE);
    for (int i = 0; i < 3; i++) large[i] = calloc(1, 100000);
    fill(between);
    void **last = sbrk(PAGE);
    fill(last);
    for (int i = 0; i < LOST; i++) *(volatile char *)calloc(1, 300) = 1;
}

// A child has used the same page, so that it may have written the addresses.
static __attribute__((noinline)) void share(void) {
    volatile char *page = (char *)fill(mapped(MAP_SHARED | MAP_ANONYMOUS, -1));
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        page[PAGE - 1] = 1;
        for (;;) pause();
    }
    while (!page[PAGE - 1]) usleep(1000);
}

// What the others have left on the stack.
static __attribute__((noinline)) void clear(void) {
    volatile char stack[20000];
    memset((void *)stack, 0, sizeof stack);
}

int main(void) {
    keep();
    share();
    clear();
    fprintf(stderr, "ready\n");
    for (;;) pause();
}
