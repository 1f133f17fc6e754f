// Calls that move data in steps, or that the kernel ends with EINTR: whoever interrupts one of them changes its result.
// `bulk KIND|all CALLS MILLISECONDS`: each kind makes CALLS calls, or as many as fit into MILLISECONDS if that is not 0.
// Standard output: a line for each kind, "KIND: 0 short, 0 EINTR" if nobody interrupts. Standard error: the numbers of calls.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 64 << 10, LARGE = 512 << 10 };
static char *here, *there;
static int zero, urandom, sink, file, copy;
static int pipe_in[2], pipe_out[2], stream_in[2], stream_out[2], sendfile_to[2], splice_to[2], epoll, quiet_pipe[2], uring;

// Reads whatever arrives.
static void *drain(void *fd) {
    char *buffer = malloc(SMALL);
    while (read((int)(intptr_t)fd, buffer, SMALL) > 0) {}
    return 0;
}
// Writes for ever, in pieces.
static void *fill(void *fd) {
    char *buffer = calloc(1, 4096);
    for (;;) if (write((int)(intptr_t)fd, buffer, 4096) < 0 && errno != EINTR) return 0;
}
static void start(void *(*f)(void *), int fd) {
    pthread_t thread;
    if (pthread_create(&thread, 0, f, (void *)(intptr_t)fd)) { perror("pthread_create"); exit(3); }
    pthread_detach(thread);
}

// Each returns what is missing of its result; -1 with errno.
static long all(long got, long wanted) { return got < 0 ? -1 : wanted - got; }
static long read_urandom(void) { return all(read(urandom, here, SMALL), SMALL); }
static long get_random(void) { return all(getrandom(here, SMALL, 0), SMALL); }
static long read_zero(void) { return all(read(zero, here, LARGE), LARGE); }
static long readv_zero(void) {
    struct iovec parts[2] = {{here, LARGE / 2}, {there, LARGE / 2}};
    return all(readv(zero, parts, 2), LARGE);
}
static long preadv_file(void) {
    struct iovec parts[2] = {{here, LARGE / 2}, {there, LARGE / 2}};
    return all(preadv2(file, parts, 2, 0, 0), LARGE);
}
static long write_pipe(void) { return all(write(pipe_out[1], here, LARGE), LARGE); }
static long write_stream(void) { return all(write(stream_out[1], here, LARGE), LARGE); }
static long receive_all(void) { return all(recv(stream_in[0], here, SMALL, MSG_WAITALL), SMALL); }
static long send_file(void) { off_t at = 0; return all(sendfile(sendfile_to[1], file, &at, LARGE), LARGE); }
static long splice_file(void) {
    loff_t at = 0;
    long got = splice(file, &at, splice_to[1], 0, SMALL, 0);
    return all(got, SMALL);
}
static long copy_range(void) {
    loff_t from = 0, to = 0;
    return all(copy_file_range(file, &from, copy, &to, LARGE, 0), LARGE);
}
static long read_process(void) {
    struct iovec to = {here, LARGE}, from = {there, LARGE};
    return all(process_vm_readv(getpid(), &to, 1, &from, 1, 0), LARGE);
}
static long wait_epoll(void) { struct epoll_event event; return epoll_pwait(epoll, &event, 1, 2, 0); }
static long wait_poll(void) { struct pollfd one = {quiet_pipe[0], POLLIN, 0}; return poll(&one, 1, 2); }
static long sleep_a_little(void) { struct timespec t = {0, 300000}; return nanosleep(&t, 0); }
// Waits for a completion that never comes, for two milliseconds.
static long wait_uring(void) {
    struct { uint64_t sigmask; uint32_t size; uint32_t pad; uint64_t ts; } argument = {0, 8, 0, 0};
    struct { int64_t s, ns; } time = {0, 2000000};
    argument.ts = (uint64_t)(uintptr_t)&time;
    long result = syscall(SYS_io_uring_enter, uring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
    return result < 0 && errno == ETIME ? 0 : result;
}

static const struct kind { const char *name; long (*call)(void); int share; } kinds[] = {
    {"read urandom", read_urandom, 1}, {"getrandom", get_random, 1}, {"read zero", read_zero, 1},
    {"readv zero", readv_zero, 1}, {"preadv2 file", preadv_file, 1}, {"write pipe", write_pipe, 1},
    {"write socket", write_stream, 1}, {"recv waitall", receive_all, 1}, {"sendfile", send_file, 1},
    {"splice", splice_file, 1}, {"copy_file_range", copy_range, 1}, {"process_vm_readv", read_process, 1},
    {"epoll_pwait", wait_epoll, 10}, {"poll", wait_poll, 10}, {"nanosleep", sleep_a_little, 10},
    {"io_uring_enter", wait_uring, 10},
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "usage: bulk KIND|all CALLS MILLISECONDS\n"); return 2; }
    long calls = atol(argv[2]), milliseconds = atol(argv[3]);
    here = malloc(LARGE), there = malloc(LARGE);
    memset(here, 1, LARGE), memset(there, 2, LARGE);
    zero = open("/dev/zero", O_RDONLY), urandom = open("/dev/urandom", O_RDONLY), sink = open("/dev/null", O_WRONLY);
    char name[] = "/tmp/bulk-XXXXXX", other[] = "/tmp/bulk-XXXXXX";
    file = mkstemp(name), copy = mkstemp(other);
    unlink(name), unlink(other);
    if (write(file, here, LARGE) != LARGE) return 3;
    if (pipe(pipe_in) | pipe(pipe_out) | pipe(splice_to) | pipe(quiet_pipe)) return 3;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, stream_in) | socketpair(AF_UNIX, SOCK_STREAM, 0, stream_out)
        | socketpair(AF_UNIX, SOCK_STREAM, 0, sendfile_to)) return 3;
    fcntl(splice_to[1], F_SETPIPE_SZ, 1 << 20);
    start(drain, pipe_out[0]), start(drain, stream_out[0]), start(drain, sendfile_to[0]), start(drain, splice_to[0]);
    start(fill, stream_in[1]);
    epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {0}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, quiet_pipe[0], &event);
    struct io_uring_params parameters = {0};
    uring = syscall(SYS_io_uring_setup, 4, &parameters);
    long shorter = 0, broken = 0, other_errors = 0, made = 0;
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(argv[1], "all") && strcmp(argv[1], kinds[k].name)) continue;
        if (kinds[k].call == wait_uring && uring < 0) { printf("%s: 0 short, 0 EINTR\n", kinds[k].name); continue; }
        long n = 0, s = 0, e = 0;
        double end = now() + milliseconds;
        for (; milliseconds ? now() < end : n < calls / kinds[k].share + 1; n++) {
            // For those who count allocations.
            char *volatile block = malloc(100);
            free(block);
            errno = 0;
            long missing = kinds[k].call();
            if (missing < 0 && errno == EINTR) e++;
            else if (missing < 0) { if (!other_errors++) fprintf(stderr, "%s: %s\n", kinds[k].name, strerror(errno)); }
            else if (missing > 0) s++;
        }
        fprintf(stderr, "%s: %ld calls\n", kinds[k].name, n);
        printf("%s: %ld short, %ld EINTR\n", kinds[k].name, s, e);
        fflush(stdout);
        shorter += s, broken += e, made += n;
    }
    printf("in all: %ld short, %ld EINTR, %ld other errors\n", shorter, broken, other_errors);
    return shorter || broken || other_errors;
}
