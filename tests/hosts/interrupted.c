/* Every call that a signal interrupts, with a handler of the program's own, with SA_RESTART and without, and with no
   handler at all: each must end as the kernel says. One that is restarted ends by what the third signal does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int pipe_ends[2], sockets[2], silent[2], queue, set, epoll, inotify;
static sem_t semaphore, never_posted;
static volatile int word;
static pid_t child;
static volatile sig_atomic_t alarms;

/* Milliseconds that a call with a limit may wait; short where no signal comes. */
static long limit_ms = 4000;

static struct timespec from_now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += limit_ms / 1000;
    t.tv_nsec += limit_ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000)
        t.tv_sec++, t.tv_nsec -= 1000000000;
    return t;
}

static struct timespec limit(void)
{
    struct timespec t = {limit_ms / 1000, limit_ms % 1000 * 1000000};
    return t;
}

static long do_pause(void) { return pause(); }
static long do_sigsuspend(void) { sigset_t none; sigemptyset(&none); return sigsuspend(&none); }
static long do_poll(void) { struct pollfd p = {silent[0], POLLIN, 0}; return poll(&p, 1, (int)limit_ms); }
static long do_ppoll(void)
{
    struct pollfd p = {silent[0], POLLIN, 0};
    struct timespec t = limit();
    return ppoll(&p, 1, &t, 0);
}
static long do_select(void)
{
    fd_set in;
    FD_ZERO(&in);
    FD_SET(silent[0], &in);
    struct timeval t = {limit_ms / 1000, limit_ms % 1000 * 1000};
    return select(silent[0] + 1, &in, 0, 0, &t);
}
static long do_pselect(void)
{
    fd_set in;
    FD_ZERO(&in);
    FD_SET(silent[0], &in);
    struct timespec t = limit();
    return pselect(silent[0] + 1, &in, 0, 0, &t, 0);
}
static long do_epoll_wait(void) { struct epoll_event e; return epoll_wait(epoll, &e, 1, (int)limit_ms); }
static long do_epoll_pwait(void) { struct epoll_event e; return epoll_pwait(epoll, &e, 1, (int)limit_ms, 0); }
static long do_nanosleep(void) { struct timespec t = limit(); return nanosleep(&t, 0); }
static long do_clock_nanosleep(void)
{
    struct timespec t = from_now(CLOCK_MONOTONIC);
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
    return errno ? -1 : 0;
}
static long do_usleep(void) { return usleep((useconds_t)limit_ms * 1000); }
static long do_sem_timedwait(void)
{
    struct timespec t = from_now(CLOCK_REALTIME);
    return sem_timedwait(&never_posted, &t);
}
static long do_semtimedop(void)
{
    struct sembuf take = {0, -1, 0};
    struct timespec t = limit();
    return semtimedop(set, &take, 1, &t);
}
static long do_sigtimedwait(void)
{
    sigset_t other;
    sigemptyset(&other);
    sigaddset(&other, SIGUSR2);
    struct timespec t = limit();
    return sigtimedwait(&other, 0, &t);
}
static long do_recv_limited(void)
{
    struct timeval t = {limit_ms / 1000, limit_ms % 1000 * 1000};
    setsockopt(silent[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    char byte;
    return recv(silent[0], &byte, 1, 0);
}
static long do_futex_limited(void)
{
    struct timespec t = limit();
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, 0, 0);
}

static long do_read_pipe(void) { char byte; return read(pipe_ends[0], &byte, 1); }
static long do_recv(void) { char byte; return recv(sockets[0], &byte, 1, 0); }
static long do_msgrcv(void) { struct { long type; char text[4]; } m; return msgrcv(queue, &m, sizeof m.text, 0, 0); }
static long do_sem_wait(void) { return sem_wait(&semaphore); }
static long do_waitpid(void) { long got = waitpid(child, 0, 0); return got > 0 ? 1 : got; }
static long do_inotify(void) { char event[300]; long got = read(inotify, event, sizeof event); return got > 0 ? 1 : got; }

/* All that anybody waits for. */
static void complete(void)
{
    struct { long type; char text[4]; } message = {1, "m"};
    (void)!write(pipe_ends[1], "p", 1);
    send(sockets[1], "s", 1, 0);
    msgsnd(queue, &message, 1, IPC_NOWAIT);
    sem_post(&semaphore);
    kill(child, SIGKILL);
    close(open("touched", O_CREAT | O_WRONLY, 0600));
}

static void on_alarm(int signal)
{
    (void)signal;
    int kept = errno;
    if (++alarms == 3)
        complete();
    errno = kept;
}

struct call { const char *name; long (*body)(void); int ends; };
static const struct call calls[] = {
    {"pause", do_pause, 0}, {"sigsuspend", do_sigsuspend, 0}, {"poll", do_poll, 1}, {"ppoll", do_ppoll, 1},
    {"select", do_select, 1}, {"pselect", do_pselect, 1}, {"epoll_wait", do_epoll_wait, 1},
    {"epoll_pwait", do_epoll_pwait, 1}, {"nanosleep", do_nanosleep, 1}, {"clock_nanosleep", do_clock_nanosleep, 1},
    {"usleep", do_usleep, 1}, {"sem_timedwait", do_sem_timedwait, 1}, {"semtimedop", do_semtimedop, 1},
    {"sigtimedwait", do_sigtimedwait, 1}, {"recv with a limit", do_recv_limited, 1},
    {"futex with a limit", do_futex_limited, 1}, {"read", do_read_pipe, 0}, {"recv", do_recv, 0},
    {"msgrcv", do_msgrcv, 0}, {"sem_wait", do_sem_wait, 0}, {"waitpid", do_waitpid, 0}, {"inotify", do_inotify, 0},
};

static void make_all(void)
{
    if (pipe(pipe_ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || socketpair(AF_UNIX, SOCK_STREAM, 0, silent))
        abort();
    queue = msgget(IPC_PRIVATE, 0600);
    set = semget(IPC_PRIVATE, 1, 0600);
    epoll = epoll_create1(0);
    struct epoll_event in = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, silent[0], &in);
    inotify = inotify_init1(0);
    inotify_add_watch(inotify, ".", IN_CLOSE_WRITE);
    sem_init(&semaphore, 0, 0);
    sem_init(&never_posted, 0, 0);
    child = fork();
    if (child == 0)
        for (;;)
            pause();
}

static void end_all(void)
{
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    msgctl(queue, IPC_RMID, 0);
    semctl(set, 0, IPC_RMID);
    unlink("touched");
    int all[] = {pipe_ends[0], pipe_ends[1], sockets[0], sockets[1], silent[0], silent[1], epoll, inotify};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        close(all[i]);
}

static void handle(int flags)
{
    struct sigaction mine;
    memset(&mine, 0, sizeof mine);
    mine.sa_handler = on_alarm;
    mine.sa_flags = flags;
    sigaction(SIGALRM, &mine, 0);
}

static void each_call(const char *how)
{
    int signals = strcmp(how, "without");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!signals && !calls[i].ends)
            continue;
        make_all();
        alarms = 0;
        limit_ms = signals ? 20000 : 150;
        struct itimerval every = {{0, 15000}, {0, 15000}}, off = {{0, 0}, {0, 0}};
        if (signals)
            setitimer(ITIMER_REAL, &every, 0);
        errno = 0;
        long result = calls[i].body();
        int error = result < 0 ? errno : 0;
        setitimer(ITIMER_REAL, &off, 0);
        printf("%s %s: %ld %s\n", calls[i].name, how, result, error ? strerrorname_np(error) : "");
        fflush(stdout);
        end_all();
    }
}

static long random_state = 12345;
static long chance(long below)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16 & 0x7fffffff) % below;
}

/* The signal is blocked except in the call, so it is never missed: whenever it comes, the call must see it. */
static void pending(int flags)
{
    sigset_t blocked, open;
    sigemptyset(&open);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    sigprocmask(SIG_BLOCK, &blocked, 0);
    handle(flags);
    static const char *const names[] = {"sigsuspend", "ppoll", "pselect", "epoll_pwait", "sigwaitinfo", "signalfd"};
    make_all();
    for (int which = 0; which < 6; which++) {
        int signals = signalfd(-1, &blocked, 0), seen = 0;
        for (int i = 0; i < 150; i++) {
            struct itimerval once = {{0, 0}, {0, 1 + chance(2000)}};
            alarms = -1000000;
            setitimer(ITIMER_REAL, &once, 0);
            struct timespec now, end;
            clock_gettime(CLOCK_MONOTONIC, &end);
            end.tv_nsec += chance(2000) * 1000;
            do
                clock_gettime(CLOCK_MONOTONIC, &now);
            while (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec);
            struct epoll_event event;
            struct signalfd_siginfo info;
            struct pollfd p = {silent[0], POLLIN, 0};
            long result = 0;
            errno = 0;
            switch (which) {
            case 0: result = sigsuspend(&open); break;
            case 1: result = ppoll(&p, 1, 0, &open); break;
            case 2: result = pselect(0, 0, 0, 0, 0, &open); break;
            case 3: result = epoll_pwait(epoll, &event, 1, -1, &open); break;
            case 4: result = sigwaitinfo(&blocked, 0); break;
            case 5: result = read(signals, &info, sizeof info); break;
            }
            seen += which < 4 ? result == -1 && errno == EINTR && alarms == -999999 : result > 0;
        }
        close(signals);
        printf("%s: %d of 150\n", names[which], seen);
        fflush(stdout);
    }
    end_all();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "pending") || !strcmp(how, "pending-restart"))
        return pending(strcmp(how, "pending") ? SA_RESTART : 0), 0;
    if (!strcmp(how, "restart") || !strcmp(how, "once"))
        handle(strcmp(how, "restart") ? 0 : SA_RESTART);
    each_call(how);
    return 0;
}
