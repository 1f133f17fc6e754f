/* Works for 0.3 s of CPU time, then ends in the way that is named. */
#include "work.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

WORKER(work_before_the_end)

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";
    printf("working\n");
    fflush(stdout);
    work_before_the_end(0.3);
    if (!strcmp(how, "exit"))
        exit(3);
    if (!strcmp(how, "_exit"))
        _exit(4);
    if (!strcmp(how, "syscall"))
        syscall(SYS_exit_group, 5);
    if (!strcmp(how, "quick_exit"))
        quick_exit(6);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "segfault")) {
        volatile int *volatile nowhere = 0;
        *nowhere = 1;
    }
    if (!strcmp(how, "divide")) {
        volatile int zero = 0;
        return (int)seconds_of(CLOCK_MONOTONIC) / zero;
    }
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "term"))
        raise(SIGTERM);
    if (!strcmp(how, "forever"))
        for (;;)
            work_before_the_end(1);
    return 0;
}
