// Two pages of memory, of which the first holds a 7 and the second was never written.
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    uint64_t *area = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(area, 8192, MADV_NOHUGEPAGE);
    area[0] = 7;
    printf("%lx\n", (unsigned long)area);
    fflush(stdout);
    for (;;)
        pause();
}
