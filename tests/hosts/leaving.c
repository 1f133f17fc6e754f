/* Processes whose threads leave one by one: the process ends with the last one, whatever thread that is. */
#define _GNU_SOURCE
#include "work.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

WORKER(last_work)

static const char *how;
static pthread_t first;

/* Wait until the first thread is a zombie, work, and be the last one to leave. */
static void *last(void *nothing)
{
    last_work(0.3);
    char state = '?', path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    FILE *stat = fopen(path, "r");
    if (stat && fscanf(stat, "%*d %*s %c", &state) == 1)
        printf("the first thread is %c\n", state);
    fflush(stdout);
    if (strstr(how, "-raw"))
        syscall(SYS_exit, 7);
    if (strstr(how, "-group"))
        _exit(8);
    return nothing;
}

static int in_a_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        pthread_create(&first, 0, last, 0);
        pthread_exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -status);
    return 0;
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "";
    if (strstr(how, "child"))
        return in_a_child();
    if (strstr(how, "alone-raw"))
        syscall(SYS_exit, 6);
    if (strstr(how, "alone"))
        pthread_exit(0);
    pthread_create(&first, 0, last, 0);
    if (strstr(how, "bare"))
        syscall(SYS_exit, 5);
    pthread_exit(0);
}
