// A thread that does little but page faults: it writes to each page of memory that it gives back again and again, and counts.
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

// Few, so that they are given back in microseconds.
enum { PAGES = 256, BYTES = 4096 };
static volatile uint64_t faults;

int main(void) {
    volatile char *pages = mmap(0, PAGES * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)pages, PAGES * BYTES, MADV_NOHUGEPAGE);
    printf("%lx\n", (unsigned long)&faults);
    fflush(stdout);
    for (;;) {
        for (int page = 0; page < PAGES; page++) {
            pages[page * BYTES] = 1;
            faults++;
        }
        madvise((void *)pages, PAGES * BYTES, MADV_DONTNEED);
    }
}
