//! Two processes with a pair of sockets that wait for each other.
//!
//! The front works a burst, sends a request, and waits for the response; the back works a burst of the same size for it. With
//! `--pause`, the front sleeps after each response.

use super::account::{Account, Side};
use super::{BACK, FRONT, Shape, one_burst};
use crate::options::Options;
use crate::report::Report;
use crate::spin::Limit;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Bytes of a request and of its response.
const MESSAGE: usize = 64;

fn front(options: &Options, ask: &mut impl Write, answers: &mut impl Read) -> Account {
    let shape = Shape::from_options(options);
    let (mut side, mut limit) = (Side::new(FRONT), Limit::from_options(options));
    while limit.go_on() {
        one_burst(&mut side, shape.burst_us);
        ask.write_all(&[1; MESSAGE]).expect("the back takes requests");
        answers.read_exact(&mut [0; MESSAGE]).expect("the back answers");
        if shape.pause_us > 0 {
            std::thread::sleep(Duration::from_micros(shape.pause_us));
        }
    }
    side.account()
}

/// Responds to requests until they end.
fn back(options: &Options, asked: &mut impl Read, answer: &mut impl Write) -> Account {
    let shape = Shape::from_options(options);
    let mut side = Side::new(BACK);
    while asked.read_exact(&mut [0; MESSAGE]).is_ok() {
        one_burst(&mut side, shape.burst_us);
        answer.write_all(&[2; MESSAGE]).expect("the front takes answers");
    }
    side.account()
}

/// Two processes and a pair of sockets. The forked process sends its account as text after the last request.
pub fn socket(options: &Options, report: &mut Report) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets can be made");
    // SAFETY: this process has one thread here, so the child may run normally; it ends by _exit and never returns to
    // the caller.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a child can be forked");
    if child == 0 {
        drop(ours);
        let account = back(options, &mut &theirs, &mut &theirs);
        let text = format!("{}\n{}", account.thread, account.functions.join("\n"));
        let sent = (&theirs).write_all(text.as_bytes());
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(sent.is_err())) };
    }
    drop(theirs);
    let front = front(options, &mut &ours, &mut &ours);
    ours.shutdown(Shutdown::Write).expect("a socket can be shut down");
    let mut text = String::new();
    (&ours).read_to_string(&mut text).expect("the back sends its account");
    // SAFETY: the child belongs to this process; no status is requested.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    let mut lines = text.lines().map(str::to_owned);
    let thread = lines.next().expect("the account begins with the thread");
    report.list("truth", &[front.functions, lines.collect()].concat());
    report.list("threads", &[front.thread, thread]);
}
