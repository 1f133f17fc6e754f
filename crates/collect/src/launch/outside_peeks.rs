//! Peeks at the processes of `stackglass run`. Each peek runs on a separate thread and samples its process from
//! outside.
//!
//! A process has one peek at a time. A request during a peek is answered with a notice, and gets its own peek afterwards.
//! A signal during a peek for standard error repeats the stacks there.

use crate::attached::OutsidePeek;
use crate::attached::peek::{PeekClient, PeekControl, run_peek};
use crate::peeks::PeekPart;
use crate::peeks::request::{self, PeekDefaults};
use crate::peeks::responder::{RequestQueue, Responder};
use crate::recording::Observer;
use foldhash::HashMap;
use stackglass_attach::Refusal;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Largest number of peeks at a time; others wait.
const MOST: usize = 8;
/// Time for which an idle process is remembered: the signal of a request may arrive after the request.
const REMEMBERED: Duration = Duration::from_secs(1);
/// Longest wait for symbols at the end.
const LAST_SYMBOLS: Duration = Duration::from_secs(20);
/// Longest wait for threads that were requested to detach from their process.
const DETACHING: Duration = Duration::from_secs(1);

/// What the thread of a peek reports to the launcher.
enum PeekEvent {
    /// A part of the result.
    Part(Box<PeekPart>),
    /// A line for the user.
    Line(String),
    /// It has ended. `reported`: with a report, which also finishes the response.
    Ended { reported: bool },
}

/// An event, and the peek that it belongs to.
struct Report {
    pid: u32,
    responder: Responder,
    event: PeekEvent,
}

/// All peeks, active and waiting.
pub(super) struct OutsidePeeks {
    defaults: PeekDefaults,
    processes: HashMap<u32, Process>,
    sender: Sender<Report>,
    receiver: Receiver<Report>,
}

/// A process that has received a request.
struct Process {
    queue: RequestQueue,
    waiting: VecDeque<Responder>,
    active: Option<ActivePeek>,
    idle_since: Instant,
}

/// A peek that is running.
struct ActivePeek {
    responder: Responder,
    until: Instant,
    shared: Arc<Shared>,
}

/// Shared between the launcher and the thread of a peek.
#[derive(Default)]
struct Shared {
    stacks_again: AtomicBool,
    end: AtomicBool,
    is_detached: AtomicBool,
}

impl OutsidePeeks {
    /// No peeks yet.
    pub(super) fn new(defaults: PeekDefaults) -> OutsidePeeks {
        let (sender, receiver) = channel();
        OutsidePeeks { defaults, processes: HashMap::default(), sender, receiver }
    }

    /// Process `pid` has received `requests` new requests.
    pub(super) fn receive(&mut self, pid: u32, requests: u32) {
        let process = self.processes.entry(pid).or_insert_with(|| Process {
            queue: RequestQueue::new(pid),
            waiting: VecDeque::new(),
            active: None,
            idle_since: Instant::now(),
        });
        for responder in process.queue.receive(requests) {
            // A peek that only symbolizes counts as ended.
            let active = process.active.as_ref().filter(|peek| !peek.shared.is_detached.load(Acquire));
            match active {
                Some(peek) if peek.responder.is_stderr() && responder.is_stderr() => {
                    peek.shared.stacks_again.store(true, Release);
                    continue;
                }
                Some(peek) => {
                    let left = peek.until.saturating_duration_since(Instant::now());
                    responder.write(request::wait_notice(pid, left).as_bytes());
                }
                None => {}
            }
            // One report for standard error is enough.
            if !responder.is_stderr() || !process.waiting.iter().any(Responder::is_stderr) {
                process.waiting.push_back(responder);
            }
        }
    }

    /// Shows results, and starts peeks that wait.
    pub(super) fn advance(&mut self, observer: &mut dyn Observer) {
        self.show(Duration::ZERO, observer);
        let mut active = self.active().count();
        for (pid, process) in &mut self.processes {
            while process.active.is_none()
                && active < MOST
                && let Some(responder) = process.waiting.pop_front()
            {
                if !responder.is_abandoned() {
                    process.active = start(*pid, responder, self.defaults, &self.sender);
                    active += usize::from(process.active.is_some());
                }
            }
        }
        self.processes.retain(|_, process| process.is_busy() || process.idle_since.elapsed() < REMEMBERED);
    }

    /// Whether any peek is active or waiting.
    pub(super) fn is_busy(&self) -> bool {
        self.processes.values().any(Process::is_busy)
    }

    /// Ends all peeks until no process is traced any more: this process is about to be stopped.
    pub(super) fn detach_all(&mut self) {
        self.active().for_each(|peek| peek.shared.end.store(true, Release));
        let until = Instant::now() + DETACHING;
        while !self.active().all(|peek| peek.shared.is_detached.load(Acquire)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends all peeks and shows their results so far.
    pub(super) fn finish(&mut self, observer: &mut dyn Observer) {
        for process in self.processes.values_mut() {
            process.waiting.drain(..).for_each(|responder| responder.finish(false));
        }
        self.active().for_each(|peek| peek.shared.end.store(true, Release));
        let until = Instant::now() + LAST_SYMBOLS;
        while self.active().next().is_some() && Instant::now() < until {
            self.show(Duration::from_millis(20), observer);
        }
    }

    fn active(&self) -> impl Iterator<Item = &ActivePeek> {
        self.processes.values().filter_map(|process| process.active.as_ref())
    }

    fn show(&mut self, patience: Duration, observer: &mut dyn Observer) {
        while let Ok(Report { pid, responder, event }) = self.receiver.recv_timeout(patience) {
            match event {
                PeekEvent::Part(part) => observer.peek(pid, &part, &responder),
                PeekEvent::Line(line) => {
                    if !responder.write(format!("stackglass: {line}\n").as_bytes()) {
                        observer.note(&line);
                    }
                }
                PeekEvent::Ended { reported } => {
                    if !reported {
                        responder.finish(false);
                    }
                    if let Some(process) = self.processes.get_mut(&pid) {
                        process.idle_since = Instant::now();
                        let late = |peek: ActivePeek| peek.shared.stacks_again.load(Acquire);
                        // A signal in the last moment of a peek requests another.
                        if process.active.take().is_some_and(late)
                            && !process.waiting.iter().any(Responder::is_stderr)
                        {
                            process.waiting.push_front(Responder::stderr());
                        }
                    }
                }
            }
        }
    }
}

impl Process {
    fn is_busy(&self) -> bool {
        self.active.is_some() || !self.waiting.is_empty()
    }
}

/// Starts a peek; `None` if no thread can be started.
fn start(
    pid: u32,
    responder: Responder,
    defaults: PeekDefaults,
    sender: &Sender<Report>,
) -> Option<ActivePeek> {
    let duration = responder.options().duration.unwrap_or(defaults.duration);
    let delay = responder.options().delay.unwrap_or(defaults.delay);
    let options = OutsidePeek { pid, duration, delay, driver: None };
    let shared = Arc::new(Shared::default());
    let mut client = Client {
        pid,
        responder: responder.clone(),
        shared: shared.clone(),
        sender: sender.clone(),
        reported: false,
    };
    let begun = std::thread::Builder::new().name("stackglass-peek".into()).spawn(move || {
        match run_peek(&options, &mut client) {
            // That the process has ended is obvious at the terminal.
            Ok(_) | Err(Refusal::NoProcess { .. } | Refusal::Ended { .. }) => {}
            Err(why) => client.send(PeekEvent::Line(why.to_string())),
        }
    });
    // Without a thread, dropping the client has already finished the response.
    begun.ok().map(|_| ActivePeek { responder, until: Instant::now() + duration, shared })
}

/// The client of a peek, on the thread of the peek.
struct Client {
    pid: u32,
    responder: Responder,
    shared: Arc<Shared>,
    sender: Sender<Report>,
    reported: bool,
}

impl Client {
    fn send(&self, event: PeekEvent) {
        // The receiver is gone if the launcher has ended.
        let _ = self.sender.send(Report { pid: self.pid, responder: self.responder.clone(), event });
    }
}

impl PeekClient for Client {
    fn next(&mut self, pause: Duration) -> PeekControl {
        std::thread::sleep(pause);
        if self.responder.is_abandoned() {
            PeekControl::Abandon
        } else if self.shared.end.load(Acquire) {
            PeekControl::Finish
        } else if self.shared.stacks_again.swap(false, AcqRel) {
            PeekControl::RepeatStacks
        } else {
            PeekControl::Continue
        }
    }

    fn waiting(&mut self, line: &str) {
        self.send(PeekEvent::Line(line.to_owned()));
    }

    fn detached(&mut self) {
        self.shared.is_detached.store(true, Release);
    }

    fn show(&mut self, part: PeekPart) {
        self.reported |= matches!(part, PeekPart::Report { .. });
        self.send(PeekEvent::Part(Box::new(part)));
    }
}

impl Drop for Client {
    /// However the peek has ended.
    fn drop(&mut self) {
        self.shared.is_detached.store(true, Release);
        self.send(PeekEvent::Ended { reported: self.reported });
    }
}
