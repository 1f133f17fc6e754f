// A program with an allocator of its own, which has the names of mimalloc's functions. Its smallest blocks lie 8 bytes apart.
//
// With -DREPLACE it also defines malloc, for the C library as well. With -DPLAIN it uses malloc of the C library only.
// Prints the blocks and bytes that it allocates with mi_* functions, counting a reallocation as one allocation.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_INLINED __attribute__((noinline, noclone))

#ifndef PLAIN
static char arena[1 << 28] __attribute__((aligned(4096)));
static size_t used;
static void *free_blocks[32];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// The size of a block lies in a table beside the arena, by its address.
static unsigned char classes[(1 << 28) / 8];

static int class_of(size_t size) {
    int class = 3;
    while (((size_t)1 << class) < size) class++;
    return class;
}

NOT_INLINED void *mi_malloc_aligned(size_t size, size_t align) {
    int class = class_of(size < align ? align : size);
    if (class > 26) return NULL;
    pthread_mutex_lock(&lock);
    void *block = free_blocks[class];
    if (block) {
        free_blocks[class] = *(void **)block;
    } else {
        size_t at = (used + ((size_t)1 << class) - 1) & ~(((size_t)1 << class) - 1);
        if (at + ((size_t)1 << class) <= sizeof arena) {
            block = arena + at;
            used = at + ((size_t)1 << class);
            classes[at / 8] = class;
        }
    }
    pthread_mutex_unlock(&lock);
    return block;
}

NOT_INLINED void *mi_malloc(size_t size) { return mi_malloc_aligned(size, 8); }

NOT_INLINED void *mi_calloc(size_t count, size_t size) {
    if (size && count > (size_t)-1 / size) return NULL;
    void *block = mi_malloc(count * size);
    if (block) memset(block, 0, count * size);
    return block;
}

NOT_INLINED void mi_free(void *block) {
    if (!block) return;
    int class = classes[((char *)block - arena) / 8];
    pthread_mutex_lock(&lock);
    *(void **)block = free_blocks[class];
    free_blocks[class] = block;
    pthread_mutex_unlock(&lock);
}

NOT_INLINED void *mi_realloc(void *old, size_t size) {
    if (!old) return mi_malloc(size);
    size_t has = (size_t)1 << classes[((char *)old - arena) / 8];
    if (size <= has && size > has / 2) return old;
    void *block = mi_malloc(size);
    if (!block) return NULL;
    memcpy(block, old, size < has ? size : has);
    mi_free(old);
    return block;
}
#ifdef REPLACE
void *malloc(size_t size) { return mi_malloc_aligned(size, 16); }
void *calloc(size_t count, size_t size) {
    void *block = mi_malloc_aligned(count * size, 16);
    if (block) memset(block, 0, count * size);
    return block;
}
void *realloc(void *old, size_t size) { return mi_realloc(old, size < 16 ? 16 : size); }
void free(void *block) { mi_free(block); }
#endif
#else
#define mi_malloc malloc
#define mi_calloc calloc
#define mi_realloc realloc
#define mi_free free
#define mi_malloc_aligned(size, align) aligned_alloc(align, size)
#endif

static size_t count, bytes;
static void add(size_t size) {
    __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&bytes, size, __ATOMIC_RELAXED);
}

NOT_INLINED void *small(void) { add(8); return mi_malloc(8); }
NOT_INLINED void *zeroed(void) { add(120); return mi_calloc(3, 40); }
NOT_INLINED void *aligned(void) { add(256); return mi_malloc_aligned(256, 64); }
NOT_INLINED void *grown(void *block, size_t size) { add(size); return mi_realloc(block, size); }

static void *work(void *rounds) {
    for (long i = 0; i < (long)rounds; i++) {
        void *blocks[8];
        for (int j = 0; j < 8; j++) { blocks[j] = small(); memset(blocks[j], 1, 8); }
        char *zeros = zeroed();
        for (int j = 0; j < 120; j++) if (zeros[j]) abort();
        void *line = aligned();
        if ((uintptr_t)line % 64) abort();
        void *growing = NULL;
        for (size_t size = 10; size < 500; size *= 3) { growing = grown(growing, size); memset(growing, 2, size); }
        for (int j = 0; j < 8; j++) { if (*(char *)blocks[j] != 1) abort(); mi_free(blocks[j]); }
        mi_free(zeros);
        mi_free(line);
        mi_free(growing);
    }
    return NULL;
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 100, threads = argc > 2 ? atol(argv[2]) : 0;
    work((void *)rounds);
    pthread_t ids[64];
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)rounds);
    for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    printf("%zu %zu\n", count, bytes);
    return 0;
}
