// Memory of a known size for a known time, and an end of a known kind.
//
// heap_end KIND MILLISECONDS: 1000 items of 1000 bytes in a list are alive for that time. All but 10 are freed. Then it ends:
// `return`, `_exit`, `kill`, or `exec`, which executes `heap_end return` again. `wait` keeps them until stdin ends or SIGTERM.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct item {
    struct item *next;
    char text[992];
};

static struct item *items;

static void add(int count) {
    for (int i = 0; i < count; i++) {
        struct item *item = calloc(1, sizeof *item);
        item->next = items;
        items = item;
    }
}

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    const char *kind = words[1];
    if (strcmp(kind, "exec") == 0) {
        execl(words[0], words[0], "return", words[2], NULL);
        return 3;
    }
    add(1000);
    if (strcmp(kind, "wait") == 0) {
        printf("%d\n", getpid());
        fflush(stdout);
        // One line asks for 500 more items.
        for (int byte; (byte = getchar()) != EOF;) {
            add(500);
            puts("more");
            fflush(stdout);
        }
        return 7;
    }
    sleep_ms(atol(words[2]));
    for (int i = 0; i < 990; i++) {
        struct item *item = items;
        items = item->next;
        free(item);
    }
    if (strcmp(kind, "_exit") == 0) _exit(7);
    if (strcmp(kind, "kill") == 0) kill(getpid(), SIGKILL);
    return 7;
}
