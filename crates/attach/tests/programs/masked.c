// Blocks all signals, and computes until standard input ends.
#include <poll.h>
#include <signal.h>
#include <stdio.h>

int main(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    puts("ready");
    fflush(stdout);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 0) == 0)
        for (volatile long i = 0; i < 100000000; i++) {}
    puts("unharmed");
    return 0;
}
