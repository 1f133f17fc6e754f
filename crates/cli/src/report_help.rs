//! `stackglass help report`: what the columns, words and marks of a report mean.

pub(crate) const TEXT: &str = "\
The summary is what `record` and `print` show: a tree, notes, and a digest.

The unit is the sample: the stack of one thread at one moment. Each thread is
sampled once per --delay (1 ms). Each sample stands for the time since the one
before. All reports on CPU time count the same samples.

States of a thread
  on CPU   it runs: this is its CPU time
  ready    it could run, but waits for a CPU that other threads have
  asleep   it is blocked in the kernel: a lock, a socket, a disk, a timer
CPU time is what reports count. --wall counts all three states. In a wall-time
profile (record --walltime), reports count the wall time of tasks, added up:
ten tasks that wait for a second are ten task-seconds.

States of an async task
  running  a thread polls it
  ready    it was woken, and waits to be polled
  waiting  it waits for an event

The tree: callers above the functions that they call, hottest first
  %        share of all CPU time
  ms       CPU time in the function and in all that it calls (in total)
  own ms   CPU time in the function itself (own time); that of a function of the
           C library includes what it calls inside of the library
  samples  number of samples; N samples have an error of about √N
  own      without times (folded stacks, .jlprof): samples in the function
Indented lines are callees, with branches; a sole callee is not indented. At the
right is the hottest line of the function, or its library if lines are unknown.
Small branches are left out, and counted: --all shows them.
  ↻        the function is recursive: calls by itself are folded into it
  ⋯        frames of libraries or of the language's runtime are left out here
  ×4       four processes, threads or tasks of this name share the row
  …        a name was shortened
  a → b    a calls b, and b has nearly all of its time
  a <- b   a was called by b
  [name]   no function: a library without symbols, code made at run time, the
           kernel, or time without a stack
  @name/   a package or folder, in front of a source file

Notes say what limits the results, such as missing symbols, stacks that are cut,
or time that nothing sampled, and what to do. `stackglass info` has all of them.

The digest, at the end
  wall     time from the start to the end of the recording
  CPU      CPU time of all threads, which may exceed the wall time
  cores    CPU time divided by wall time
  own time, in total, lines   the hottest functions and source lines
  waits    in a wall-time profile: the lines of the program in which tasks wait,
           and the future (Sleep, Acquire) in which each wait ends
  the last line names the function in which, or below which, the time goes

Allocations (`allocs`, `record --allocs`)
  count, bytes   allocations, and the sizes that the program asked for
  live     blocks that are alive at the end of the recording
  peak     bytes that were alive when the process had the most
  leaked   live blocks that nothing holds, as `--heap-at exit` finds; without
           it, all live blocks
  temporary  freed before the same thread allocated again
  average  bytes divided by count
  ±        standard error of the bytes, if not every allocation was recorded
  site     the innermost line outside of allocators and standard libraries;
           `sites` is how many lines share the row
  line     the innermost line of the program itself, outside of the crates that
           it depends on. The digest has the largest lines, in the same order
  type     what the block was made for, as Rust writes it; `(unknown)` if debug
           information does not tell
  [mmap]   memory that the program itself requested from the kernel
A reallocation is one allocation of the new size, and the end of the old block.

Full reports (`print --format tree`, `--format flat`) are those of Julia's
Profile. Their words are Julia's: a snapshot is one observation of one thread,
the count of a row is the snapshots in it or below it, and its overhead those in
the row itself. Utilization is the share of snapshots in which a thread was not
asleep. In `peek`, as in Julia, snapshots of ready threads count as well: on a
busy machine, utilization and rows are more than the CPU time.";
