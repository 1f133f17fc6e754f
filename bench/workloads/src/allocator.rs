//! The program's allocator, if a feature builds in a profiler of allocations. The first of these features wins.

/// Stackglass's, which records only between `start` and the end of the program.
#[cfg(feature = "stackglass")]
#[global_allocator]
static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();

/// dhat-rs's, which records while its profiler lives.
#[cfg(all(feature = "dhat", not(feature = "stackglass")))]
#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// jemalloc, whose profiler is turned on by the environment: `_RJEM_MALLOC_CONF`.
#[cfg(all(feature = "jemalloc", not(any(feature = "stackglass", feature = "dhat"))))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Records every allocation until it is dropped, and then writes the recording to the file.
#[cfg(all(feature = "dhat", not(feature = "stackglass")))]
pub fn start(file: &str) -> Result<dhat::Profiler, String> {
    Ok(dhat::Profiler::builder().file_name(file).build())
}

/// Records allocations, each with this probability, until the end of the program.
#[cfg(feature = "stackglass")]
pub fn start(rate: &str) -> Result<(), String> {
    let rate: f64 = rate.parse().map_err(|_| format!("--allocs: {rate:?} is no number"))?;
    stackglass::allocs::start(rate).map_err(|error| error.to_string())
}
