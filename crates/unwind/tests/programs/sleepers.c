/* Functions with a frame pointer that sleep in a system call, as C compilers lay them out at several settings.
 * Each calls back into nothing; the test walks the sleeping thread from outside. */
#include <alloca.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile long sink;

/* few locals */
NOINLINE long sleep_plainly(int fd) {
    struct pollfd wait = {fd, POLLIN, 0};
    poll(&wait, 1, -1);
    return sink;
}

/* all callee-saved registers live across the call, a buffer, computations between the pushes */
NOINLINE long sleep_with_much_to_keep(int fd, const char *text, long a, long b, long c) {
    char buffer[200];
    struct pollfd wait = {fd, POLLIN, 0};
    long d = a * b, e = b * c, f = a * c + strlen(text);
    snprintf(buffer, sizeof buffer, "%s %ld", text, a);
    poll(&wait, 1, -1);
    return sink = a + b * 2 + c * 3 + d * 5 + e * 7 + f * 11 + buffer[3] + text[0];
}

/* more than a page of locals: the stack is probed */
NOINLINE long sleep_on_a_large_frame(int fd) {
    volatile char block[20000];
    struct pollfd wait = {fd, POLLIN, 0};
    block[0] = 1, block[19999] = 2;
    poll(&wait, 1, -1);
    return sink = block[0] + block[19999];
}

/* the size of the frame is known at run time only */
NOINLINE long sleep_on_a_variable_frame(int fd, long size) {
    char *block = alloca(size);
    struct pollfd wait = {fd, POLLIN, 0};
    memset(block, 1, size);
    poll(&wait, 1, -1);
    return sink = block[size / 2];
}

long sleep_in(int which, int fd) {
    long result;
    switch (which) {
    case 0: result = sleep_plainly(fd); break;
    case 1: result = sleep_with_much_to_keep(fd, "text", 3, 5, 7); break;
    case 2: result = sleep_on_a_large_frame(fd); break;
    default: result = sleep_on_a_variable_frame(fd, 100 + which * 10); break;
    }
    return sink = result + 1;
}
