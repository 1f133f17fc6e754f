// A heap of which parts grow all the time, once, up to a bound, and not at all.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Leaked: a list that a variable holds.
struct session {
    struct session *next;
    char *user;
    long values[10];
};
static struct session *sessions;

// Leaked: nothing holds them.
struct lost {
    long values[30];
};

// Bounded: the oldest is replaced.
struct job {
    long values[50];
};
static struct job *jobs[64];

// Grows once.
static long *table;

static void *zeroed(size_t size) {
    void *block = calloc(1, size);
    if (!block) abort();
    return block;
}

static void leak(int number) {
    struct session *session = zeroed(sizeof *session);
    session->user = zeroed(40);
    snprintf(session->user, 40, "user %d", number);
    session->next = sessions;
    sessions = session;
    struct lost *volatile lost = zeroed(sizeof *lost);
    lost->values[0] = number;
    lost = NULL;
}

// Larger than what the C library keeps in its caches: all of it goes back to the end of the heap.
static void churn(void) {
    void *blocks[100];
    for (int i = 0; i < 100; i++) blocks[i] = zeroed(1100 + i * 8);
    for (int i = 0; i < 100; i++) free(blocks[i]);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 12000;
    table = zeroed(1000 * sizeof *table);
    for (int i = 0; i < 64; i++) jobs[i] = zeroed(sizeof *jobs[i]);
    fprintf(stderr, "ready\n");
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 4; i++) leak(round);
        free(jobs[round % 64]);
        jobs[round % 64] = zeroed(sizeof *jobs[0]);
        churn();
        if (round == 100) {
            table = realloc(table, 100000 * sizeof *table);
            if (!table) abort();
            memset(table, 0, 100000 * sizeof *table);
        }
        usleep(5000);
    }
    return 0;
}
