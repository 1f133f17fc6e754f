//! OutsidePeeks to the peeks that the processes of `stackglass run` are asked for: each on a thread of its own, which looks at its
//! process from outside.
//!
//! A process is peeked at for one responder at a time. A question that comes meanwhile is told so and gets a peek of its
//! own afterwards; a signal that comes while the peek is for standard error shows the stacks there again.

use crate::attached::OutsidePeek;
use crate::attached::peek::{Onlooker, Wish, look};
use crate::peeks::PeekPart;
use crate::peeks::request;
use crate::peeks::responder::{RequestQueue, Responder};
use crate::recording::Observer;
use foldhash::HashMap;
use stackglass_attach::Refusal;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Peeks that go on at a time; others wait.
const MOST: usize = 8;
/// How long a process that nobody asks is remembered: the signal of a question may come after the question.
const REMEMBERED: Duration = Duration::from_secs(1);
/// Patience with names at the end of everything.
const LAST_NAMES: Duration = Duration::from_secs(20);
/// Patience with threads that were told to let their process go.
const LETTING_GO: Duration = Duration::from_secs(1);

/// What a thread that answers tells the launcher.
enum News {
    /// A part of the answer.
    Part(Box<PeekPart>),
    /// A line for the asker.
    Line(String),
    /// It has ended; whether with a report, which ends the answer as well.
    Over { reported: bool },
}

/// News, of which process, and for whom they are.
type Addressed = (u32, Responder, News);

/// Peeks that go on and those that wait.
pub(super) struct OutsidePeeks {
    /// Duration and delay of a peek for which nobody wishes others.
    own: (Duration, Duration),
    processes: HashMap<u32, Process>,
    news: (Sender<Addressed>, Receiver<Addressed>),
}

/// A process that was asked.
struct Process {
    queue: RequestQueue,
    waiting: VecDeque<Responder>,
    going: Option<Going>,
    idle_since: Instant,
}

/// A peek that goes on.
struct Going {
    responder: Responder,
    until: Instant,
    orders: Arc<Orders>,
}

/// What the launcher and a thread that answers tell each other.
#[derive(Default)]
struct Orders {
    stacks_again: AtomicBool,
    end: AtomicBool,
    has_let_go: AtomicBool,
}

impl OutsidePeeks {
    /// None yet; each takes `duration`, with a look every `delay`, unless it is wished otherwise.
    pub(super) fn new(duration: Duration, delay: Duration) -> OutsidePeeks {
        OutsidePeeks { own: (duration, delay), processes: HashMap::default(), news: channel() }
    }

    /// Takes up that process `pid` was asked so often.
    pub(super) fn receive(&mut self, pid: u32, requests: u32) {
        let process = self.processes.entry(pid).or_insert_with(|| Process {
            queue: RequestQueue::of(pid),
            waiting: VecDeque::new(),
            going: None,
            idle_since: Instant::now(),
        });
        for responder in process.queue.receive(requests) {
            // One that only looks for names is as good as over.
            let going = process.going.as_ref().filter(|going| !going.orders.has_let_go.load(Acquire));
            match going {
                Some(going) if going.responder.is_stderr() && responder.is_stderr() => {
                    going.orders.stacks_again.store(true, Release);
                    continue;
                }
                Some(going) => {
                    let left = going.until.saturating_duration_since(Instant::now());
                    responder.write(request::wait_notice(pid, left).as_bytes());
                }
                None => {}
            }
            // To standard error one report is enough.
            if !responder.is_stderr() || !process.waiting.iter().any(Responder::is_stderr) {
                process.waiting.push_back(responder);
            }
        }
    }

    /// Shows what has come, and begins what waits.
    pub(super) fn proceed(&mut self, observer: &mut dyn Observer) {
        self.show(Duration::ZERO, observer);
        let mut going = self.going().count();
        for (pid, process) in &mut self.processes {
            while process.going.is_none()
                && going < MOST
                && let Some(responder) = process.waiting.pop_front()
            {
                if !responder.is_abandoned() {
                    process.going = begin(*pid, responder, self.own, &self.news.0);
                    going += usize::from(process.going.is_some());
                }
            }
        }
        self.processes.retain(|_, process| process.is_busy() || process.idle_since.elapsed() < REMEMBERED);
    }

    /// True while anything goes on or waits.
    pub(super) fn is_busy(&self) -> bool {
        self.processes.values().any(Process::is_busy)
    }

    /// Ends all peeks so far that no process is traced any more: we are about to stand still.
    pub(super) fn let_go(&mut self) {
        self.going().for_each(|going| going.orders.end.store(true, Release));
        let until = Instant::now() + LETTING_GO;
        while !self.going().all(|going| going.orders.has_let_go.load(Acquire)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends all peeks as they are and shows what there is.
    pub(super) fn finish(&mut self, observer: &mut dyn Observer) {
        for process in self.processes.values_mut() {
            process.waiting.drain(..).for_each(|responder| responder.finish(false));
        }
        self.going().for_each(|going| going.orders.end.store(true, Release));
        let until = Instant::now() + LAST_NAMES;
        while self.going().next().is_some() && Instant::now() < until {
            self.show(Duration::from_millis(20), observer);
        }
    }

    fn going(&self) -> impl Iterator<Item = &Going> {
        self.processes.values().filter_map(|process| process.going.as_ref())
    }

    fn show(&mut self, patience: Duration, observer: &mut dyn Observer) {
        while let Ok((pid, responder, news)) = self.news.1.recv_timeout(patience) {
            match news {
                News::Part(part) => observer.peek(pid, &part, &responder),
                News::Line(line) => {
                    if !responder.write(format!("stackglass: {line}\n").as_bytes()) {
                        observer.note(&line);
                    }
                }
                News::Over { reported } => {
                    if !reported {
                        responder.finish(false);
                    }
                    if let Some(process) = self.processes.get_mut(&pid) {
                        process.idle_since = Instant::now();
                        let late = |going: Going| going.orders.stacks_again.load(Acquire);
                        // A signal that came in the last moment of a peek asks for another.
                        if process.going.take().is_some_and(late)
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
        self.going.is_some() || !self.waiting.is_empty()
    }
}

/// Begins a peek; `None` when there is no thread for it.
fn begin(
    pid: u32,
    responder: Responder,
    own: (Duration, Duration),
    news: &Sender<Addressed>,
) -> Option<Going> {
    let duration = responder.options().duration.unwrap_or(own.0);
    let delay = responder.options().delay.unwrap_or(own.1);
    let options = OutsidePeek { pid, duration, delay, driver: None };
    let orders = Arc::new(Orders::default());
    let mut answer = Answer {
        pid,
        responder: responder.clone(),
        orders: orders.clone(),
        news: news.clone(),
        reported: false,
    };
    let begun = std::thread::Builder::new().name("stackglass-peek".into()).spawn(move || {
        match look(&options, &mut answer) {
            // At the terminal it is plain that the process has ended.
            Ok(_) | Err(Refusal::NoProcess { .. } | Refusal::Ended { .. }) => {}
            Err(why) => answer.tell(News::Line(why.to_string())),
        }
    });
    // Without a thread, the answer was dropped, which has ended it.
    begun.ok().map(|_| Going { responder, until: Instant::now() + duration, orders })
}

/// A peek as its thread knows it.
struct Answer {
    pid: u32,
    responder: Responder,
    orders: Arc<Orders>,
    news: Sender<Addressed>,
    reported: bool,
}

impl Answer {
    fn tell(&self, news: News) {
        // Nobody waits any more where the launcher has ended.
        let _ = self.news.send((self.pid, self.responder.clone(), news));
    }
}

impl Onlooker for Answer {
    fn wish(&mut self, pause: Duration) -> Wish {
        std::thread::sleep(pause);
        if self.responder.is_abandoned() {
            Wish::Nothing
        } else if self.orders.end.load(Acquire) {
            Wish::End
        } else if self.orders.stacks_again.swap(false, AcqRel) {
            Wish::StacksAgain
        } else {
            Wish::GoOn
        }
    }

    fn wait(&mut self, line: &str) {
        self.tell(News::Line(line.to_owned()));
    }

    fn let_go(&mut self) {
        self.orders.has_let_go.store(true, Release);
    }

    fn show(&mut self, part: PeekPart) {
        self.reported |= matches!(part, PeekPart::Report { .. });
        self.tell(News::Part(Box::new(part)));
    }
}

impl Drop for Answer {
    /// Whatever has ended it.
    fn drop(&mut self) {
        self.orders.has_let_go.store(true, Release);
        self.tell(News::Over { reported: self.reported });
    }
}
