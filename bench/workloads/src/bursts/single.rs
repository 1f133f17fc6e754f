//! One thread that waits for a time: by nanosleep, or by reading a timer's descriptor.

use super::account::{Account, Side};
use super::{FRONT, Shape, one_burst};
use crate::options::Options;
use crate::report::Report;
use crate::spin::Limit;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::time::Duration;

fn tell(report: &mut Report, account: Account) {
    report.list("truth", &account.functions);
    report.list("threads", &[account.thread]);
}

/// Bursts of one size with a sleep after each.
pub fn sleep(options: &Options, report: &mut Report) {
    let shape = Shape::from_options(options);
    let (mut side, mut limit) = (Side::new(FRONT), Limit::from_options(options));
    while limit.go_on() {
        one_burst(&mut side, shape.burst_us);
        std::thread::sleep(Duration::from_micros(shape.pause_us));
    }
    tell(report, side.account());
}

/// A burst at each expiry of a timer, whose period is burst and pause together.
pub fn timer(options: &Options, report: &mut Report) {
    let shape = Shape::from_options(options);
    let mut timer = periodic(Duration::from_micros(shape.burst_us + shape.pause_us));
    let (mut side, mut limit) = (Side::new(FRONT), Limit::from_options(options));
    while limit.go_on() {
        one_burst(&mut side, shape.burst_us);
        timer.read_exact(&mut [0; 8]).expect("a timer can be read");
    }
    tell(report, side.account());
}

/// A timer that expires at each `period` from now on.
fn periodic(period: Duration) -> File {
    // SAFETY: takes numbers, gives a new descriptor or -1.
    let descriptor = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    assert!(descriptor >= 0, "a timer can be made");
    // SAFETY: the descriptor is open and has no other owner.
    let timer = unsafe { File::from_raw_fd(descriptor) };
    let time = libc::timespec { tv_sec: period.as_secs() as i64, tv_nsec: i64::from(period.subsec_nanos()) };
    let times = libc::itimerspec { it_interval: time, it_value: time };
    // SAFETY: the descriptor is a timer, `times` outlives the call, and no old value is requested.
    let status = unsafe { libc::timerfd_settime(descriptor, 0, &times, std::ptr::null_mut()) };
    assert_eq!(status, 0, "a timer can be set");
    timer
}
