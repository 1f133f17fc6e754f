/* A program with threads and children that is well, or has the one mistake that it is asked for. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counted, raced;
static volatile int index_of = 10;

static void *count(void *how)
{
    for (int i = 0; i < 20000; i++) {
        char *block = malloc(i % 300 + 1);
        memset(block, i, i % 300 + 1);
        pthread_mutex_lock(&lock);
        counted += block[0] == (char)i;
        pthread_mutex_unlock(&lock);
        free(block);
        if (how)
            raced++;
    }
    return 0;
}

static void all_count(void *how)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, count, how);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("counted %ld\n", counted);
    fflush(stdout);
}

__attribute__((noinline)) static void leak(void)
{
    char *volatile lost = malloc(1234);
    lost = 0;
    (void)lost;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "well";
    all_count(strcmp(how, "race") ? 0 : &raced);
    if (!strcmp(how, "overflow")) {
        char *block = malloc(10);
        block[index_of] = 1;
        free(block);
    }
    if (!strcmp(how, "overflow-int"))
        index_of += 2147483647;
    if (!strcmp(how, "leak"))
        leak();
    if (!strcmp(how, "fork")) {
        int well = 0;
        for (int i = 0; i < 20; i++) {
            pid_t child = fork();
            if (child == 0)
                exit(i);
            int status = -1;
            waitpid(child, &status, 0);
            well += WIFEXITED(status) && WEXITSTATUS(status) == i;
        }
        printf("%d children well\n", well);
    }
    return 0;
}
