/* Children of every kind; each works under a function of its own name and ends with its own
   status, which the parent checks. */
#define _GNU_SOURCE
#include "work.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

WORKER(parent_work)
WORKER(forked_work)
WORKER(cloned_work)
WORKER(orphan_work)
WORKER(generation_work)

static int status_of(pid_t child)
{
    int status = -1;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* A child by the C library, one by the bare system call; both live on for a while. */
static int children(void)
{
    parent_work(0.2);
    pid_t forked = fork();
    if (forked == 0) {
        forked_work(0.3);
        _exit(21);
    }
    pid_t cloned = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (cloned == 0) {
        cloned_work(0.3);
        syscall(SYS_exit_group, 22);
    }
    parent_work(0.2);
    int first = status_of(forked), second = status_of(cloned);
    pid_t quick = vfork();
    if (quick == 0) {
        execl("/bin/true", "true", (char *)0);
        _exit(99);
    }
    printf("forked %d cloned %d vforked %d\n", first, second, status_of(quick));
    return 0;
}

/* The child outlives its parent, and says so through a file. */
static int orphan(const char *file)
{
    parent_work(0.1);
    if (fork() == 0) {
        orphan_work(0.6);
        FILE *out = fopen(file, "w");
        fprintf(out, "well\n");
        fclose(out);
        exit(0);
    }
    printf("parent leaves\n");
    return 0;
}

static void *spin(void *nothing)
{
    (void)nothing;
    for (;;)
        generation_work(1);
    return 0;
}

/* Replaces itself so many times while four threads run. */
static int generations(char **argv, int left)
{
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, 0, spin, 0);
    generation_work(0.02);
    if (left == 0) {
        printf("last generation\n");
        return 17;
    }
    char count[16];
    snprintf(count, sizeof count, "%d", left - 1);
    execl("/proc/self/exe", argv[0], "generations", count, (char *)0);
    return 98;
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "generations"))
        return generations(argv, atoi(argv[2]));
    if (argc > 2 && !strcmp(argv[1], "orphan"))
        return orphan(argv[2]);
    return children();
}
