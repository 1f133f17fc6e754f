// Allocates known numbers of blocks once a file `go` exists, and lives until a file `stop` exists. `unprepared PAUSE [filtered|threads]`: microseconds
// between two calls; with a filter that kills it for system calls of the kernel's own code; or it creates threads until `stop` exists, and
// says how long they took if that is long. Three threads: the first one, one that is there
// before, one that starts later. And a child, whose blocks are not its own.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef OWN
// An allocator of its own, with names of mimalloc's functions. Nothing is used twice.
static char arena[1 << 26] __attribute__((aligned(4096)));
static size_t used;

__attribute__((noinline)) void *mi_malloc_aligned(size_t size, size_t align) {
    size_t room = (size + align + 127) & ~(size_t)63;
    size_t at = __atomic_fetch_add(&used, room, __ATOMIC_RELAXED);
    if (room < size || at + room > sizeof arena) return NULL;
    char *block = arena + ((at + 16 + align - 1) & ~(align - 1));
    ((size_t *)block)[-1] = size;
    return block;
}
__attribute__((noinline)) void *mi_malloc(size_t size) { return mi_malloc_aligned(size, 16); }
__attribute__((noinline)) void *mi_calloc(size_t count, size_t size) { return mi_malloc(count * size); }
__attribute__((noinline)) void mi_free(void *block) { __asm__ volatile("" ::"r"(block)); }
__attribute__((noinline)) void *mi_realloc(void *block, size_t size) {
    void *other = mi_malloc(size);
    if (block && other) {
        memcpy(other, block, ((size_t *)block)[-1]);
        mi_free(block);
    }
    return other;
}
static int own_memalign(void **place, size_t align, size_t size) { return !(*place = mi_malloc_aligned(size, align)); }
#define malloc mi_malloc
#define calloc mi_calloc
#define realloc mi_realloc
#define free mi_free
#define aligned_alloc(align, size) mi_malloc_aligned(size, align)
#define memalign(align, size) mi_malloc_aligned(size, align)
#define posix_memalign own_memalign
#endif

static int pause_us;
static void *kept[4096];

static void rest(void) {
    if (pause_us) usleep(pause_us);
}

static void await(const char *file) {
    while (access(file, F_OK)) usleep(2000);
}

__attribute__((noinline)) void leaks(int count) {
    for (int i = 0; i < count; i++) {
        kept[i] = malloc(100);
        rest();
    }
}

__attribute__((noinline)) void churns(int count) {
    for (int i = 0; i < count; i++) {
        free(malloc(64));
        rest();
    }
}

__attribute__((noinline)) void frees_later(int count) {
    void *blocks[count];
    for (int i = 0; i < count; i++) {
        blocks[i] = calloc(4, 25);
        rest();
    }
    for (int i = 0; i < count; i++) free(blocks[i]);
}

__attribute__((noinline)) void grows(void) {
    void *block = NULL;
    for (size_t size = 16; size <= 16384; size *= 2) {
        block = realloc(block, size);
        rest();
    }
    free(block);
}

__attribute__((noinline)) void aligns(int count) {
    for (int i = 0; i < count; i++) {
        void *other = NULL;
        if (posix_memalign(&other, 64, 192)) abort();
        free(aligned_alloc(64, 256));
        free(memalign(8, 40));
        free(other);
        rest();
    }
}

__attribute__((noinline)) void fails(int count) {
    for (int i = 0; i < count; i++) {
        free(malloc((size_t)1 << 60));
        rest();
    }
}

__attribute__((noinline)) void of_a_child(int count) {
    for (int i = 0; i < count; i++)
        if (!malloc(77)) abort();
}

__attribute__((noinline)) void *works(void *of) {
    await("go");
    for (int i = 0; i < 30; i++) {
        if (!malloc(200)) abort();
        rest();
    }
    return of;
}

__attribute__((noinline)) void *comes_later(void *of) {
    for (int i = 0; i < 20; i++) {
        if (!malloc(300)) abort();
        rest();
    }
    return of;
}

// uretprobe is 335, uprobe 336.
static int confine(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 335, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 336, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *ends(void *of) {
    free(malloc(50));
    return of;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

// Seconds for the creation of threads that took more than 30 ms, until a file exists.
static double slow_threads(const char *file) {
    double slow = 0;
    while (access(file, F_OK)) {
        pthread_t thread;
        double start = now();
        if (pthread_create(&thread, NULL, ends, NULL)) abort();
        double took = now() - start;
        if (took > 0.03) slow += took;
        pthread_join(thread, NULL);
    }
    return slow;
}

int main(int count, char **words) {
    pause_us = count > 1 ? atoi(words[1]) : 0;
    int creates = count > 2 && !strcmp(words[2], "threads");
    if (count > 2 && !creates && confine()) return 1;
    int many = pause_us ? 60 : 20000;
    pthread_t there, later;
    pthread_create(&there, NULL, works, NULL);
    FILE *ready = fopen("ready", "w");
    if (!ready) return 1;
    fprintf(ready, "%d\n", getpid());
    fclose(ready);
    if (creates) {
        double slow = slow_threads("stop");
        printf(slow > 0.3 ? "%.3f s\n" : "whole\n", slow);
        return 0;
    }
    await("go");
    pthread_create(&later, NULL, comes_later, NULL);
    leaks(60);
    churns(many);
    frees_later(40);
    grows();
    aligns(10);
    fails(5);
    if (!fork()) {
        of_a_child(50);
        _exit(0);
    }
    wait(NULL);
    pthread_join(there, NULL);
    pthread_join(later, NULL);
    fclose(fopen("done", "w"));
    await("stop");
    puts("whole");
    return 0;
}
