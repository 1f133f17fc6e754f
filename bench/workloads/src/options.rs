//! The options of all workloads.

/// The options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the workload.
    pub name: String,
    /// Duration, if no amount of work is given.
    pub seconds: f64,
    /// A fixed amount of work in the workload's unit.
    pub work: Option<u64>,
    /// Depth of the stack.
    pub depth: Option<u32>,
    /// Number of threads.
    pub threads: Option<usize>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Length of a burst, us.
    pub burst: Option<u64>,
    /// Wait after a burst, us.
    pub pause: Option<u64>,
    /// What the built-in profiler of allocations starts with.
    #[cfg(any(feature = "stackglass", feature = "dhat"))]
    pub allocs: Option<String>,
}

impl Options {
    /// Reads `NAME --flag value …`.
    pub fn parse(arguments: &[String]) -> Result<Options, String> {
        let (name, mut rest) = arguments.split_first().ok_or("which workload?")?;
        let mut options = Options {
            name: name.clone(),
            seconds: 2.0,
            work: None,
            depth: None,
            threads: None,
            seed: 1,
            burst: None,
            pause: None,
            #[cfg(any(feature = "stackglass", feature = "dhat"))]
            allocs: None,
        };
        while let [flag, value, more @ ..] = rest {
            match flag.as_str() {
                "--seconds" => options.seconds = number(flag, value)?,
                "--work" => options.work = Some(number(flag, value)?),
                "--depth" => options.depth = Some(number(flag, value)?),
                "--threads" => options.threads = Some(number(flag, value)?),
                "--burst" => options.burst = Some(number(flag, value)?),
                "--pause" => options.pause = Some(number(flag, value)?),
                "--seed" => options.seed = number(flag, value)?,
                #[cfg(any(feature = "stackglass", feature = "dhat"))]
                "--allocs" => options.allocs = Some(value.clone()),
                _ => return Err(format!("unknown flag {flag}")),
            }
            rest = more;
        }
        match rest {
            [] => Ok(options),
            [flag, ..] => Err(format!("{flag} needs a value")),
        }
    }
}

fn number<T: std::str::FromStr>(flag: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{flag}: {value:?} is no number"))
}
