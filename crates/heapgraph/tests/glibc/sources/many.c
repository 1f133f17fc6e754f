// Blocks of all kinds on several threads. The first argument is the number of threads, the second that of steps of each. With
// a third argument the threads never end.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 20000 };
static int steps, forever;
static pthread_barrier_t ready;

static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static size_t size_of(uint64_t *state) {
    uint32_t kind = next(state) % 1000;
    if (kind < 600) return next(state) % 128;
    if (kind < 900) return next(state) % 1024;
    if (kind < 995) return next(state) % 20000;
    return next(state) % 300000;
}

static void work(uint64_t seed, void **slots, size_t *sizes, int count) {
    uint64_t state = seed;
    for (int step = 0; step < count || (forever && seed > 1); step++) {
        int slot = next(&state) % SLOTS;
        uint32_t what = next(&state) % 100;
        if (slots[slot] && what < 20) {
            size_t size = size_of(&state);
            slots[slot] = realloc(slots[slot], size + 1);
            sizes[slot] = size;
            continue;
        }
        free(slots[slot]);
        slots[slot] = 0;
        if (what < 55) continue;
        size_t size = size_of(&state);
        if (what < 60) {
            slots[slot] = memalign((size_t)16 << next(&state) % 10, size);
        } else if (what < 75) {
            slots[slot] = calloc(1, size);
        } else {
            slots[slot] = malloc(size);
        }
        if (slots[slot]) memset(slots[slot], 0x5a, size < 64 ? size : 64);
    }
}

static void *run(void *seed) {
    void **slots = calloc(SLOTS, sizeof *slots);
    size_t *sizes = calloc(SLOTS, sizeof *sizes);
    work((uintptr_t)seed, slots, sizes, steps);
    // Chunks of many sizes stay in the thread's cache.
    for (int size = 1; size < 1500; size += 8) free(malloc(size));
    pthread_barrier_wait(&ready);
    for (;;) pause();
}

static void *leave(void *seed) {
    void **slots = calloc(SLOTS, sizeof *slots);
    size_t *sizes = calloc(SLOTS, sizeof *sizes);
    work((uintptr_t)seed, slots, sizes, steps);
    return slots;
}

int main(int count, char **arguments) {
    int threads = atoi(arguments[1]);
    steps = atoi(arguments[2]);
    forever = count > 3;
    pthread_barrier_init(&ready, 0, forever ? 1 : threads + 1);
    pthread_t thread;
    if (!forever) {
        pthread_create(&thread, 0, leave, (void *)77);
        pthread_join(thread, 0);
    }
    for (uintptr_t number = 0; number < (uintptr_t)threads; number++) {
        pthread_create(&thread, 0, run, (void *)(number * 1000 + 5));
    }
    void **slots = calloc(SLOTS, sizeof *slots);
    size_t *sizes = calloc(SLOTS, sizeof *sizes);
    work(1, slots, sizes, steps);
    // Blocks with mappings of their own, also aligned and moved ones.
    void *large[24];
    for (int n = 0; n < 8; n++) large[n] = malloc((size_t)(3 + n) << 20);
    for (int n = 8; n < 16; n++) large[n] = memalign((size_t)32 << (n - 8) * 2, 5 << 20);
    for (int n = 16; n < 20; n++) large[n] = realloc(malloc(2 << 20), (size_t)(n << 20));
    for (int n = 20; n < 24; n++) large[n] = realloc(memalign(256, 2 << 20), (size_t)(n << 20));
    free(large[3]);
    free(large[12]);
    pthread_barrier_wait(&ready);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
