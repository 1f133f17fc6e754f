// Prints the general registers of each thread of a stopped process: its id, then 27 numbers.
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

int main(int count, char **arguments) {
    for (int n = 1; n < count; n++) {
        int thread = atoi(arguments[n]);
        struct user_regs_struct registers;
        if (ptrace(PTRACE_SEIZE, thread, 0, 0)) continue;
        ptrace(PTRACE_INTERRUPT, thread, 0, 0);
        waitpid(thread, 0, __WALL);
        if (!ptrace(PTRACE_GETREGS, thread, 0, &registers)) {
            printf("%d", thread);
            for (int at = 0; at < 27; at++) printf(" %llu", ((unsigned long long *)&registers)[at]);
            puts("");
        }
        ptrace(PTRACE_DETACH, thread, 0, 0);
    }
}
