/* The shared library of stepped.c: reached through the PLT, calls back. */
__attribute__((noinline)) static long add(long a, long b) { return a + b; }

long library_sum(const long *values, long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum = add(sum, values[i]);
    return sum;
}

long library_twice(long value) { return value * 2; }

/* calls its own exported function through its own PLT */
long library_call_back(long (*f)(long), long value) { return f(library_twice(value)) + 1; }

long library_once_0(long x) { return library_twice(x); }
long library_once_1(long x) { return x + 1; }
long library_once_2(long x) { return x + 2; }
long library_once_3(long x) { return x + 3; }
