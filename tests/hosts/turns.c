// Sleeps for a millisecond and runs for a moment, 600 times. Prints how long it waited for CPUs, in nanoseconds, by the kernel's account.
#include <stdio.h>
#include <time.h>

int main(void) {
    for (int i = 0; i < 600; i++) {
        struct timespec time = {0, 1000000};
        nanosleep(&time, NULL);
        for (volatile int j = 0; j < 300000; j++) {
        }
    }
    unsigned long long ran, waited;
    FILE *account = fopen("/proc/self/schedstat", "r");
    if (account == NULL || fscanf(account, "%llu %llu", &ran, &waited) != 2) return 1;
    printf("%llu\n", waited);
    return 0;
}
