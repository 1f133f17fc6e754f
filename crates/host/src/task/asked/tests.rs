use super::*;
use crate::task::Task;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Wake;

/// An executor of one task on a thread of its own.
struct Worker {
    queue: Mutex<mpsc::Sender<()>>,
    wakes: AtomicUsize,
}

impl Wake for Worker {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Relaxed);
        let _ = self.queue.lock().unwrap().send(());
    }
}

/// Polls a future at each wake, until it is ready.
fn run<F: Future>(task: &Task, future: F, ready: impl FnOnce(Arc<Worker>)) -> F::Output {
    let (queue, woken) = mpsc::channel();
    let worker = Arc::new(Worker { queue: Mutex::new(queue), wakes: AtomicUsize::new(0) });
    let waker = Waker::from(worker.clone());
    let mut future = pin!(future);
    let mut ready = Some(ready);
    loop {
        if let Poll::Ready(value) = task.poll_future(future.as_mut(), &mut Context::from_waker(&waker)) {
            return value;
        }
        if let Some(ready) = ready.take() {
            ready(worker.clone());
        }
        woken.recv().unwrap();
    }
}

/// Keeps a clone of the waker, as leaves do, until the test ends it.
struct Leaf(Arc<Mutex<(Option<Waker>, bool)>>);

impl Future for Leaf {
    type Output = ();
    #[inline(never)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let (kept, ends) = &mut *self.0.lock().unwrap();
        if *ends {
            return Poll::Ready(());
        }
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(context.waker())) {
            *kept = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

fn of(answers: Vec<Answer>, task: u64) -> Option<Answer> {
    answers.into_iter().find(|answer| answer.id == task)
}

/// All tests of one process ask each other's tasks, so there is one.
#[test]
fn waiting_tasks_are_asked() {
    assert!(keep_wakers());
    let (sender, ready) = mpsc::channel();
    let state: Arc<Mutex<(Option<Waker>, bool)>> = Arc::default();
    let leaf = Leaf(state.clone());
    let thread = std::thread::spawn(move || {
        let outer = Task::new("outer", "src/outer.rs", 7);
        let inner = Task::new("inner", "src/inner.rs", 8);
        let ids = (outer.id(), inner.id());
        let nested = async {
            let mut leaf = pin!(leaf);
            poll_fn(|context| inner.poll_future(leaf.as_mut(), context)).await
        };
        run(&outer, nested, |worker| sender.send((ids, worker)).unwrap());
    });
    let ((outer, inner), worker) = ready.recv().unwrap();
    let before_first = state.lock().unwrap().0.clone().unwrap();
    for round in 0..3 {
        let wakes = worker.wakes.load(Relaxed);
        let answers = ask(Duration::from_secs(60)).unwrap();
        let answer = of(answers.clone(), outer).unwrap();
        assert_eq!((&*answer.name, &*answer.created.0, answer.created.1), ("outer", "src/outer.rs", 7));
        let Said::Waits(stacks) = answer.said else { panic!("{answer:?}") };
        let Some(Answer { said: Said::Waits(inner), .. }) = of(answers, inner) else { panic!("no answer") };
        // One clone, in both tasks. The stack of the inner task is a part of that of the outer one.
        assert_eq!((stacks.len(), inner.len(), stacks[0].is_wake), (1, 1, false), "round {round}");
        assert!(stacks[0].frames.len() > inner[0].frames.len() && inner[0].frames.len() > 3);
        // Each of them is woken once, which is at most one wake for each.
        assert!(worker.wakes.load(Relaxed) <= wakes + 2);
        // What was kept is the waker of the executor itself.
        let kept = state.lock().unwrap().0.clone().unwrap();
        assert!(kept.will_wake(&before_first));
    }
    let kept = {
        let mut state = state.lock().unwrap();
        state.1 = true;
        state.0.take().unwrap()
    };
    // It outlives the task.
    kept.wake_by_ref();
    thread.join().unwrap();
    std::thread::spawn(move || kept.wake()).join().unwrap();
    drop(before_first);
    let answers = ask(Duration::from_secs(1)).unwrap();
    assert!(of(answers.clone(), outer).is_none() && of(answers, inner).is_none());
    assert_eq!(Arc::strong_count(&worker), 1, "no waker is left");

    a_busy_task_is_not_polled();
    a_panic_is_the_programs_own();
    a_forked_child_keeps_nothing();
}

fn a_busy_task_is_not_polled() {
    let (sender, ready) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let task = Task::new("busy", "f", 1);
        let id = task.id();
        let mut polls = 0;
        let future = poll_fn(|context| {
            polls += 1;
            if polls == 1 {
                return Poll::Pending;
            }
            // The second poll is not answered for a long time.
            assert!(context.waker().clone().will_wake(&context.waker().clone()));
            let _ = ends.recv();
            Poll::Ready(())
        });
        run(&task, future, |_| sender.send(id).unwrap());
    });
    let id = ready.recv().unwrap();
    let answer = of(ask(Duration::from_millis(50)).unwrap(), id).unwrap();
    assert!(
        matches!(answer.said, Said::Polled(tid) if tid != 0) || answer.said == Said::NotPolled,
        "{answer:?}"
    );
    end.send(()).unwrap();
    thread.join().unwrap();
}

fn a_panic_is_the_programs_own() {
    let (sender, ready) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let task = Task::new("panics", "f", 1);
        let id = task.id();
        let mut polls = 0;
        let future = poll_fn(|_| {
            polls += 1;
            if polls > 1 {
                std::panic::resume_unwind(Box::new(()));
            }
            Poll::<()>::Pending
        });
        run(&task, future, |_| sender.send(id).unwrap());
    });
    let id = ready.recv().unwrap();
    let answer = of(ask(Duration::from_secs(60)).unwrap(), id).unwrap();
    assert_eq!(answer.said, Said::Ended);
    assert!(thread.join().is_err());
}

fn a_forked_child_keeps_nothing() {
    let task = Task::new("forks", "f", 1);
    let worker = Arc::new(Worker { queue: Mutex::new(mpsc::channel().0), wakes: AtomicUsize::new(0) });
    let waker = Waker::from(worker.clone());
    let mut future = pin!(core::future::pending::<()>());
    let mut poll = || task.poll_future(future.as_mut(), &mut Context::from_waker(&waker)).is_pending();
    assert!(poll());
    // SAFETY: the child polls, which allocates nothing, and leaves at once.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let is_empty = slots().is_some_and(|slots| {
                slots.slots.iter().take(64).all(|slot| slot.vtable.load(Relaxed).is_null())
            });
            libc::_exit(if poll() && is_empty { 7 } else { 1 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        status
    };
    assert_eq!(libc::WEXITSTATUS(status), 7);
    drop(task);
    assert_eq!(Arc::strong_count(&worker), 2, "the task has given its waker back");
}
