/* Each function makes one call, of another kind. */
#include <stdio.h>
#include <stdlib.h>

#define ALONE __attribute__((noinline, noclone))

typedef int (*function)(int);
struct methods {
    long others[40];
    function method;
};

ALONE int callee(int x) { return x * 3 + 1; }
ALONE int by_name(int x) { return callee(x) + 1; }
ALONE int by_linker(int x) { return abs(x) + rand() + 1; }
ALONE int by_pointer(function f, int x) { return f(x) + 1; }
ALONE int by_table(struct methods *t, int x) { return t->method(x) + 1; }
ALONE int by_array(function *t, long n, int x) { return t[n](x) + 1; }

int main(int argc, char **argv) {
    struct methods methods = {{0}, callee};
    function functions[] = {callee, by_name};
    int x = by_name(argc) + by_linker(argc) + by_pointer(functions[argc & 1], argc);
    x += by_table(&methods, argc) + by_array(functions, argc & 1, argc);
    printf("%d %s\n", x, argv[0]);
    return 0;
}
