/* Allocations with known numbers, and allocations at unusual moments. The first argument says which. Each prints what a program
   can see of its allocator: recorded, it must be the same as alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;
static void *volatile sink;
static int wrong;

static void *used(void *block)
{
    sink = block;
    return block;
}

#define SAME(what, is, should)                                                                  \
    do {                                                                                        \
        long is_ = (long)(is), should_ = (long)(should);                                        \
        if (is_ != should_)                                                                     \
            wrong = 1, printf("%s is %ld, not %ld (line %d)\n", what, is_, should_, __LINE__);  \
    } while (0)

/* Every entry point: 12 allocations of 3010 bytes that succeed, 12 ends. */
__attribute__((noinline)) static void every_entry(void)
{
    char *a = used(malloc(100));                            /* 100 */
    strcpy(a, "kept");
    a = used(realloc(a, 200));                              /* 200 */
    SAME("content", strcmp(a, "kept"), 0);
    free(a);
    char *b = used(realloc(NULL, 300));                     /* 300 */
    errno = 0;
    SAME("too large", (long)used(realloc(b, PTRDIFF_MAX)), 0);
    SAME("errno", errno, ENOMEM);
    b[299] = 1;
    errno = 0;
    SAME("overflow", (long)used(reallocarray(b, SIZE_MAX / 2, 4)), 0);
    SAME("errno", errno, ENOMEM);
    errno = 0;
    volatile size_t many = SIZE_MAX / 2;
    SAME("overflow", (long)used(calloc(many, 4)), 0);
    SAME("errno", errno, ENOMEM);
    errno = 77;
    SAME("realloc to 0", (long)used(realloc(b, 0)), 0);
    char *c = used(calloc(8, 50));                          /* 400 */
    for (int i = 0; i < 400; i++)
        if (c[i])
            SAME("zeroed", c[i], 0);
    c = used(reallocarray(c, 10, 50));                      /* 500 */
    free(c);
    char *d = used(memalign(64, 60)), *e = used(aligned_alloc(128, 128)), *f = NULL; /* 60, 128 */
    SAME("alignment", (uintptr_t)d % 64 + (uintptr_t)e % 128, 0);
    SAME("posix_memalign", posix_memalign((void **)&f, 4096, 112), 0); /* 112 */
    SAME("alignment", (uintptr_t)f % 4096, 0);
    void *same = f;
    SAME("posix_memalign", posix_memalign((void **)&f, 3, 112), EINVAL);
    SAME("untouched", f == same, 1);
    free(d), free(e), free(f);
    char *g = used(valloc(600)), *h = used(pvalloc(10)); /* 600, 10 */
    SAME("alignment", ((uintptr_t)g | (uintptr_t)h) % 4096, 0);
    free(g), free(h);
    char *i = used(malloc(600)); /* 600 */
    SAME("usable", malloc_usable_size(i) >= 600, 1);
    free(i);
    void *empty = used(malloc(0)); /* 0 */
    SAME("not null", empty != NULL, 1);
    free(empty);
    free(NULL);
    SAME("errno", errno, 77);
}

static void entries(void)
{
    for (int i = 0; i < 100; i++)
        every_entry();
}

/* Of 1000 rounds: 1000 blocks freed at once (temporary), 1000 after another allocation, 1000 reallocated before they are freed. */
__attribute__((noinline)) static void temporary_blocks(void)
{
    for (int i = 0; i < 1000; i++) {
        free(used(malloc(40)));
        void *a = used(malloc(48)), *b = used(malloc(56));
        free(a);
        b = used(realloc(b, 5000));
        void *c = used(malloc(64));
        free(b);
        free(c);
    }
}

/* Of 300 blocks of 1000 bytes, 200 live at the end. */
__attribute__((noinline)) static void leaked(void)
{
    for (int i = 0; i < 300; i++) {
        void *block = used(malloc(1000));
        if (i % 3 == 0)
            free(block);
    }
}

/* 64 MiB at the highest moment, then half of it, then 48 MiB of another size. */
static void known_peak(void)
{
    enum { N = 8192 };
    static void *all[N];
    for (int i = 0; i < N; i++)
        all[i] = used(malloc(8192));
    for (int i = 0; i < N; i += 2)
        free(all[i]);
    for (int i = 0; i < N; i += 2)
        all[i] = i % 4 == 0 ? used(malloc(8000)) : NULL;
    for (int i = 0; i < N; i++)
        free(all[i]);
}

static pthread_barrier_t barrier;

/* Each of 8 threads holds 8 MiB in blocks of 1000 bytes at the barrier, the highest moment: 64 MiB. */
static void *part_of_peak(void *nothing)
{
    enum { N = 8388 };
    void **all = malloc(N * sizeof *all);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++)
            all[i] = malloc(round ? 500 : 1000);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < N; i++)
            free(all[i]);
        pthread_barrier_wait(&barrier);
    }
    free(all);
    return nothing;
}

static void peak_of_threads(void)
{
    pthread_t threads[8];
    /* A peak of one thread alone first: changes that its successors keep to themselves must not add up. */
    enum { N = 60 };
    void *all[N];
    for (int i = 0; i < N; i++)
        all[i] = used(malloc(1 << 20));
    for (int i = 0; i < N; i++)
        free(all[i]);
    pthread_barrier_init(&barrier, NULL, 8);
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, part_of_peak, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

/* Threads that free each other's blocks. */
static size_t exchanged;
static void *_Atomic places[1024];

static void *exchange(void *seed)
{
    uint32_t random = (uintptr_t)seed * 2654435761u + 1;
    for (size_t i = 0; i < exchanged; i++) {
        random = random * 1664525 + 1013904223;
        void *block = malloc(16 + (random >> 8) % 200);
        *(char *)block = 1;
        free(__atomic_exchange_n(&places[random >> 22], block, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void exchanges(int n, size_t each)
{
    exchanged = each;
    pthread_t threads[64];
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, exchange, (void *)(intptr_t)i);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 1024; i++)
        free(places[i]);
}

/* Children: that live on and allocate, that exec, that free their parent's blocks, by every call that makes one. */
static int ended_with(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

__attribute__((noinline)) static void in_the_child(int n)
{
    for (int i = 0; i < n; i++) {
        char *block = used(malloc(24 + i % 1000));
        block[0] = 1;
        if (i % 2)
            free(block);
    }
}

static void children(void)
{
    char *parents[100];
    for (int i = 0; i < 100; i++)
        parents[i] = strdup("a block of the parent");
    for (int how = 0; how < 3; how++) {
        pid_t child = how < 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            in_the_child(how == 1 ? 5000 : 100);
            for (int i = 0; i < 100; i++) {
                parents[i] = realloc(parents[i], 100);
                free(parents[i]);
            }
            in_the_child(how == 1 ? 5000 : 100);
            _exit(40 + how);
        }
        printf("child %d\n", ended_with(child));
    }
    pid_t child = vfork();
    if (child == 0) {
        free(used(malloc(100)));
        execl("/bin/true", "true", NULL);
        _exit(9);
    }
    printf("vfork %d\n", ended_with(child));
    char *arguments[] = {"sh", "-c", "exit 5", NULL};
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0)
        printf("posix_spawn %d\n", ended_with(child));
    printf("system %d\n", WEXITSTATUS(system("exit 6")));
    if ((child = fork()) == 0) {
        execl("/bin/sh", "sh", "-c", "exit 7", NULL);
        _exit(9);
    }
    printf("exec %d\n", ended_with(child));
    /* The child of a child, which forks before it has tables. */
    fflush(stdout);
    if ((child = fork()) == 0) {
        if ((child = fork()) == 0) {
            in_the_child(3000);
            _exit(8);
        }
        int inner = ended_with(child);
        in_the_child(3000);
        exit(inner);
    }
    printf("grandchild %d\n", ended_with(child));
    for (int i = 0; i < 100; i++)
        free(parents[i]);
}

/* Threads that allocate while another forks. */
static volatile int over;

static void *allocates_on(void *nothing)
{
    while (!over)
        free(used(malloc(100)));
    return nothing;
}

static void forks_with_threads(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, allocates_on, NULL);
    int well = 0;
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) {
            in_the_child(600);
            _exit(3);
        }
        well += ended_with(child) == 3;
    }
    over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d children ended well\n", well);
}

/* Handlers that allocate, also on alternate stacks, and that jump out. */
static volatile sig_atomic_t handled;
static sigjmp_buf back;
static int jumps;

static void handler(int signal)
{
    (void)signal;
    handled++;
    free(malloc(500));
    if (jumps && handled % 2)
        siglongjmp(back, 1);
}

static void in_handlers(int jump)
{
    static char stack[65536];
    jumps = jump;
    for (int alternate = 0; alternate < 2; alternate++) {
        stack_t new = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = 0};
        sigaltstack(&new, NULL);
        struct sigaction action = {.sa_handler = handler, .sa_flags = alternate ? SA_ONSTACK : 0};
        sigaction(SIGALRM, &action, NULL);
        for (volatile int i = 0; i < 200; i++) {
            if (!sigsetjmp(back, 1))
                raise(SIGALRM);
            free(used(malloc(300)));
        }
    }
    printf("handled %d\n", (int)handled);
}

/* A handler jumps out of whatever is running: of the recorder, too. Only system calls are recorded here: jumping out of malloc
   would break the program when it is alone. */
static void jumps_out(int signal)
{
    (void)signal;
    handled++;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static void maps(int depth)
{
    volatile char frame[64] = {0};
    if (depth > 0)
        maps(depth - 1);
    void *at = mmap(NULL, 256 << 10, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    munmap(at, 256 << 10);
    frame[0]++;
}

static void jumps_out_of_anything(void)
{
    struct sigaction action = {.sa_handler = jumps_out};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 70}, {0, 70}};
    volatile int began = 0;
    while (handled < 3000)
        if (!sigsetjmp(back, 1)) {
            /* On a busy machine, a signal comes before anything that follows: never before there is a place to jump to. */
            if (!began)
                setitimer(ITIMER_REAL, &often, NULL);
            began = 1;
            for (volatile int depth = 0;; depth++)
                maps(depth % 20);
        }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 1000; i++)
        free(used(malloc(300)));
    puts("jumped out");
}

/* Destructors of thread-local storage that allocate, after the C library's. */
static pthread_key_t key;

static void destructor(void *value)
{
    long rounds = (long)value;
    free(used(malloc(70)));
    sink = malloc(80);
    free(sink);
    if (rounds > 1)
        pthread_setspecific(key, (void *)(rounds - 1));
}

static void *has_value(void *nothing)
{
    pthread_setspecific(key, (void *)3);
    free(used(malloc(90)));
    return nothing;
}

static void destructors(void)
{
    pthread_key_create(&key, destructor);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, has_value, NULL);
        pthread_join(thread, NULL);
    }
}

static void *one_block(void *nothing)
{
    free(used(malloc(123)));
    return nothing;
}

static void short_threads(int n)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    int well = 0;
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        if (!pthread_create(&thread, &small, one_block, NULL))
            well += !pthread_join(thread, NULL);
    }
    printf("%d threads\n", well);
}

/* A reallocation to nothing frees its block, and is no allocation. */
__attribute__((noinline)) static void to_nothing(int n)
{
    for (int i = 0; i < n; i++) {
        void *block = used(realloc(NULL, 40));
        SAME("realloc to 0", (long)used(realloc(block, 0)), 0);
    }
}

static void *lives_on(void *nothing)
{
    void *block = malloc(321);
    pthread_barrier_wait(&barrier);
    free(block);
    return nothing;
}

static void live_threads(int n)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    pthread_t *threads = calloc(n, sizeof *threads);
    pthread_barrier_init(&barrier, NULL, n + 1);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], &small, lives_on, NULL))
            exit(9);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    printf("%d threads at a time\n", n);
}

__attribute__((noinline)) static int deep(int n)
{
    volatile char frame[32] = {0};
    if (n % 1000 == 0)
        free(used(malloc(60)));
    return n ? deep(n - 1) + frame[0] + 1 : 0;
}

static void *recursion(void *nothing)
{
    printf("%d deep\n", deep(100000));
    return nothing;
}

static void deep_recursion(void)
{
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, 256 << 20);
    pthread_t thread;
    pthread_create(&thread, &large, recursion, NULL);
    pthread_join(thread, NULL);
}

/* Fibres on stacks between pages that cannot be read, which come and go at the same addresses in other sizes. */
static ucontext_t hub, fibre;

static void fibre_body(void)
{
    for (int i = 0; i < 3; i++) {
        free(used(malloc(200)));
        swapcontext(&fibre, &hub);
        sink = malloc(20);
        free(sink);
    }
}

static void fibres(void)
{
    enum { PAGE = 4096, ROOM = 64 * PAGE };
    int switches = 0;
    char *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2000; i++) {
        /* The whole room is one mapping at times, so that the memory behind a stack was readable when the stack was first seen. */
        size_t at = (1 + i * 7 % 40) * PAGE, size = (4 + i % 5) * PAGE;
        if (i % 3 == 0)
            mmap(room, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        getcontext(&fibre);
        fibre.uc_stack.ss_sp = room + at;
        fibre.uc_stack.ss_size = size;
        fibre.uc_link = &hub;
        makecontext(&fibre, fibre_body, 0);
        for (int turn = 0; turn < 4; turn++) {
            swapcontext(&hub, &fibre);
            switches++;
            if (turn == 1) {
                munmap(room, at);
                munmap(room + at + size, ROOM - at - size);
            }
        }
        if (i % 3 != 2)
            mmap(room, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        else
            munmap(room, ROOM);
        if (i % 3 == 2)
            room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    printf("%d switches\n", switches);
}

/* A stack without an end: what lies behind it looks like more frames, and is unmapped at some time. */
__attribute__((noinline)) static void on_a_stack(void)
{
    free(used(malloc(10)));
    for (int i = 0; i < 3; i++)
        free(used(malloc(20)));
}

__attribute__((noinline)) static void run_on(char *top)
{
    __asm__ volatile("mov %%rsp, %%rbx\n mov %0, %%rsp\n call *%1\n mov %%rbx, %%rsp"
                     :
                     : "r"(top), "r"(on_a_stack)
                     : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void endless_stacks(void)
{
    enum { PAGE = 4096 };
    int runs = 0;
    for (int i = 0; i < 300; i++) {
        char *room = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *top = room + 16 * PAGE;
        for (int j = 0; j < 16 * PAGE / 8; j++)
            ((void **)top)[j] = (char *)run_on + 16;
        for (int turn = 0; turn < 6; turn++, runs++) {
            run_on(top);
            if (turn == 2)
                i % 2 ? munmap(top, 16 * PAGE) : mprotect(top, 16 * PAGE, PROT_NONE);
        }
        munmap(room, 32 * PAGE);
    }
    printf("%d runs\n", runs);
}

static jmp_buf out;

__attribute__((noinline)) static void jumps_from(int n)
{
    free(used(malloc(30 + n)));
    if (n == 0)
        longjmp(out, 1);
    jumps_from(n - 1);
    sink = NULL;
}

static void longjumps(void)
{
    for (volatile int i = 0; i < 3000; i++)
        if (!setjmp(out))
            jumps_from(i % 30);
    puts("jumped");
}

static void *canceled(void *nothing)
{
    for (;;) {
        free(used(malloc(64)));
        pthread_testcancel();
    }
    return nothing;
}

static void *canceled_anywhere(void *nothing)
{
    /* Not canceled within malloc, which would keep its lock. */
    void *block = used(malloc(64));
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) {
        for (volatile int i = 0; i < 100; i++)
            ;
        ((char *)block)[3]++;
    }
    return nothing;
}

static void cancels(void)
{
    int well = 0;
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        void *result = NULL;
        pthread_create(&thread, NULL, i % 2 ? canceled : canceled_anywhere, NULL);
        usleep(i % 7 * 20);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        well += result == PTHREAD_CANCELED;
    }
    printf("%d canceled\n", well);
}

static void errors(void)
{
    for (int i = 0; i < 3000; i++) {
        errno = 1234;
        void *block = used(malloc(1 + i * 37 % 5000));
        SAME("errno after malloc", errno, 1234);
        block = used(realloc(block, 10 + i));
        SAME("errno after realloc", errno, 1234);
        free(block);
        SAME("errno after free", errno, 1234);
    }
}

static void *errors_of_a_thread(void *nothing)
{
    errors();
    return nothing;
}

/* Memory ends: null, and the right error. The amount that was had is not printed. */
static void no_memory(void)
{
    struct rlimit limit = {600 << 20, 600 << 20};
    setrlimit(RLIMIT_AS, &limit);
    int had = 0;
    void *last = NULL, *block;
    errno = 0;
    while (had < 1000 && (block = malloc(1 << 20))) {
        *(void **)block = last;
        last = block;
        had++;
    }
    SAME("it ends", had < 1000 && had > 100, 1);
    SAME("errno", errno, ENOMEM);
    errno = 0;
    SAME("realloc", (long)used(realloc(last, 900 << 20)), 0);
    SAME("errno", errno, ENOMEM);
    errno = 0;
    SAME("calloc", (long)used(calloc(1000, 1 << 20)), 0);
    SAME("errno", errno, ENOMEM);
    void *aligned = &errno;
    SAME("posix_memalign", posix_memalign(&aligned, 4096, 900 << 20), ENOMEM);
    /* Small blocks until nothing is left at all. */
    int small = 0;
    void *chain = NULL;
    while ((block = malloc(4000))) {
        *(void **)block = chain;
        chain = block;
        small++;
    }
    SAME("errno", errno, ENOMEM);
    while (chain) {
        block = *(void **)chain;
        free(chain);
        chain = block;
    }
    while (last) {
        block = *(void **)last;
        free(last);
        last = block;
    }
    puts("memory ended and came back");
}

static void settings(void)
{
    SAME("mallopt", mallopt(M_MMAP_THRESHOLD, 1 << 20), 1);
    void *a = used(malloc(500000));
    struct mallinfo2 info = mallinfo2();
    SAME("no mapping", info.hblks, 0);
    SAME("in use", info.uordblks >= 500000 && info.uordblks < 600000, 1);
    free(a);
    malloc_trim(0);
    SAME("usable", malloc_usable_size(used(malloc(24))), 24);
    SAME("usable", malloc_usable_size(used(malloc(1))), 24);
    SAME("usable", malloc_usable_size(NULL), 0);
    printf("in use %zu\n", mallinfo2().uordblks);
}

static void locked(void)
{
    printf("mlockall %d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
    void *blocks[64];
    for (int i = 0; i < 64; i++)
        memset(blocks[i] = malloc(1 << 16), 1, 1 << 16);
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    printf("munlockall %d\n", munlockall());
}

/* Nothing but read, write and the end is allowed: memory that malloc has already may still be used. */
static void *strict(void *nothing)
{
    void *warm = malloc(5000);
    free(warm);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
        return nothing;
    for (int i = 0; i < 5000; i++) {
        void *a = malloc(16 + i % 1000);
        *(char *)a = 1;
        deep(i % 50 + 1);
        free(a);
    }
    (void)!write(1, "strict thread lives\n", 20);
    syscall(SYS_exit, 0);
    return nothing;
}

static void confined(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, strict, NULL);
    pthread_join(thread, NULL);
    free(used(malloc(777)));
}

static void closed_descriptors(void)
{
    for (int fd = 3; fd < 4096; fd++)
        if (close(fd) == 0)
            printf("%d was open\n", fd);
    in_the_child(5000);
    int next = open("/dev/null", O_RDONLY);
    printf("the next descriptor is %d\n", next);
}

/* A library that is closed, and another one at the same address. */
static void libraries(const char *first, const char *second)
{
    for (int i = 0; i < 50; i++) {
        void *library = dlopen(i % 2 ? second : first, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            puts(dlerror());
            exit(9);
        }
        void *(*makes)(int) = (void *(*)(int))dlsym(library, i % 2 ? "second_makes" : "first_makes");
        for (int j = 0; j < 20; j++)
            free(makes(j));
        dlclose(library);
    }
    puts("opened and closed");
}

/* Blocks of 0 to 8 bytes, which some allocators put 8 bytes apart. */
__attribute__((noinline)) static void tiny_blocks(void)
{
    enum { N = 9000 };
    static char *all[N];
    for (int i = 0; i < N; i++)
        all[i] = used(i % 3 ? malloc(i % 9) : calloc(1, i % 9));
    for (int i = 0; i < N; i += 2)
        free(all[i]);
    for (int i = 1; i < N; i += 2)
        free(all[i]);
}

/* How much stack an allocation needs below its caller's frame. */
enum { STACK = 128 << 10, ROOM = 8 << 10 };
static char *painted;
static const char *library_of_this_run;

static void *allocates_on_paint(void *nothing)
{
    if (library_of_this_run) {
        void *library = dlopen(library_of_this_run, RTLD_NOW | RTLD_LOCAL);
        void *(*makes)(int) = (void *(*)(int))dlsym(library, "first_makes");
        char here;
        memset(painted, 0xa5, &here - painted - 512);
        free(makes(1));
    } else {
        char here;
        memset(painted, 0xa5, &here - painted - 512);
        free(used(malloc(100)));
    }
    return nothing;
}

static void stack_use(const char *library)
{
    for (int turn = 0; turn < 2; turn++) {
        library_of_this_run = turn ? library : NULL;
        painted = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, painted, STACK);
        pthread_t thread;
        pthread_create(&thread, &attributes, allocates_on_paint, NULL);
        pthread_join(thread, NULL);
        int untouched = 0;
        while (painted[untouched] == (char)0xa5)
            untouched++;
        /* The library's and the kernel's parts of a thread's stack are above the painted part. */
        int used_below = STACK - 4096 - untouched;
        if (getenv("SHOW_STACK"))
            fprintf(stderr, "%d bytes\n", used_below);
        printf("%s\n", used_below <= ROOM ? "within 8 KiB" : "too much stack");
    }
}

/* Blocks older than the recording. */
static void older(void)
{
    void *old[1000];
    for (int i = 0; i < 1000; i++)
        old[i] = malloc(100);
    puts("ready");
    fflush(stdout);
    struct timespec while_it_begins = {0, 600000000};
    nanosleep(&while_it_begins, NULL);
    for (int i = 0; i < 1000; i++) {
        old[i] = i % 2 ? realloc(old[i], 200) : old[i];
        free(old[i]);
    }
    for (int i = 0; i < 500; i++)
        free(used(malloc(50)));
}

static void waits(void)
{
    for (int i = 0; i < 1000; i++)
        used(malloc(1000));
    puts("ready");
    fflush(stdout);
    pause();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
#define IS(name) (strcmp(how, name) == 0)
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (IS("entries")) entries();
    else if (IS("temporary")) temporary_blocks();
    else if (IS("leaked")) leaked();
    else if (IS("peak")) known_peak();
    else if (IS("peak-threads")) peak_of_threads();
    else if (IS("exchange")) exchanges(4, n);
    else if (IS("children")) children();
    else if (IS("forks")) forks_with_threads();
    else if (IS("handlers")) in_handlers(0);
    else if (IS("jumping-handlers")) in_handlers(1);
    else if (IS("jumping-out")) jumps_out_of_anything();
    else if (IS("destructors")) destructors();
    else if (IS("short-threads")) short_threads(n);
    else if (IS("live-threads")) live_threads(n);
    else if (IS("to-nothing")) to_nothing(n);
    else if (IS("deep")) deep_recursion();
    else if (IS("fibres")) fibres();
    else if (IS("endless")) endless_stacks();
    else if (IS("longjmp")) longjumps();
    else if (IS("cancel")) cancels();
    else if (IS("errno")) {
        pthread_t thread;
        pthread_create(&thread, NULL, errors_of_a_thread, NULL);
        pthread_join(thread, NULL);
        errors();
    }
    else if (IS("no-memory")) no_memory();
    else if (IS("settings")) settings();
    else if (IS("locked")) locked();
    else if (IS("confined")) confined();
    else if (IS("closed")) closed_descriptors();
    else if (IS("libraries")) libraries(argv[2], argv[3]);
    else if (IS("tiny")) tiny_blocks();
    else if (IS("stack-use")) stack_use(argv[2]);
    else if (IS("older")) older();
    else if (IS("waits")) waits();
    else return 2;
    return wrong;
}
