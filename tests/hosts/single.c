/* The C library takes its short ways (no locks, no atomic instructions) as long as a process has never had a second
   thread: it must not have one of ours. */
#include "work.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void allocate_and_print(double seconds)
{
    FILE *null = fopen("/dev/null", "w");
    for (double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds; seconds_of(CLOCK_THREAD_CPUTIME_ID) < end;)
        for (int i = 0; i < 1000; i++) {
            void *volatile block = malloc(i);
            putc(i, null);
            free(block);
        }
    fclose(null);
}

static void *nothing(void *argument) { return argument; }

int main(void)
{
    printf("at start %d\n", __libc_single_threaded);
    allocate_and_print(0.4);
    printf("after work %d\n", __libc_single_threaded);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("in a child %d\n", __libc_single_threaded);
        return 0;
    }
    waitpid(child, 0, 0);
    pthread_t thread;
    pthread_create(&thread, 0, nothing, 0);
    printf("with a thread %d\n", __libc_single_threaded);
    pthread_join(thread, 0);
    return 0;
}
