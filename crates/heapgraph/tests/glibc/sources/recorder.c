// Preloaded: keeps which blocks are alive. At SIGUSR2 it writes the address and the usable size of each to $RECORDER_FILE, as
// 64-bit numbers, and renames the file when it is complete.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

// For each GiB of addresses, a byte for each 16 bytes.
#define GIB_BITS 30
#define SHADOW ((size_t)1 << (GIB_BITS - 4))
static uint8_t *shadows[1 << 17];

static uint8_t *shadow_of(void *block) {
    uintptr_t address = (uintptr_t)block;
    uint8_t **shadow = &shadows[address >> GIB_BITS];
    uint8_t *memory = __atomic_load_n(shadow, __ATOMIC_ACQUIRE);
    if (!memory) {
        memory = mmap(0, SHADOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        uint8_t *none = 0;
        if (!__atomic_compare_exchange_n(shadow, &none, memory, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            munmap(memory, SHADOW);
            memory = none;
        }
    }
    return memory + ((address & (((uintptr_t)1 << GIB_BITS) - 1)) >> 4);
}

static void *added(void *block) {
    if (block) *shadow_of(block) = 1;
    return block;
}

static void removed(void *block) {
    if (block) *shadow_of(block) = 0;
}

static void write_all(int signal) {
    (void)signal;
    int saved = errno;
    static uint64_t buffer[8192];
    static char name[4096];
    char *path = getenv("RECORDER_FILE");
    size_t length = 0;
    for (; path[length] && length < sizeof name - 5; length++) name[length] = path[length];
    name[length++] = '.', name[length++] = 'p', name[length] = 0;
    int file = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    size_t used = 0;
    for (uintptr_t gib = 0; gib < 1 << 17; gib++) {
        if (!shadows[gib]) continue;
        for (size_t at = 0; at < SHADOW; at += 8) {
            if (!*(uint64_t *)(shadows[gib] + at)) continue;
            for (size_t next = at; next < at + 8; next++) {
                if (!shadows[gib][next]) continue;
                uintptr_t address = (gib << GIB_BITS) + (next << 4);
                buffer[used++] = address;
                buffer[used++] = malloc_usable_size((void *)address);
                if (used == 8192) {
                    if (write(file, buffer, used * 8) < 0) _exit(9);
                    used = 0;
                }
            }
        }
    }
    if (write(file, buffer, used * 8) < 0) _exit(9);
    close(file);
    rename(name, path);
    errno = saved;
}

void *malloc(size_t size) { return added(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return added(__libc_calloc(count, size)); }
void *memalign(size_t alignment, size_t size) { return added(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
void free(void *block) {
    removed(block);
    __libc_free(block);
}
void *realloc(void *block, size_t size) {
    removed(block);
    void *moved = __libc_realloc(block, size);
    if (!moved && size) added(block);
    return added(moved);
}
void *reallocarray(void *block, size_t count, size_t size) { return realloc(block, count * size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
    void *block = memalign(alignment, size);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}

__attribute__((constructor)) static void begin(void) { signal(SIGUSR2, write_all); }
