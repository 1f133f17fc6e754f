//! Threads that loop over every way to wait with a time-out, from Rust's std and from C.
//!
//! Each way is a separate function, so that the stack of a sleeping thread is known: `sleeper_thread` above exactly one
//! `wait_…`. For each function, a thread counts interrupted waits and measures the time.

use crate::options::Options;
use crate::report::Report;
use crate::spin::Shuffle;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Condvar, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn wait_c_poll(ms: libc::c_long) -> libc::c_int;
    fn wait_c_epoll(ms: libc::c_long, epoll: libc::c_int) -> libc::c_int;
    fn wait_c_select(ms: libc::c_long) -> libc::c_int;
    fn wait_c_nanosleep(ms: libc::c_long) -> libc::c_int;
    fn wait_c_usleep(ms: libc::c_long) -> libc::c_int;
    fn wait_c_recv(socket: libc::c_int) -> libc::c_int;
    fn wait_c_condition(ms: libc::c_long) -> libc::c_int;
}

/// The objects that a thread waits for.
struct Means {
    lock: Mutex<()>,
    condition: Condvar,
    channel: Receiver<()>,
    socket: UdpSocket,
    epoll: i32,
}

impl Means {
    fn new(channel: Receiver<()>) -> Means {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a local socket can be made");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out can be set");
        // SAFETY: takes a flag, returns a descriptor or -1; it stays open until the process ends.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(epoll >= 0, "an epoll descriptor can be made");
        Means { lock: Mutex::new(()), condition: Condvar::new(), channel, socket, epoll }
    }
}

#[inline(never)]
fn wait_std_sleep(_: &Means, ms: u64) -> bool {
    std::thread::sleep(Duration::from_millis(ms));
    false
}

#[inline(never)]
fn wait_std_condvar(means: &Means, ms: u64) -> bool {
    let held = means.lock.lock().expect("nobody panics with the lock");
    drop(means.condition.wait_timeout(held, Duration::from_millis(ms)));
    false
}

#[inline(never)]
fn wait_std_channel(means: &Means, ms: u64) -> bool {
    means.channel.recv_timeout(Duration::from_millis(ms)).is_ok()
}

#[inline(never)]
fn wait_std_park(_: &Means, ms: u64) -> bool {
    std::thread::park_timeout(Duration::from_millis(ms));
    false
}

#[inline(never)]
fn wait_std_socket(means: &Means, ms: u64) -> bool {
    std::hint::black_box(ms);
    let got = means.socket.recv(&mut [0]);
    got.is_err_and(|error| error.kind() == ErrorKind::Interrupted)
}

/// Calls a wait in C. The result is used after the call, so that it is no tail call.
macro_rules! from_c {
    ($($name:ident: |$means:ident, $ms:ident| $call:expr;)*) => { $(
        #[inline(never)]
        fn $name($means: &Means, $ms: u64) -> bool {
            let $ms = $ms as libc::c_long;
            let _ = &$means;
            // SAFETY: the function in c/sleepers.c takes plain numbers and open descriptors.
            let broken = unsafe { $call };
            std::hint::black_box(broken) != 0
        }
    )* }
}

from_c! {
    place_c_poll: |means, ms| wait_c_poll(ms);
    place_c_epoll: |means, ms| wait_c_epoll(ms, means.epoll);
    place_c_select: |means, ms| wait_c_select(ms);
    place_c_nanosleep: |means, ms| wait_c_nanosleep(ms);
    place_c_usleep: |means, ms| wait_c_usleep(ms);
    place_c_recv: |means, ms| { std::hint::black_box(ms); wait_c_recv(means.socket.as_raw_fd()) };
    place_c_condition: |means, ms| wait_c_condition(ms);
}

type Place = (&'static str, fn(&Means, u64) -> bool);

/// The name of each function in stacks, and the function.
const PLACES: &[Place] = &[
    ("wait_std_sleep", wait_std_sleep),
    ("wait_std_condvar", wait_std_condvar),
    ("wait_std_channel", wait_std_channel),
    ("wait_std_park", wait_std_park),
    ("wait_std_socket", wait_std_socket),
    ("wait_c_poll", place_c_poll),
    ("wait_c_epoll", place_c_epoll),
    ("wait_c_select", place_c_select),
    ("wait_c_nanosleep", place_c_nanosleep),
    ("wait_c_usleep", place_c_usleep),
    ("wait_c_recv", place_c_recv),
    ("wait_c_condition", place_c_condition),
];

/// The account of a thread, by function.
#[derive(Clone, Copy, Default)]
struct Account {
    waits: u64,
    broken: u64,
    time: Duration,
}

#[inline(never)]
fn sleeper_thread(means: &Means, end: Instant, order: &mut Shuffle) -> [Account; PLACES.len()] {
    let mut accounts = [Account::default(); PLACES.len()];
    while Instant::now() < end {
        let place = order.below(PLACES.len() as u64) as usize;
        let ms = 10 + order.below(30);
        let begin = Instant::now();
        let broken = PLACES[place].1(means, ms);
        let account = &mut accounts[place];
        account.waits += 1;
        account.broken += broken as u64;
        account.time += begin.elapsed();
    }
    accounts
}

/// `--threads` such threads for `--seconds`.
pub fn run(options: &Options, report: &mut Report) {
    let end = Instant::now() + Duration::from_secs_f64(options.seconds);
    let start = |i: usize| {
        let seed = options.seed + i as u64;
        let (keep_open, channel) = mpsc::channel();
        let body = move || {
            let accounts = sleeper_thread(&Means::new(channel), end, &mut Shuffle::new(seed));
            drop(keep_open);
            accounts
        };
        Builder::new().name("sleeper".into()).spawn(body).expect("a thread can be started")
    };
    let handles: Vec<_> = (0..options.threads.unwrap_or(100)).map(start).collect();
    let accounts: Vec<_> = handles.into_iter().map(|h| h.join().expect("the thread ends well")).collect();

    let truth: Vec<String> = PLACES
        .iter()
        .enumerate()
        .map(|(place, (name, _))| {
            let sum = |field: fn(&Account) -> u64| accounts.iter().map(|a| field(&a[place])).sum::<u64>();
            format!(
                "{{\"function\": \"{name}\", \"waits\": {}, \"broken\": {}, \"broken_most\": {}, \"time_ns\": {}}}",
                sum(|a| a.waits),
                sum(|a| a.broken),
                accounts.iter().map(|a| a[place].broken).max().unwrap_or(0),
                sum(|a| a.time.as_nanos() as u64),
            )
        })
        .collect();
    report.number("sleepers", accounts.len());
    report.list("truth", &truth);
}
