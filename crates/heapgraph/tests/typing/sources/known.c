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

// Linked in the middle.
struct list_head {
    struct list_head *next, *prev;
};

struct job {
    long id;
    struct list_head link;
    char *name;
    struct entry *entry;
};

// Two sizes that malloc rounds to one.
struct red {
    struct list_head link;
    char *name;
    long n[6];
};

struct blue {
    struct list_head link;
    long n[6];
    char *name;
};

// A base struct, of which derived ones have a multiple of the size.
struct object {
    const char *class_name;
    long count;
    long flags;
};

struct image {
    struct object object;
    char *path;
    long width;
    struct point *corner;
};

// A table of functions, which is said to begin blocks of pointers of any kind.
struct functions {
    void (*start)(void);
    void (*stop)(void);
};

struct value {
    int kind;
    union {
        long number;
        char *text;
    };
    struct value *next;
};

static struct value *values;
struct functions *tables[5];
static struct list_head jobs = {&jobs, &jobs}, colors = {&colors, &colors};
struct object *objects[33];
static struct table names;
static struct mesh *meshes[20];
static struct message *messages;
static struct link *links;
struct task *current;
static double *numbers;
// Begins on the last page of data, which is mapped from the file, and ends in the zeroed memory behind it.
struct point *large[1500];
static __thread struct entry *recent;

static void say(void *block, const char *contains) { printf("%lx %s\n", (long)block, contains); }

static struct entry *entry(const char *key, long value, struct entry *next) {
    struct entry *new = malloc(sizeof *new);
    *new = (struct entry){strdup(key), value, next};
    return new;
}

static void insert(struct list_head *link, struct list_head *list) {
    *link = (struct list_head){list, list->prev};
    list->prev->next = link;
    list->prev = link;
}

int main(void) {
    char text[100];
    names.size = 64;
    names.slots = calloc(names.size, sizeof *names.slots);
    say(names.slots, "entry*[]");
    for (int n = 0; n < 1000; n++) {
        sprintf(text, "the key of entry %d", n);
        struct entry **slot = &names.slots[n * 31 % names.size];
        *slot = entry(text, n, *slot);
        names.used++;
        say(*slot, "entry");
        say((*slot)->key, "char[]");
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
        say(mesh->points, "point[]");
        say(mesh->order, "int[]");
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
        say(task, "task");
        say(task->name, "char[]");
    }
    for (int n = 0; n < 40; n++) {
        struct job *job = calloc(1, sizeof *job);
        sprintf(text, "job number %d", n);
        *job = (struct job){n, {0}, strdup(text), entry(text, n, 0)};
        insert(&job->link, &jobs);
        say(job, "job");
        say(job->name, "char[]");
        say(job->entry, "entry");
        struct red *red = calloc(1, sizeof *red);
        struct blue *blue = calloc(1, sizeof *blue);
        red->name = strdup(text);
        blue->name = strdup(text);
        insert(&red->link, &colors);
        insert(&blue->link, &colors);
        say(red, "-red");
        say(blue, "-blue");
    }
    for (int n = 0; n < 30; n++) {
        struct image *image = calloc(1, sizeof *image);
        sprintf(text, "path/of/an/image/%d", n);
        struct point *corner = calloc(1, sizeof *corner);
        *image = (struct image){{"image", n, 0}, strdup(text), n, corner};
        objects[n] = &image->object;
        say(image, "image");
        say(image->path, "char[]");
        say(corner, "point");
    }
    // More than a base struct follows, and no type of this program says what.
    for (int n = 30; n < 33; n++) {
        objects[n] = calloc(3, sizeof *objects[n]);
        for (int m = 0; m < 3; m++) objects[n][m] = (struct object){"other", n, m};
        say(objects[n], "-nothing");
    }
    for (int n = 0; n < 5; n++) {
        void **words = calloc(4, sizeof *words);
        for (int m = 0; m < 4; m++) words[m] = strdup("text");
        tables[n] = (struct functions *)words;
        say(words, "-nothing");
    }
    for (int n = 0; n < 60; n++) {
        struct value *value = calloc(1, sizeof *value);
        sprintf(text, "value number %d", n);
        *value = (struct value){n % 2, {.number = n}, values};
        values = value;
        say(value, "value");
        if (n % 2) {
            value->text = strdup(text);
            say(value->text, "char[]");
        }
    }
    numbers = malloc(1000 * sizeof *numbers);
    for (int n = 0; n < 1000; n++) numbers[n] = n * 0.1;
    say(numbers, "double[]");
    for (int n = 0; n < 1500; n++) {
        large[n] = malloc(sizeof *large[n]);
        *large[n] = (struct point){n, n, n};
        say(large[n], "point");
    }
    recent = entry("a recent entry", 0, 0);
    say(recent, "entry");
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
