// Memory whose pages a thread of the program delivers (userfaultfd(2)), as programs do that are restored lazily.
//
// `served MS [forks]`: a thread works and sleeps for MS milliseconds, deep in calls. The pages of its outer frames are away, and are
// delivered only when the thread itself returns to them. Who else asks for one must not wait for it. Prints how many were asked
// for too early, and the number that the frames computed. With `forks`, the monitor is also told of copies of the process, which
// count as asked for too early. Exit status 77: userfaultfd is not allowed here.
#define _GNU_SOURCE
#include "work.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, STACK = 1 << 20, DEPTH = 40 };

static char *stack, *saved;
static int faults;
static atomic_int returns, early;
static long milliseconds;

static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void deliver(unsigned long page) {
    struct uffdio_copy copy = { .dst = page, .src = (unsigned long)(saved + (page - (unsigned long)stack)), .len = PAGE };
    if (ioctl(faults, UFFDIO_COPY, &copy) != 0 && errno != EEXIST) _exit(3);
}

// Delivers pages. Those that nobody of the program wants yet have to wait.
static void *serve(void *unused) {
    static unsigned long waiting[1024];
    int n = 0;
    for (;;) {
        struct pollfd poll_one = { .fd = faults, .events = POLLIN };
        struct uffd_msg message;
        if (poll(&poll_one, 1, 5) > 0 && read(faults, &message, sizeof message) == sizeof message) {
            if (message.event == UFFD_EVENT_FORK) {
                atomic_fetch_add(&early, 1);
                close(message.arg.fork.ufd);
                continue;
            }
            unsigned long page = message.arg.pagefault.address & ~(PAGE - 1ul);
            if (!atomic_load(&returns)) {
                atomic_fetch_add(&early, 1);
                if (n < 1024) waiting[n++] = page;
                continue;
            }
            deliver(page);
        }
        while (atomic_load(&returns) && n > 0) deliver(waiting[--n]);
    }
    return unused;
}

// The pages above `inner` go away.
__attribute__((noinline)) static void take_away(char *inner) {
    char *from = (char *)(((unsigned long)inner + 4 * PAGE) & ~(PAGE - 1ul));
    // The outermost pages hold what the C library keeps for the thread.
    char *to = stack + STACK - 8 * PAGE;
    memcpy(saved + (from - stack), from, to - from);
    if (madvise(from, to - from, MADV_DONTNEED) != 0) _exit(4);
}

__attribute__((noinline)) static long innermost(void) {
    char here[64];
    long end = now_ms() + milliseconds, sum = 0;
    memset(here, 1, sizeof here);
    take_away(here);
    puts("away");
    fflush(stdout);
    while (now_ms() < end) {
        work_for(0.02);
        usleep(20000);
        sum += here[7];
    }
    atomic_store(&returns, 1);
    return sum > 0;
}

__attribute__((noinline)) static long outer(int depth) {
    volatile char room[PAGE];
    memset((void *)room, depth, sizeof room);
    long below = depth == DEPTH ? innermost() : outer(depth + 1);
    return below + room[depth] + room[PAGE - 1 - depth];
}

static void *deep(void *unused) {
    long sum = outer(1);
    printf("early %d, sum %ld\n", (int)atomic_load(&early), sum);
    return unused;
}

int main(int argc, char **argv) {
    milliseconds = argc > 1 ? atol(argv[1]) : 1000;
    faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api api = { .api = UFFD_API };
    if (argc > 2) api.features = UFFD_FEATURE_EVENT_FORK;
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) return 77;
    stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    saved = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(stack, 0, STACK);
    struct uffdio_register range = { { (unsigned long)stack, STACK }, UFFDIO_REGISTER_MODE_MISSING, 0 };
    if (ioctl(faults, UFFDIO_REGISTER, &range) != 0) return 77;
    pthread_t server, worker;
    pthread_attr_t attributes;
    pthread_create(&server, 0, serve, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK);
    pthread_create(&worker, &attributes, deep, 0);
    pthread_join(worker, 0);
    return 0;
}
