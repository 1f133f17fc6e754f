// A million small blocks.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    void **blocks = malloc(sizeof *blocks * 1000000);
    for (int n = 0; n < 1000000; n++) blocks[n] = malloc(24 + n % 5 * 16);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
