// Four threads work in turns, with a lock held, and nap between. Prints how long they waited for CPUs, and for how long they lived, in
// nanoseconds, by the kernel's account.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ullong waited, lived;

static unsigned long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * 1000000000 + (unsigned long long)time.tv_nsec;
}

static void *turns(void *unused) {
    (void)unused;
    unsigned long long began = now(), ran, own;
    for (int i = 0; i < 400; i++) {
        pthread_mutex_lock(&lock);
        for (volatile int j = 0; j < 100000; j++) {
        }
        pthread_mutex_unlock(&lock);
        struct timespec time = {0, i % 4 * 300000};
        nanosleep(&time, NULL);
    }
    char path[60];
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
    FILE *account = fopen(path, "r");
    if (account == NULL || fscanf(account, "%llu %llu", &ran, &own) != 2) _exit(1);
    waited += own;
    lived += now() - began;
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, turns, NULL) != 0) return 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%llu %llu\n", waited, lived);
    return 0;
}
