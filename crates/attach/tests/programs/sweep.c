// Four threads take turns to write the next number to every page of an array, from the first to the last. At any moment
// the pages hold a number up to some page, and the number before behind it.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 4096, WORDS = 512 };
static volatile uint64_t *pages;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun;
static uint64_t number;

static void *sweep(void *nothing) {
    for (;;) {
        pthread_mutex_lock(&lock);
        number++;
        for (int page = 0; page < PAGES; page++)
            pages[page * WORDS] = number;
        pthread_mutex_unlock(&lock);
    }
    return nothing;
}

// A thread that is being created blocks all signals until it runs its own code.
static void *begin(void *nothing) {
    pthread_barrier_wait(&begun);
    return sweep(nothing);
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 4;
    pages = mmap(0, PAGES * WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_barrier_init(&begun, 0, threads);
    for (int i = 1; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, begin, 0))
            return 3;
    }
    pthread_barrier_wait(&begun);
    printf("%lx\n", (unsigned long)pages);
    fflush(stdout);
    sweep(0);
}
