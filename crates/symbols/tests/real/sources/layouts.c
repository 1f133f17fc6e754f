// Tells the layouts of its own types and the places of its variables. See tests/real/layouts.rs for the lines.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum color { RED, GREEN };
typedef struct {
    int x, y;
} point;
union value {
    double number;
    char *text;
    struct node *node;
};
struct bits {
    unsigned a : 3, b : 13;
    void *after;
};
struct hidden;
struct node {
    struct node *next;
    point at;
    enum color color;
    union value value;
    struct bits bits;
    const char *const *names;
    void (*call)(int);
    void *any;
    struct hidden *hidden;
    union {
        long number;
        struct {
            char *first;
            struct node *second;
        };
    };
    int grid[2][3];
    struct node *slots[4];
    size_t count;
    struct node *more[];
};

struct node *head;
static struct node pool[3];
static __thread struct node *current;
__thread int depth = 5;
extern char __ehdr_start;

#define TYPE(name) printf("type|%s|%zu\n", #name, sizeof(struct name))
#define FIELD(name, field) \
    printf("field|%s|%s|%zu|%zu\n", #name, #field, offsetof(struct name, field), sizeof(((struct name *)0)->field))
#define STATIC(name, place, type) \
    printf("static|%s|%zu|%s|%zu\n", name, (size_t)((char *)&place - &__ehdr_start), type, sizeof(place))
#define LOCAL(name, place, type)                                                               \
    do {                                                                                       \
        char *pointer;                                                                         \
        __asm__("mov %%fs:0, %0" : "=r"(pointer));                                             \
        printf("thread local|%s|%zu|%s|%zu\n", name, (size_t)(pointer - (char *)&place), type, \
               sizeof(place));                                                                 \
    } while (0)

int main(void) {
    static int calls;
    calls++;
    TYPE(node);
    TYPE(bits);
    FIELD(node, next);
    FIELD(node, at);
    FIELD(node, color);
    FIELD(node, value);
    FIELD(node, bits);
    FIELD(node, names);
    FIELD(node, call);
    FIELD(node, hidden);
    FIELD(node, number);
    FIELD(node, grid);
    FIELD(node, slots);
    FIELD(node, count);
    FIELD(bits, after);
    printf("field|node|value.node|%zu|8\n", offsetof(struct node, value));
    printf("field|node|at.y|%zu|4\n", offsetof(struct node, at.y));
    printf("type|point|%zu\n", sizeof(point));
    printf("type|value|%zu\n", sizeof(union value));
    printf("target|node|next|node\n");
    printf("target|node|hidden|hidden\n");
    printf("target|node|names|char*\n");
    printf("count|node|grid|2\n");
    printf("count|node|slots|4\n");
    printf("count|node|more|0\n");
    STATIC("head", head, "node*");
    STATIC("pool", pool, "node[3]");
    STATIC("main::calls", calls, "int");
    LOCAL("current", current, "node*");
    LOCAL("depth", depth, "int");
    current = &pool[0];
    head = current;
    return pool[1].count != 0;
}
