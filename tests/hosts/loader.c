/* Opens, uses and closes a library all the time while another thread computes. */
#include "work.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

WORKER(steady_work)

static void *steady(void *nothing)
{
    steady_work(1);
    return nothing;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    pthread_t thread;
    pthread_create(&thread, 0, steady, 0);
    int opened = 0, failed = 0;
    for (; opened < 200; opened++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        void (*work)(double) = library ? (void (*)(double))dlsym(library, "plugin_work") : 0;
        if (work)
            work(opened % 8 ? 0.0005 : 0.03);
        if (!work || dlclose(library))
            failed++;
    }
    pthread_join(thread, 0);
    printf("opened %d times, %d failed\n", opened, failed);
    return 0;
}
