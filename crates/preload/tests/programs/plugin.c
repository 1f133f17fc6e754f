// The library that `libraries.c` opens and closes.
static volatile unsigned long sink;
__attribute__((noinline)) void in_library_inner(double seconds, void (*work)(double)) {
  work(seconds);
  sink++;
}
void in_library(double seconds, void (*work)(double)) {
  in_library_inner(seconds, work);
  sink++;
}
