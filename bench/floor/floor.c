// The floor of `record`: opens the events that Stackglass opens, runs a program, and throws the records away.
// Nothing that samples this program in this way can cost less. Usage: floor inherited|per-cpu PROGRAM [ARGUMENT ...]
// The settings are those of crates/collect/src/perf_sampler/events.rs: two events for each CPU, a period of 1 ms of CPU time,
// registers and 63 KiB of stack in each sample, and rings of the same sizes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CPUS = 256, THREAD_EVENTS = 256 << 10, SAMPLES = 4 << 20 };
static struct ring { int fd; struct perf_event_mmap_page *page; } rings[2 * MOST_CPUS];
static int count;

static int opened(struct perf_event_attr *attributes, int pid, int cpu) {
    return syscall(SYS_perf_event_open, attributes, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void add(struct perf_event_attr *attributes, int pid, int cpu, size_t bytes) {
    int fd = opened(attributes, pid, cpu);
    if (fd < 0 && errno == EINVAL) {
        // Inherited events with counts need Linux 6.12.
        attributes->sample_type &= ~PERF_SAMPLE_READ;
        fd = opened(attributes, pid, cpu);
    }
    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        attributes->exclude_kernel = 1;
        fd = opened(attributes, pid, cpu);
    }
    if (fd < 0) { perror("perf_event_open"); exit(125); }
    for (; bytes >= 64 << 10; bytes /= 2) {
        void *at = mmap(0, bytes + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED) { rings[count++] = (struct ring){fd, at}; return; }
    }
    perror("mmap");
    exit(125);
}

static void discard(void) {
    for (int i = 0; i < count; i++) {
        uint64_t head = __atomic_load_n(&rings[i].page->data_head, __ATOMIC_ACQUIRE);
        __atomic_store_n(&rings[i].page->data_tail, head, __ATOMIC_RELEASE);
    }
}

static volatile sig_atomic_t ended;
static void end(int signal) { (void)signal; ended = 1; }

int main(int argc, char **argv) {
    if (argc < 3) { fprintf(stderr, "usage: floor inherited|per-cpu PROGRAM [ARGUMENT ...]\n"); return 125; }
    int per_cpu = !strcmp(argv[1], "per-cpu"), gate[2];
    if (pipe2(gate, O_CLOEXEC)) return 125;
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGCHLD, &action, 0);
    pid_t child = fork();
    if (child < 0) return 125;
    if (!child) {
        char go;
        close(gate[1]);
        if (read(gate[0], &go, 1) != 1) _exit(125);
        signal(SIGCHLD, SIG_DFL);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < cpus && cpu < MOST_CPUS; cpu++) {
        struct perf_event_attr common = {
            .type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER5, .exclude_hv = 1, .use_clockid = 1,
            .clockid = CLOCK_MONOTONIC, .sample_id_all = 1, .watermark = 1, .disabled = !per_cpu, .inherit = !per_cpu,
            .enable_on_exec = !per_cpu,
        };
        struct perf_event_attr threads = common;
        threads.config = PERF_COUNT_SW_DUMMY, threads.sample_period = 1;
        threads.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
        threads.mmap = threads.mmap2 = threads.build_id = threads.comm = threads.comm_exec = threads.task = 1;
        threads.context_switch = 1, threads.wakeup_watermark = THREAD_EVENTS / 4;
        add(&threads, per_cpu ? -1 : child, cpu, THREAD_EVENTS);
        struct perf_event_attr samples = common;
        samples.config = PERF_COUNT_SW_CPU_CLOCK, samples.sample_period = 1000000;
        samples.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        if (!per_cpu) samples.sample_type |= PERF_SAMPLE_READ;
        // The registers that an unwinder needs: ax to ip, r8 to r15.
        samples.sample_regs_user = 0xff01ff, samples.sample_stack_user = 63 << 10, samples.wakeup_watermark = SAMPLES / 2;
        add(&samples, per_cpu ? -1 : child, cpu, SAMPLES);
    }
    if (write(gate[1], "g", 1) != 1) return 125;
    struct pollfd waits[2 * MOST_CPUS];
    for (int i = 0; i < count; i++) waits[i] = (struct pollfd){rings[i].fd, POLLIN, 0};
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (!ended) poll(waits, count, 100);
        discard();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
