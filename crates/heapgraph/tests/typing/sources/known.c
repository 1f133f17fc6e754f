// A C program that prints what its blocks contain.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
    char *key;
    long value;
    struct entry *next;
};

struct table {
    size_t size, used;
    struct entry **slots;
};

struct point {
    double x, y, z;
};

struct mesh {
    struct point *points;
    int count;
    int *order;
    struct mesh *parent;
};

struct message {
    struct message *next;
    size_t length;
    char text[];
};

// Begins with another struct, and is linked by it.
struct link {
    struct link *next;
    int kind;
};

struct task {
    struct link link;
    char *name;
    struct mesh *mesh;
    long times[6];
};

static struct table names;
static struct mesh *meshes[20];
static struct message *messages;
static struct link *links;
struct task *current;
static double *numbers;
static __thread struct entry *recent;

static void say(void *block, const char *contains) { printf("%lx %s\n", (long)block, contains); }

static struct entry *entry(const char *key, long value, struct entry *next) {
    struct entry *new = malloc(sizeof *new);
    *new = (struct entry){strdup(key), value, next};
    return new;
}

int main(void) {
    char text[100];
    names.size = 64;
    names.slots = calloc(names.size, sizeof *names.slots);
    say(names.slots, "[entry*]");
    for (int n = 0; n < 1000; n++) {
        sprintf(text, "the key of entry %d", n);
        struct entry **slot = &names.slots[n * 31 % names.size];
        *slot = entry(text, n, *slot);
        names.used++;
        say(*slot, "entry");
        say((*slot)->key, "[u8]");
    }
    for (int n = 0; n < 20; n++) {
        struct mesh *mesh = meshes[n] = calloc(1, sizeof *mesh);
        mesh->count = n * 3 + 5;
        mesh->points = calloc(mesh->count, sizeof *mesh->points);
        for (int m = 0; m < mesh->count; m++) mesh->points[m] = (struct point){m, n, 0.5};
        mesh->order = malloc(mesh->count * sizeof *mesh->order);
        memset(mesh->order, 1, mesh->count * sizeof *mesh->order);
        mesh->parent = n ? meshes[n / 2] : 0;
        say(mesh, "mesh");
        say(mesh->points, "[point]");
        say(mesh->order, "[int]");
    }
    for (int n = 0; n < 100; n++) {
        struct message *message = malloc(sizeof *message + n * 10 + 1);
        *message = (struct message){messages, n * 10};
        memset(message->text, 'a' + n % 20, n * 10 + 1);
        messages = message;
        say(message, "message");
    }
    for (int n = 0; n < 50; n++) {
        struct task *task = calloc(1, sizeof *task);
        task->link = (struct link){links, n};
        sprintf(text, "task number %d", n);
        task->name = strdup(text);
        task->mesh = meshes[n % 20];
        links = &task->link;
        current = task;
        // Only the last one is known to be more than a link.
        say(task, n == 49 ? "task" : "-");
        say(task->name, n == 49 ? "[u8]" : "-[u8]");
    }
    numbers = malloc(1000 * sizeof *numbers);
    for (int n = 0; n < 1000; n++) numbers[n] = n * 0.1;
    say(numbers, "[double]");
    recent = entry("a recent entry", 0, 0);
    say(recent, "entry");
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
