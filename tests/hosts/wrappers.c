// Allocates through functions that allocate for their callers, and through functions that make objects. A comment on the line
// of each site has its bytes, and the type that the source says, if it says one.
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct node {
    int kind;
    struct node *next;
    char pad[48];
};
struct text {
    size_t length;
    char bytes[];
};
struct vector {
    char *data;
    size_t length, capacity;
};
typedef struct {
    double x, y;
} point;
struct shape {
    int count;
    struct {
        point *points;
    } inner;
    long *marks;
};

struct item {
    char name[16];
    long values[3];
};

struct base {
    int kind;
};
struct derived {
    struct base base;
    long more[6];
};
struct slots {
    struct node *lead;
    struct item *slots[4];
};
union either {
    struct node *node;
    struct item *item;
};
struct class {
    size_t size;
};
struct large {
    void *block;
};
struct pool {
    struct large *larges;
    int count;
};
struct buffer {
    size_t length;
    char *data;
};
// All objects of an interpreter begin alike.
struct object {
    struct object *next;
    char kind;
};
struct string {
    struct object *next;
    char kind;
    int hash;
    char bytes[1];
};
struct user {
    int id;
    char name[20];
};
// How Lua calls its allocator.
typedef void *function(void *context, void *block, size_t old, size_t size);
struct hooks {
    function *allocate;
    void *context;
};
struct traced {
    struct traced *next;
    size_t size;
};
// Statistics of SQLite: off, the size is passed on as it is.
struct counting {
    int is_on;
    void *(*allocate)(int size);
    int (*rounded)(int size);
    int (*usable)(void *block);
};

static _Atomic size_t used;
void *kept[64];
void *opened;
struct shape *shape;
struct node *first;
// Where blocks are stored that no variable of a function has.
struct node *before, *last;
struct item *items[4];
struct slots many;
struct vector lines;
struct shape *shapes;
struct base *object;
union either either;
struct class class = {72};
struct large larges[4];
struct pool pool = {larges, 0};
struct buffer buffer;
struct traced *traced;
struct object *objects;
// Ends with the call of `realloc`, so that it is not on the stack.
function ends_with_realloc;
__asm__(".text\n"
        ".globl ends_with_realloc\n"
        ".type ends_with_realloc, @function\n"
        "ends_with_realloc:\n"
        "    .cfi_startproc\n"
        "    mov %rsi, %rdi\n"
        "    mov %rcx, %rsi\n"
        "    jmp realloc@plt\n"
        "    .cfi_endproc\n"
        ".size ends_with_realloc, . - ends_with_realloc\n");
struct hooks hooks = {ends_with_realloc, NULL};

NOINLINE static void fail(size_t size) {
    fprintf(stderr, "no memory: %zu\n", size);
    abort();
}

// These allocate for their callers.
NOINLINE void *take(size_t size) {
    void *block = malloc(size ? size : 1);
    if (!block) fail(size);
    return block;
}
// As that of Git does: `malloc` may have no block for a size of 0. GCC makes one test of both conditions.
NOINLINE void *take_some(size_t size) {
    void *block = malloc(size);
    if (!block && !size) block = malloc(1);
    if (!block) fail(size);
    return block;
}
NOINLINE void *take_counted(size_t size, size_t *usable) {
    void *block = malloc(size);
    if (!block) return NULL;
    size_t real = malloc_usable_size(block);
    atomic_fetch_add(&used, real);
    if (usable) *usable = real;
    return block;
}
NOINLINE void *take_nested(size_t size) {
    void *block = take_counted(size, NULL);
    if (!block) fail(size);
    return block;
}
NOINLINE void *take_zeroed(size_t size) {
    void *block = take(size);
    memset(block, 0, size);
    return block;
}
NOINLINE void *take_array(size_t count, size_t size) {
    if (size && count > (size_t)-1 / size) fail(count);
    void *block = malloc(count * size);
    if (!block) fail(count);
    return block;
}
NOINLINE void *take_aligned(size_t alignment, size_t size, FILE *log) {
    void *block;
    int error = posix_memalign(&block, alignment, size);
    if (error) {
        fprintf(log, "posix_memalign(%zu): %d\n", size, error);
        block = NULL;
    }
    return block;
}
NOINLINE void *take_with_header(size_t size) {
    size_t *block = malloc(size + 16);
    if (!block) fail(size);
    block[0] = size;
    return block + 2;
}
NOINLINE static void store(int size, void **out) {
    void *block = malloc(size);
    if (block) used += size;
    *out = block;
}
NOINLINE void *take_stored(size_t size) {
    void *block;
    if (size > 1 << 30) return NULL;
    store((int)size, &block);
    return block;
}

NOINLINE char *take_copy(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = take(size);
    memcpy(copy, text, size);
    return copy;
}
NOINLINE void *take_part(const void *from, size_t size) {
    char *copy = take(size + 1);
    memcpy(copy, from, size);
    copy[size] = '\0';
    return copy;
}
NOINLINE char *take_duplicate(const char *text) {
    char *copy = strdup(text);
    if (!copy) fail(0);
    return copy;
}
// A pool frees it later.
NOINLINE void *take_pooled(struct pool *of, size_t size) {
    void *block = take(size);
    if (!block) return NULL;
    if (getenv("POOL_IS_FULL")) {
        free(block);
        return NULL;
    }
    of->larges[of->count++].block = block;
    return block;
}
NOINLINE void *take_traced(size_t size) {
    struct traced *header = malloc(sizeof *header + size);
    header->size = size;
    header->next = traced;
    traced = header;
    return header + 1;
}
NOINLINE void *take_hooked(struct hooks *with, size_t size, int kind) {
    void *block = with->allocate(with->context, NULL, kind, size);
    if (!block) fail(size);
    return block;
}
NOINLINE void *take_hooked_again(struct hooks *with, void *block, size_t old, size_t size) {
    void *made = with->allocate(with->context, block, old, size);
    if (!made && size) fail(size);
    return made;
}
NOINLINE static void *allocate_counted(int size) {
    void *block = malloc(size);
    if (!block) fail(size);
    return block;
}
NOINLINE static int rounded(int size) {
    return (size + 7) & ~7;
}
NOINLINE static int usable(void *block) {
    return (int)malloc_usable_size(block);
}
struct counting counting = {1, allocate_counted, rounded, usable};
NOINLINE void *take_counting(size_t size) {
    if (size - 1 > 1 << 30) return NULL;
    if (!counting.is_on) return counting.allocate((int)size);
    void *block = counting.allocate(counting.rounded((int)size));
    if (block) used += counting.usable(block);
    return block;
}
// A pointer that is called like that, but no path without more.
NOINLINE void *object_counted(size_t size) {
    int all = counting.rounded((int)size);
    void *object = counting.allocate(all); // site: 2104
    if (object) used += counting.usable(object);
    return object;
}

// These make something.
NOINLINE struct node *node_new(int kind) {
    struct node *made = take(sizeof *made); // site: 64 node
    made->kind = kind;
    made->next = 0;
    return made;
}
NOINLINE struct node *node_bare(void) {
    return take_zeroed(sizeof(struct node)); // site: 64 node
}
NOINLINE struct text *text_new(const char *from, size_t length) {
    struct text *made = take(sizeof *made + length + 1); // site: 14 text
    made->length = length;
    memcpy(made->bytes, from, length + 1);
    return made;
}
NOINLINE long *longs(size_t count) {
    long *made = take(count * sizeof(long)); // site: 800 long int[]
    used++;
    return made;
}
NOINLINE void vector_reserve(struct vector *vector, size_t size) {
    vector->data = realloc(vector->data, size); // site: 900 char[]
    vector->capacity = size;
}
NOINLINE char *letters(size_t size) {
    char *made = take(size); // site: 1000 char[]
    for (size_t at = 0; at < size; at++) made[at] = 'a' + at % 26;
    return made;
}
NOINLINE void shape_fill(struct shape *into) {
    into->inner.points = take_array(into->count, sizeof(point)); // site: 160 point[]
    into->marks = longs(100);
}
NOINLINE void shape_new(int count) {
    shape = take(sizeof *shape); // site: 24 shape
    shape->count = count;
    shape_fill(shape);
}
// Two blocks of one size: each has the pointer that receives it.
NOINLINE struct item *item_new(const char *name, size_t size) {
    char *copy = malloc(size); // site: 40 char[]
    strcpy(copy, name);
    struct item *made = malloc(sizeof *made); // site: 40 item
    memcpy(made->name, copy, 16);
    free(copy);
    return made;
}
// The size is passed on, but what is left in the register of results is none.
NOINLINE void open_both(int size) {
    kept[11] = malloc(size); // site: 1100
    opened = malloc(size + 1); // site: 1101
}

// Typed static variables, elements of arrays, and fields of what other pointers lead to.
NOINLINE void store_last(void) {
    last = malloc(sizeof *last); // site: 64 node
    last->next = malloc(sizeof *last); // site: 64 node
}
NOINLINE void store_items(int at) {
    items[at] = malloc(sizeof(struct item)); // site: 40 item
    many.slots[at - 1] = malloc(sizeof(struct item)); // site: 40 item
}
NOINLINE void store_fields(int count) {
    lines.data = calloc(count, 7); // site: 35 char[]
    shapes = malloc(count * sizeof *shapes); // site: 120 shape[]
    shapes[count - 1].marks = calloc(count, sizeof(long)); // site: 40 long int[]
}
NOINLINE void take_item(struct item *item) {
    item->values[0] = 1;
    kept[13] = item;
}
NOINLINE void give_item(void) {
    take_item(malloc(sizeof(struct item))); // site: 40 item
}
// The type of the pointer is not that of the block, or there are several.
NOINLINE void store_others(int count) {
    object = malloc(sizeof(struct derived)); // site: 56
    either.node = malloc(64 * count); // site: 320
    last = kept[14] = malloc(class.size); // site: 72
    void *both = malloc(8 * count); // site: 40
    items[0] = both;
    shapes->marks = both;
}

// Only a jump through a table leads to the call.
NOINLINE void by_kind(int kind, size_t count, struct shape *into) {
    switch (kind) {
    case 1: used += 1; break;
    case 2: kept[35] = into; break;
    case 3: into->count--; break;
    case 4: used ^= count; break;
    case 5: before = first; break;
    case 6: kept[36] = kept[35]; break;
    default: return;
    }
    into->marks = malloc(count * sizeof(long)); // site: 56 long int[]
}

// What makes objects of all kinds is converted by its callers. The block may end before the end of the struct.
NOINLINE struct object *object_new(int kind, size_t size) {
    struct object *made = take(size); // site: 47 string
    made->kind = kind;
    made->next = objects;
    objects = made;
    return made;
}
NOINLINE struct string *string_new(const char *text) {
    struct object *made = object_new(2, offsetof(struct string, bytes) + strlen(text) + 1);
    struct string *string = (struct string *)made;
    strcpy(string->bytes, text);
    return string;
}
// One of some kinds is a string.
NOINLINE struct object *object_of(int kind, size_t size) {
    struct object *made = take(size); // site: 30
    if (kind == 2) {
        struct string *string = (struct string *)made;
        string->hash = 0;
        kept[33] = string;
    }
    made->kind = kind;
    return made;
}

// These have the names of wrappers.
NOINLINE void bench_malloc(int size) {
    kept[15] = malloc(size); // site: 1200
}
static inline void inlined_malloc(int size) {
    kept[27] = malloc(size); // site: 1800
}
NOINLINE struct node *node_malloc(void) {
    struct node *made = malloc(sizeof *made); // site: 64 node
    return made;
}
NOINLINE struct node *node_hooked_malloc(struct hooks *with) {
    return with->allocate(with->context, NULL, 0, sizeof(struct node)); // site: 64 node
}
NOINLINE char *user_strdup(struct user *user) {
    return strdup(user->name); // site: 10 char[]
}
NOINLINE char *joined_strdup(const char *first, const char *second) {
    size_t at = strlen(first);
    char *made = malloc(at + strlen(second) + 1); // site: 11 char[]
    memcpy(made, first, at);
    strcpy(made + at, second);
    return made;
}
NOINLINE void *buffer_malloc(struct buffer *into, size_t size) {
    into->data = malloc(size); // site: 1300 char[]
    into->length = size;
    return into->data;
}

NOINLINE static void use(int one) {
    kept[0] = take(100 * one); // site: 100
    kept[1] = take_nested(200 * one); // site: 200
    kept[2] = take_zeroed(300 * one); // site: 300
    kept[3] = take_array(10 * one, 40); // site: 400
    kept[4] = take_aligned(64, 500 * one, stderr); // site: 500
    kept[5] = take_with_header(600 * one); // site: 616
    kept[6] = take_stored(700 * one); // site: 700
    kept[7] = node_new(one);
    first = node_bare();
    kept[8] = text_new("hello", 5 * one);
    struct vector vector = {0};
    vector_reserve(&vector, 900 * one);
    kept[9] = vector.data;
    kept[10] = letters(1000 * one);
    shape_new(10 * one);
    kept[12] = item_new("a name of a thing", 40 * one);
    open_both(1100 * one);
    store_last();
    store_items(one);
    store_fields(5 * one);
    give_item();
    store_others(5 * one);
    kept[16] = take_copy("twelve bytes" + one - 1); // site: 13
    kept[17] = take_part("part" + one - 1, 3); // site: 4
    kept[18] = take_duplicate("a duplicate" + one - 1); // site: 12 char[]
    kept[19] = take_pooled(&pool, 1400 * one); // site: 1400
    kept[20] = take_traced(1500 * one); // site: 1516
    kept[21] = take_hooked(&hooks, 1600 * one, 4); // site: 1600
    kept[22] = take_hooked_again(&hooks, NULL, 0, 1700 * one); // site: 1700
    kept[28] = take_some(1900 * one); // site: 1900
    kept[29] = take_counting(2000 * one); // site: 2000
    kept[30] = object_counted(2100 * one);
    bench_malloc(1200 * one);
    inlined_malloc(1800 * one);
    kept[23] = node_malloc();
    kept[24] = node_hooked_malloc(&hooks);
    struct user user = {.name = "some name"};
    kept[25] = user_strdup(&user);
    kept[26] = joined_strdup("first", "other" + one - 1);
    buffer_malloc(&buffer, 1300 * one);
    struct shape other = {0};
    by_kind(3 * one, 7 * one, &other);
    kept[37] = other.marks;
    kept[31] = string_new("ab" + one - 1);
    kept[32] = string_new("abcdefghijk" + one - 1);
    kept[34] = object_of(one, 30 * one);
}

int main(int argc, char **argv) {
    (void)argv;
    use(argc);
    return 0;
}
