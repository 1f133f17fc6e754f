// The first process of a pid namespace, an application that knows its one child. It starts the program of its arguments as a
// grandchild. When that has ended, it prints how many SIGCHLD and how many unknown children it got.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int signals;
static void count(int signal) { (void)signal, ++signals; }

int main(int arguments, char **argument) {
    if (arguments < 2) return 2;
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            execv(argument[1], argument + 1);
            _exit(127);
        }
        wait(0);
        _exit(0);
    }
    signal(SIGCHLD, count);
    int unknown = 0;
    for (pid_t ended; (ended = waitpid(-1, 0, 0)) != child;) unknown += ended > 0;
    while (waitpid(-1, 0, WNOHANG) > 0) unknown++;
    printf("SIGCHLD %d unknown %d\n", signals, unknown);
    return 0;
}
