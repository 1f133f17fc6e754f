/* A single-threaded program whose children use the loader, the C library's plug-ins and stdio: all take locks that a
   fork in the middle of another thread's work would leave locked for ever. */
#define _GNU_SOURCE
#include "work.h"
#include <dlfcn.h>
#include <iconv.h>
#include <netdb.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

WORKER(between_forks)

static int child(void)
{
    int wrong = 0;
    void *maths = dlopen("libm.so.6", RTLD_NOW);
    double (*root)(double) = maths ? (double (*)(double))dlsym(maths, "sqrt") : 0;
    wrong += !root || root(16) != 4;
    wrong += maths && dlclose(maths) != 0;
    iconv_t convert = iconv_open("UTF-16", "ISO-8859-1");
    wrong += convert == (iconv_t)-1 || iconv_close(convert) != 0;
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found = 0;
    wrong += getaddrinfo("127.0.0.1", "80", &hints, &found) != 0;
    if (found)
        freeaddrinfo(found);
    wrong += getpwnam("root") == 0;
    char *text = malloc(10000);
    FILE *null = fopen("/dev/null", "w");
    wrong += !text || !null || fprintf(null, "%d", wrong) < 1 || fclose(null) != 0;
    free(text);
    return wrong;
}

int main(int argc, char **argv)
{
    int forks = argc > 1 ? atoi(argv[1]) : 100, well = 0, hung = 0;
    for (int i = 0; i < forks; i++) {
        between_forks(0.0002);
        pid_t pid = fork();
        if (pid == 0) {
            /* One that hangs ends by this signal. */
            alarm(10);
            _exit(child());
        }
        int status = -1;
        waitpid(pid, &status, 0);
        well += status == 0;
        hung += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    }
    printf("%d of %d well, %d hung\n", well, forks, hung);
    return 0;
}
