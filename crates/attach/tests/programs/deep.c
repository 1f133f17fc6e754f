// A main thread that has used all of its stack that is mapped: the kernel extends it when it is written.
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) static int use(volatile char *bytes, size_t size) {
    memset((char *)bytes, 1, size);
    puts("ready");
    fflush(stdout);
    int sum = getchar();
    for (size_t i = 0; i < size; i++) sum += bytes[i];
    return sum;
}

int main(void) {
    volatile char bytes[300000];
    int sum = use(bytes, sizeof bytes);
    printf("%d\n", sum);
    return 0;
}
