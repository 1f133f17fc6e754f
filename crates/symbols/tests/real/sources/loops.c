/* Each function ends with calls through a register, in a loop mostly, that was loaded in another way. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define ALONE __attribute__((noinline, noclone))
/* In a register from here on, whatever the compiler knows of it. */
#define IN_REGISTER(f) __asm__ volatile("" : "+r"(f))

typedef void (*function)(void *);

ALONE void callee(void *p) { *(int *)p += 1; }
ALONE void ignores(void *p) { __asm__ volatile("" : : "r"(p)); }

/* The dynamic linker's slot, loaded once. */
ALONE void by_linker(void **p, long n) {
    function f = free;
    IN_REGISTER(f);
    for (long i = 0; i < n; i++)
        f(p[i]);
}

/* Loaded on two ways to the same call, and copied. */
ALONE void by_linker_twice(void **p, long n) {
    function f, g;
    if (n & 1) {
        f = free;
        IN_REGISTER(f);
        p[0] = p[1];
    } else {
        f = free;
        IN_REGISTER(f);
        p[2] = p[3];
    }
    g = f;
    IN_REGISTER(g);
    for (long i = 0; i < n; i++)
        g(p[i]);
}

ALONE void by_argument(function f, void **p, long n) {
    for (long i = 0; i < n; i++)
        f(p[i]);
}

/* The linker's on one way, a pointer on the other. */
ALONE void by_either(function f, void **p, long n) {
    if (n & 1) {
        f = free;
        IN_REGISTER(f);
    }
    for (long i = 0; i < n; i++)
        f(p[i]);
}

/* The linker's at first, the pointer from the second round on. */
ALONE void by_later(function *other, void **p, long n) {
    function f = free;
    IN_REGISTER(f);
    for (long i = 0; i < n; i++) {
        f(p[i]);
        f = *other;
        IN_REGISTER(f);
    }
}

/* Both the linker's, but a choice all the same. */
ALONE void by_choice(void **p, long n) {
    function f;
    if (n & 1) {
        f = free;
        IN_REGISTER(f);
    } else {
        f = (function)perror;
        IN_REGISTER(f);
    }
    for (long i = 0; i < n; i++)
        f(p[i]);
}

/* Tables of our own: one that is relocated and then read-only, one that changes, one variable. */
static const function constants[] = {callee, ignores};
static function variables[] = {callee, ignores};
static function variable = callee;

ALONE void by_constants(long which, void **p, long n) {
    function f = constants[which];
    for (long i = 0; i < n; i++)
        f(p[i]);
}

ALONE void by_variables(long which, void **p, long n) {
    function f = variables[which];
    for (long i = 0; i < n; i++)
        f(p[i]);
}

ALONE void by_variable(void **p, long n) {
    function f = variable;
    for (long i = 0; i < n; i++)
        f(p[i]);
}

/* What the linker's function gives back, in the register that function was called by. */
ALONE void by_result(int n) {
    void (*(*f)(int, void (*)(int)))(int) = signal;
    __asm__ volatile("" : "+a"(f));
    f(SIGUSR1, SIG_IGN)(n);
    __asm__ volatile("" : : "r"(n));
}

int main(int argc, char **argv) {
    int x = 0;
    void *none[4] = {0}, *p[4] = {&x, &x, &x, &x};
    by_linker(none, 4);
    by_linker_twice(none, 4);
    by_argument(callee, p, 4);
    by_either(callee, p, 4);
    by_later(variables, none, 1);
    by_choice(none, 3);
    by_constants(argc & 1, p, 4);
    by_variables(argc & 1, p, 4);
    by_variable(p, 4);
    if (argc > 5) {
        by_result(argc);
        variable = ignores;
        variables[1] = (function)argv[0];
    }
    printf("%d\n", x);
    return 0;
}
