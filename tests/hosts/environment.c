// environment PROGRAM ...: starts a program with an environment that is legal and rare.
// environment: prints its environment, but for the variables of Stackglass.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **arguments) {
    if (count > 1) {
        char *odd[] = {"Z=1", "A=1", "A=2", "no sign", "=x", "", "B=\xff\xfe", "LD_LIBRARY_PATH=/nowhere", NULL};
        execve(arguments[1], arguments + 1, odd);
        return 9;
    }
    const char *ours[] = {"LD_PRELOAD=", "STACKGLASS_", "ASAN_OPTIONS="};
    for (char **entry = environ; *entry; entry++) {
        int is_ours = 0;
        for (int i = 0; i < 3; i++) is_ours |= !strncmp(*entry, ours[i], strlen(ours[i]));
        if (!is_ours) printf("[%s]\n", *entry);
    }
    return 0;
}
