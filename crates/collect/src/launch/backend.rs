//! How a program that we start is sampled: from outside by perf events or ptrace, or from inside by the preload
//! library.
//!
//! From outside is the default, because nothing runs inside the program. If perf events are refused, nothing else samples a
//! running thread without interrupting its system calls, so the user must ask for ptrace or the preload library. The preload
//! library is also used for what only the program knows: async tasks of programs that link the crate. Wall-time profiles of
//! programs with types are snapshots of their tasks from outside ([`walltime`](crate::walltime)); those of other programs are
//! profiles of their threads, which are sampled as in any recording.

use super::drain::Drain;
use super::error::LaunchError;
use super::heap_at::HeapAt;
use super::library::Library;
use super::options::Options;
use super::sampler::Sampler;
use super::stream_file::PeekableImage;
use crate::attached::descendants::Descendants;
use crate::perf_sampler::PerfSampler;
use crate::session::Session;
use crate::walltime::WallTime;
use stackglass_attach::Driver;
use stackglass_attach::access::may_trace_children;
use stackglass_attach::driver::RISK;
use stackglass_attach::perf_refused::PerfRefused;
use stackglass_attach::probe;
use stackglass_inspect::linked_crate::links_the_crate;
use stackglass_inspect::task_sampler::TaskTypes;
use stackglass_profile::{Nanos, Recorder};
use std::os::fd::RawFd;
use std::path::Path;
use std::time::Duration;

/// Time between two reads of the streams of guests while they are nearly empty.
const CALM: Duration = Duration::from_millis(50);
/// The same while one of them is filling up.
const BUSY: Duration = Duration::from_millis(2);
/// A stream fuller than this is filling up.
const FILLING: f64 = 0.1;

/// Limits of sampling by ptrace, for messages.
const APPROXIMATE: &str =
    "shares of short bursts are approximate, what lives for a few milliseconds is not seen";

/// Why a profile by wall time is one of threads, where the program's file is not the reason.
const NOT_TRACED: &str = "its tasks may not be read here, so this is a profile of threads";
/// The same, where the sampler is the reason.
const SAMPLED: &str = "the sampler that was asked for sees threads, so this is a profile of threads: without `--sampler`, tasks are seen";
/// The program may be one that starts another.
const NO_TASKS: &str = "no tasks of tokio are in it, so this is a profile of threads; if it only starts the program with the \
    tasks, as a shell does, name that program after `--`";
/// The same for programs that can name tasks.
const NAMED_ALONE: &str = "the lines in which its tasks wait cannot be read here: only threads are seen, and tasks that it names itself";

/// Why a profile by wall time is one of threads, or of named tasks; `None` if the program's tasks can be read.
fn no_tasks(program: &Path) -> Option<&'static str> {
    match TaskTypes::from_program(program) {
        TaskTypes::Known if may_trace_children() => None,
        _ if links_the_crate(program) => Some(NAMED_ALONE),
        TaskTypes::Known => Some(NOT_TRACED),
        TaskTypes::NoTokio => Some(NO_TASKS),
        types => types.lack(),
    }
}

/// A way of sampling, and its state.
pub(super) enum Backend {
    Perf(Box<PerfSampler>),
    Traced(Descendants),
    Tasks(Box<Tasks>),
    Inside { drain: Drain, library: Option<Library>, fullest: f64 },
}

/// The tasks of the program, by snapshots from outside.
pub(super) struct Tasks {
    delay: Duration,
    sampling: bool,
    /// `None` until the program has started.
    profile: Option<WallTime>,
}

impl Backend {
    /// Chooses the backend. Returns a line for the user if it is not the requested one or has limits. Call it on the
    /// thread that then starts the program.
    ///
    /// # Errors
    /// If perf events are refused and nothing else is asked for, or the preload library is needed and cannot be unpacked.
    pub(super) fn choose(
        options: &Options,
        session: &Session,
    ) -> Result<(Backend, Option<String>), LaunchError> {
        let inside = |why: Option<String>| {
            let library = (options.library)().map_err(LaunchError::Library)?;
            let drain = Drain::new(session.folder());
            Ok((Backend::Inside { drain, library: Some(library), fullest: 0.0 }, why))
        };
        if options.heap_at.as_ref().is_some_and(|heap| heap.at == HeapAt::Peak) {
            probe::stop_in_user_code().map_err(LaunchError::NoStops)?;
        }
        let program = options.program.executable();
        let no_tasks = match options.sampler {
            Some(Sampler::Preload) => return inside(None),
            None if options.walltime => match no_tasks(&program) {
                None => {
                    probe::stop_in_user_code().map_err(LaunchError::NoStops)?;
                    let sampling = options.time && options.delay_start.is_none_or(|delay| delay.is_zero());
                    let tasks = Tasks { delay: options.delay, sampling, profile: None };
                    return Ok((Backend::Tasks(Box::new(tasks)), None));
                }
                Some(why) if links_the_crate(&program) => return inside(Some(why.to_owned())),
                why => why,
            },
            None if links_the_crate(&program) => return inside(None),
            // Nor are tasks that the program names itself.
            Some(_) if options.walltime => match no_tasks(&program) {
                None | Some(NAMED_ALONE) => Some(SAMPLED),
                why => why,
            },
            _ => None,
        };
        let said = |of_sampler: String| match no_tasks {
            Some(of_tasks) => format!("{of_sampler}; {of_tasks}"),
            None => of_sampler,
        };
        let at_once = options.time && options.delay_start.is_none_or(|delay| delay.is_zero());
        let traced = || {
            Backend::Traced(Descendants::new(
                options.delay,
                Some(Driver::Ptrace),
                options.follow_children,
                at_once,
            ))
        };
        let asks_for_ptrace = options.sampler == Some(Sampler::Ptrace);
        match PerfSampler::prepare(options.delay, options.follow_children, at_once) {
            Ok(sampler) => Ok((
                Backend::Perf(Box::new(sampler)),
                match asks_for_ptrace {
                    true => Some(said(format!("perf events are used, as they are allowed here: {RISK}"))),
                    false => no_tasks.map(str::to_owned),
                },
            )),
            Err(_) if asks_for_ptrace => {
                Ok((traced(), Some(said(format!("sampled by ptrace, as asked. {RISK}; {APPROXIMATE}")))))
            }
            // Nothing is sampled, so nothing stops.
            Err(_) if !options.time => Ok((traced(), None)),
            Err(error) => Err(LaunchError::NoPerf(PerfRefused::new(error))),
        }
    }

    /// Whether a profile by wall time is one of threads, sampled from outside.
    pub(super) fn samples_threads(&self) -> bool {
        matches!(self, Backend::Perf(_) | Backend::Traced(_))
    }

    /// The library to preload.
    pub(super) fn library(&self) -> Option<&Path> {
        match self {
            Backend::Perf(_) | Backend::Traced(_) | Backend::Tasks(_) => None,
            Backend::Inside { library, .. } => library.as_ref().map(Library::path),
        }
    }

    /// Whether it reads what the kernel says of the program in proc(5).
    pub(super) fn needs_proc(&self) -> bool {
        !matches!(self, Backend::Perf(_))
    }

    /// The program is about to be started, by the calling thread.
    pub(super) fn begin(&self) {
        if let Backend::Perf(sampler) = self {
            sampler.begin();
        }
    }

    /// The program has been started.
    pub(super) fn started(&mut self, pid: u32, program: &Path) {
        match self {
            Backend::Perf(sampler) => sampler.started(),
            Backend::Traced(descendants) => descendants.started(pid, program),
            Backend::Tasks(tasks) => tasks.profile = Some(WallTime::begin(pid, tasks.delay, tasks.sampling)),
            Backend::Inside { .. } => {}
        }
    }

    /// Descriptors that become readable when samples should be read.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Backend::Perf(sampler) => sampler.descriptors().collect(),
            Backend::Traced(_) | Backend::Tasks(_) | Backend::Inside { .. } => Vec::new(),
        }
    }

    /// Time until samples should be read, unless a descriptor becomes readable earlier.
    pub(super) fn pause(&mut self) -> Duration {
        match self {
            Backend::Perf(sampler) => sampler.pause(),
            Backend::Traced(descendants) => descendants.pause(),
            Backend::Tasks(_) => CALM,
            Backend::Inside { fullest, .. } if *fullest > FILLING => BUSY,
            Backend::Inside { .. } => CALM,
        }
    }

    /// The images that can be peeked at by signal, in their state before the next read.
    pub(super) fn peekable(&self) -> Vec<PeekableImage> {
        match self {
            Backend::Perf(_) | Backend::Traced(_) | Backend::Tasks(_) => Vec::new(),
            Backend::Inside { drain, .. } => drain.peekable(),
        }
    }

    /// Reads the samples since the last call.
    pub(super) fn read(&mut self, recorder: &mut Recorder) {
        match self {
            Backend::Perf(sampler) => sampler.drain(recorder),
            Backend::Traced(descendants) => descendants.read(recorder),
            Backend::Tasks(tasks) => tasks.profile.iter_mut().for_each(|profile| profile.read(recorder)),
            Backend::Inside { drain, fullest, .. } => *fullest = drain.read(recorder),
        }
    }

    /// Brings the recording up to date before it is appended to the file.
    pub(super) fn settle(&mut self, recorder: &mut Recorder) {
        match self {
            Backend::Perf(sampler) => sampler.settle(recorder),
            Backend::Traced(_) | Backend::Tasks(_) => {}
            Backend::Inside { drain, .. } => drain.settle(recorder),
        }
    }

    /// Brings all of the recording up to date, for a reader of the whole.
    pub(super) fn settle_all(&mut self, recorder: &mut Recorder) {
        match self {
            Backend::Perf(sampler) => sampler.settle_all(recorder),
            Backend::Traced(_) => {}
            Backend::Tasks(tasks) => tasks.profile.iter_mut().for_each(|profile| profile.read_all(recorder)),
            Backend::Inside { drain, .. } => drain.settle(recorder),
        }
    }

    /// Starts or stops the sampling. Guests follow the state of the session.
    pub(super) fn set_sampling(&mut self, on: bool, recorder: &mut Recorder) {
        match self {
            Backend::Perf(sampler) => sampler.set_sampling(on, recorder),
            Backend::Traced(descendants) => descendants.set_sampling(on),
            Backend::Tasks(tasks) => {
                tasks.sampling = on;
                tasks.profile.iter_mut().for_each(|profile| profile.set_sampling(on));
            }
            Backend::Inside { .. } => {}
        }
    }

    /// Forgets all samples.
    pub(super) fn forget_samples(&mut self, recorder: &mut Recorder) {
        match self {
            Backend::Perf(sampler) => sampler.forget_samples(recorder),
            Backend::Traced(descendants) => descendants.forget_samples(recorder),
            Backend::Tasks(tasks) => {
                tasks.profile.iter_mut().for_each(|profile| profile.forget_samples(recorder))
            }
            Backend::Inside { drain, .. } => drain.forget_samples(recorder),
        }
    }

    /// Number of processes that are sampled now.
    pub(super) fn processes(&self) -> usize {
        match self {
            Backend::Perf(sampler) => sampler.processes(),
            Backend::Traced(descendants) => descendants.processes(),
            Backend::Tasks(tasks) => tasks.profile.iter().filter(|profile| !profile.has_ended()).count(),
            Backend::Inside { drain, .. } => drain.processes(),
        }
    }

    /// CPU time of samplers outside of this process, ns.
    pub(super) fn sampler_cpu(&self) -> u64 {
        match self {
            // Their threads belong to this process.
            Backend::Perf(_) | Backend::Traced(_) | Backend::Tasks(_) => 0,
            Backend::Inside { drain, .. } => drain.sampler_cpu(),
        }
    }

    /// Whether all samplers have written their last events.
    pub(super) fn is_quiet(&mut self) -> bool {
        match self {
            Backend::Perf(_) | Backend::Traced(_) | Backend::Tasks(_) => true,
            Backend::Inside { drain, .. } => drain.is_quiet(),
        }
    }

    /// CPU time that this backend does not see, in words.
    pub(super) fn blind_spot(&self) -> Option<&'static str> {
        match self {
            Backend::Traced(_) => {
                Some("what lived for a few milliseconds, and the start of the rest (ptrace)")
            }
            Backend::Perf(_) | Backend::Tasks(_) | Backend::Inside { .. } => None,
        }
    }

    /// Ends the reading. Returns the CPU time of samplers outside of this process.
    pub(super) fn close(self, recorder: &mut Recorder) -> Nanos {
        match self {
            Backend::Perf(sampler) => sampler.close(recorder),
            Backend::Traced(descendants) => {
                descendants.close(recorder);
                Nanos(0)
            }
            Backend::Tasks(tasks) => {
                tasks.profile.into_iter().for_each(|mut profile| profile.close(recorder));
                Nanos(0)
            }
            Backend::Inside { drain, .. } => drain.close(recorder),
        }
    }

    /// Ends the task snapshot that is being taken, and takes no more. Returns whether there were any.
    pub(super) fn pause_task_snapshots(&mut self, recorder: &mut Recorder) -> bool {
        let Backend::Tasks(tasks) = self else { return false };
        let Some(profile) = tasks.profile.as_mut().filter(|_| tasks.sampling) else { return false };
        profile.set_sampling(false);
        profile.read_all(recorder);
        true
    }

    /// Lines for the user since the last call.
    pub(super) fn notes(&mut self) -> Vec<String> {
        match self {
            Backend::Tasks(tasks) => tasks.profile.as_mut().map(WallTime::notes).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}
