/* Ways to wait with a time-out, called from C: each gives back 1 when the wait was broken by a
   signal (EINTR), which a profiler must not cause. Compiled without frame pointers. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct timespec in_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    return t;
}

__attribute__((noinline)) int wait_c_poll(long ms)
{
    int got = poll(0, 0, (int)ms);
    return got < 0 && errno == EINTR;
}

__attribute__((noinline)) int wait_c_epoll(long ms, int epoll)
{
    struct epoll_event event;
    int got = epoll_wait(epoll, &event, 1, (int)ms);
    return got < 0 && errno == EINTR;
}

__attribute__((noinline)) int wait_c_select(long ms)
{
    struct timeval t = {ms / 1000, ms % 1000 * 1000};
    int got = select(0, 0, 0, 0, &t);
    return got < 0 && errno == EINTR;
}

__attribute__((noinline)) int wait_c_nanosleep(long ms)
{
    struct timespec t = in_ms(ms);
    int got = nanosleep(&t, 0);
    return got < 0 && errno == EINTR;
}

__attribute__((noinline)) int wait_c_usleep(long ms)
{
    int got = usleep((useconds_t)ms * 1000);
    return got < 0 && errno == EINTR;
}

/* The socket has SO_RCVTIMEO set; EAGAIN is the time-out. */
__attribute__((noinline)) int wait_c_recv(int socket)
{
    char byte;
    ssize_t got = recv(socket, &byte, 1, 0);
    return got < 0 && errno == EINTR;
}

/* Never EINTR by its contract; here so that its stack is looked at. */
__attribute__((noinline)) int wait_c_condition(long ms)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    int got = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return got == EINTR;
}
