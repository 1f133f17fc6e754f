/* Unusual stacks: small ones, fibres, and stacks on the heap. */
#define _GNU_SOURCE
#include "work.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

WORKER(small_stack_work)
WORKER(fibre_work)

#define THREADS 16
#define FIBRES 8

/* Uses up most of a small stack, then works at the bottom. */
__attribute__((noinline)) static int go_down(int left)
{
    volatile char room[1024];
    room[0] = (char)left;
    if (left == 0) {
        small_stack_work(0.05);
        return room[0];
    }
    return go_down(left - 1) + room[0];
}

static void *small_stack(void *result)
{
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum = go_down(40);
    *(int *)result = sum;
    return 0;
}

static int small_stacks(void)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_t threads[THREADS];
    int results[THREADS], right = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], &small, small_stack, &results[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
        right += results[i] == 820;
    }
    printf("%d of %d right\n", right, THREADS);
    return 0;
}

static ucontext_t fibres[FIBRES], home;
static int switches;

static void fibre(int mine)
{
    for (;;) {
        fibre_work(0.0003);
        switches++;
        int next = (mine + 1) % FIBRES;
        swapcontext(&fibres[mine], next == 0 ? &home : &fibres[next]);
    }
}

/* Fibres whose stacks lie on the heap, switched after 0.3 ms of work. */
static int fibre_switching(void)
{
    for (int i = 0; i < FIBRES; i++) {
        getcontext(&fibres[i]);
        fibres[i].uc_stack.ss_size = 64 << 10;
        fibres[i].uc_stack.ss_sp = malloc(64 << 10);
        makecontext(&fibres[i], (void (*)(void))fibre, 1, i);
    }
    int laps = 0;
    for (; laps < 400; laps++)
        swapcontext(&home, &fibres[0]);
    printf("%s\n", switches == laps * FIBRES ? "all switches made" : "switches lost");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "fibres"))
        return fibre_switching();
    return small_stacks();
}
