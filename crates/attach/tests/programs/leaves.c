// Closes its end of a pipe, then ends or executes `sleep`, when its standard input says so.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    char order[2];
    printf("ready\n");
    fflush(stdout);
    while (read(0, order, 1) == 1) {
        if (*order == 'c') close(1);
        if (*order == 'x') _exit(7);
        if (*order == 'e') {
            fcntl(1, F_SETFD, FD_CLOEXEC);
            execlp("sleep", "sleep", "600", (char *)0);
        }
    }
    return 0;
}
