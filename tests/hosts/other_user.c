/* The way of many servers: root forks, and the child goes on as nobody: it works itself, forks once
   more, and starts a program. */
#include "work.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

WORKER(master_work)
WORKER(child_work)
WORKER(grandchild_work)
WORKER(program_work)

static int status_of(pid_t child)
{
    int status = -1;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static int as_nobody(char *self)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 90;
    child_work(0.3);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        grandchild_work(0.3);
        _exit(31);
    }
    pid_t program = fork();
    if (program == 0) {
        execl(self, self, "program", (char *)0);
        _exit(91);
    }
    return status_of(grandchild) == 31 && status_of(program) == 32 ? 33 : 92;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "program") == 0) {
        program_work(0.3);
        return 32;
    }
    pid_t child = fork();
    if (child == 0)
        _exit(as_nobody(argv[1]));
    master_work(0.3);
    printf("child %d\n", status_of(child));
    return 0;
}
