/* Waits until threads sleep, as asleep.rs does. */
#ifndef ASLEEP_H
#define ASLEEP_H
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system call of each other thread, with its arguments and registers: 0 if one of them runs, or has a page fault. */
static int calls(char *all, size_t room)
{
    DIR *threads = opendir("/proc/self/task");
    struct dirent *thread;
    int asleep = threads != 0;
    size_t used = 0;
    while (asleep && (thread = readdir(threads))) {
        long id = atol(thread->d_name);
        if (id == 0 || id == syscall(SYS_gettid)) continue;
        char path[64];
        snprintf(path, sizeof path, "/proc/self/task/%ld/syscall", id);
        FILE *file = fopen(path, "r");
        asleep = file && used + 256 < room && fgets(all + used, 256, file) && all[used] != 'r' && all[used] != '-';
        if (asleep) used += strlen(all + used);
        if (file) fclose(file);
    }
    if (threads) closedir(threads);
    return asleep;
}

/* Returns when all other threads sleep. One that sleeps for a moment is in another call afterwards. */
static void until_all_sleep(void)
{
    static char now[16384], before[16384];
    for (int slept = 0;; usleep(1000)) {
        memset(now, 0, sizeof now);
        int sleep = calls(now, sizeof now);
        if (sleep && slept && !memcmp(now, before, sizeof now)) return;
        memcpy(before, now, sizeof now);
        slept = sleep;
    }
}
#endif
