/* A library that allocates, built with two names: both are loaded at the same address. */
#include <stdlib.h>
#define JOIN(a, b) a##b
#define MAKES(name) JOIN(name, _makes)

static void *volatile sink;

void *MAKES(NAME)(int n)
{
    sink = malloc(100 + n);
    return sink;
}
