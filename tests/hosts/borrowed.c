/* Children by vfork use their parent's memory until they exec or leave: what they do to their own signals, and the
   exit handlers that they run, must not become the parent's. */
#define _GNU_SOURCE
#include "work.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

WORKER(work_before_vfork)
WORKER(work_after_vfork)

static volatile sig_atomic_t handled;
static volatile int exits;

static void on_signal(int signal)
{
    (void)signal;
    handled++;
}

static void at_exit(void) { exits++; }

static void reset_all(void)
{
    for (int number = 1; number < 65; number++)
        signal(number, SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, 0);
}

static int status_of(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

int main(int argc, char **argv)
{
    atexit(at_exit);
    signal(SIGUSR1, on_signal);
    work_before_vfork(0.2);
    int ended = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            reset_all();
            execl("/bin/true", "true", (char *)0);
            _exit(99);
        }
        ended += status_of(child) == 0;
    }
    if (argc > 1 && !strcmp(argv[1], "exit")) {
        pid_t child = vfork();
        if (child == 0)
            exit(3);
        ended += status_of(child) == 3;
    }
    pid_t failing = vfork();
    if (failing == 0) {
        execl("/nonexistent", "nothing", (char *)0);
        _exit(98);
    }
    ended += status_of(failing) == 98;
    printf("%d children ended well, %d exit handlers ran, ", ended, exits);
    work_after_vfork(0.3);
    raise(SIGUSR1);
    printf("handled %d\n", (int)handled);
    fflush(stdout);
    _exit(0);
}
