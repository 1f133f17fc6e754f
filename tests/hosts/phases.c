/* Allocates in phases, with pauses between them. Each line of output is a moment and what was done before it: CLOCK_MONOTONIC in ms,
   blocks of `first`, blocks of `second`. The first argument says how it ends: returns, killed (by itself), waits. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 100000
static void *volatile kept[MOST];
static int kept_count;
static long first_count, second_count;

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000L + t.tv_nsec / 1000000L;
}

static void say(void)
{
    char line[100];
    int n = snprintf(line, sizeof line, "%ld %ld %ld\n", now(), first_count, second_count);
    if (write(1, line, n) != n)
        _exit(1);
}

/* Blocks of 100 bytes; one in ten is kept. */
__attribute__((noinline)) static void first(void)
{
    void *block = malloc(100);
    memset(block, 1, 100);
    if (first_count++ % 10 == 0 && kept_count < MOST)
        kept[kept_count++] = block;
    else
        free(block);
}

/* Blocks of 3000 bytes, freed at once. */
__attribute__((noinline)) static void second(void)
{
    char *volatile block = malloc(3000);
    block[2999] = 1;
    second_count++;
    free(block);
}

static void during(long ms, void (*work)(void))
{
    for (long end = now() + ms; now() < end; usleep(500))
        work();
}

int main(int argc, char **argv)
{
    const char *end = argc > 1 ? argv[1] : "returns";
    const int pause = 600000;
    usleep(pause);
    say();
    usleep(pause);
    during(300, first);
    usleep(pause);
    say();
    usleep(pause);
    during(300, second);
    usleep(pause);
    say();
    usleep(pause);
    while (kept_count > 0)
        free((void *)kept[--kept_count]);
    usleep(pause);
    say();
    usleep(pause);
    if (!strcmp(end, "killed"))
        raise(SIGKILL);
    if (!strcmp(end, "waits"))
        for (;;)
            usleep(pause);
    return 0;
}
