/* Starts six threads and execs itself two milliseconds later, as often as it is told: `execs N`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *turn(void *unused)
{
    for (volatile unsigned long i = 0;; i++)
        if (i % 65536 == 0)
            usleep(1);
    return unused;
}

int main(int count, char **arguments)
{
    int left = count > 1 ? atoi(arguments[1]) : 0;
    char text[16];
    if (left == 0) {
        puts("last");
        return 7;
    }
    for (int i = 0; i < 6; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, turn, NULL))
            return 98;
    }
    usleep(2000);
    snprintf(text, sizeof text, "%d", left - 1);
    execl("/proc/self/exe", arguments[0], text, (char *)NULL);
    return 99;
}
