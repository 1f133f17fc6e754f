// A C program whose data is held by local variables. It prints what its blocks contain.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item {
    struct item *next;
    char *name;
    double weight;
};

struct store {
    struct item *first;
    struct item **by_number;
    long count;
    int *flags;
    double limits[4];
};

struct job {
    struct store *store;
    struct job *after;
    char title[48];
};

static void say(void *block, const char *contains) { printf("%lx %s\n", (long)block, contains); }

static void __attribute__((noinline)) serve(struct store *store, struct job *jobs) {
    double *samples = malloc(300 * sizeof *samples);
    for (int n = 0; n < 300; n++) samples[n] = n * 0.5;
    // Free, and then another block.
    struct item *gone = calloc(1, sizeof *gone);
    long *numbers = malloc(9 * sizeof *numbers);
    gone->name = 0;
    printf("%s\n", gone->name ? "?" : "");
    free(gone);
    free(numbers);
    long *instead = malloc(3 * sizeof *instead);
    for (int n = 0; n < 3; n++) instead[n] = n + 1;
    struct job *job = calloc(1, sizeof *job);
    strcpy(job->title, "the last job");
    job->store = store;
    job->after = jobs;
    say(samples, "double[]");
    say(instead, "-long[]");
    say(job, "job");
    puts("ready");
    fflush(stdout);
    for (;;) {
        pause();
        printf("%p %p %p %p %ld\n", (void *)samples, (void *)instead, (void *)job, (void *)store, store->count);
    }
}

int main(void) {
    struct store store = {0};
    struct job *jobs = 0;
    char text[100];
    store.by_number = calloc(500, sizeof *store.by_number);
    store.flags = calloc(500, sizeof *store.flags);
    for (int n = 0; n < 500; n++) {
        struct item *item = malloc(sizeof *item);
        sprintf(text, "the name of item %d", n);
        *item = (struct item){store.first, strdup(text), n};
        store.first = item;
        store.by_number[n] = item;
        store.count++;
        say(item, "item");
        say(item->name, "char[]");
    }
    for (int n = 0; n < 40; n++) {
        struct job *job = calloc(1, sizeof *job);
        sprintf(job->title, "job number %d", n);
        job->store = &store;
        job->after = jobs;
        jobs = job;
        say(job, "job");
    }
    say(store.by_number, "item*[]");
    say(store.flags, "int[]");
    serve(&store, jobs);
    printf("%ld\n", store.count);
}
