//! Tasks with several branches that wait for each other, and tasks that only look so.
//!
//! The names of tasks of one cycle begin with the same word. If it is `maybe`, one branch could end the wait by an error; if it is
//! `weak`, another task can give the lock back.

use crate::{HOUR, start};
use futures::future::{BoxFuture, FutureExt, join_all, select, select_all};
use futures::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, RwLock, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Sleep, sleep, timeout};

type Lock = Arc<Mutex<u32>>;

/// A lock, and what a task gets when all others are started.
struct Case {
    lock: Lock,
    go: oneshot::Receiver<Vec<JoinHandle<()>>>,
}

impl Case {
    async fn handles(self) -> Vec<JoinHandle<()>> {
        self.go.await.expect("they are sent")
    }
}

/// A task of a case, and tasks that wait for its lock. `others` are their names; `*` is one that only sleeps.
async fn with<F>(name: &str, stack: &str, others: &[&str], future: impl FnOnce(Case) -> F)
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let lock = Lock::default();
    let (send, go) = oneshot::channel();
    start(name, stack, future(Case { lock: lock.clone(), go }));
    sleep(Duration::from_millis(20)).await;
    let mut handles = Vec::new();
    for other in others {
        let (name, task) = match *other {
            "*" => ("", tokio::spawn(sleeps())),
            name => (name, tokio::spawn(locks(lock.clone()))),
        };
        let stack = if *other == "*" { "bslp>!Sleep" } else { "blk>!Acquire" };
        println!("{name} {} {stack}", task.id());
        handles.push(task);
    }
    let _ = send.send(handles);
}

pub async fn start_tasks() {
    // Cycles.
    with("around_join.1", "aj>(!JoinHandle,bslp>!Sleep)", &["around_join.2"], around_join).await;
    with("around_try.1", "atj>(!JoinHandle,!JoinHandle)", &["around_try.2", "around_try.3"], around_try_join)
        .await;
    with("maybe.1", "mtj>(!JoinHandle,may_fail>!Sleep)", &["maybe.2"], around_try_join_that_may_fail).await;
    with("around_all.1", "aja>*", &["around_all.2", "around_all.3"], around_join_all).await;
    with("around_set.1", "ajs>*", &[], |case| around_join_set(case, "around_set.2", false)).await;
    with("around_any.1", "afu>*", &["around_any.2", "around_any.3"], around_unordered).await;
    with("around_select.1", "ase>*", &["around_select.2", "around_select.3"], around_select).await;
    with("around_two.1", "atw>*", &["around_two.2", "around_two.3"], around_select_of_two).await;
    with("done.1", "dn>dn1>!JoinHandle", &["done.2"], one_branch_has_ended).await;
    with("inner.1", "in>(in1>(!JoinHandle,bslp>!Sleep),bslp>!Sleep)", &["inner.2"], around_inner_join).await;
    with("own.1", "ow>(blk>!Acquire,blk>!Acquire)", &[], unordered_of_own_lock).await;
    start("opposite.1", "op>(opl>!Acquire,opl>!Acquire)", opposite_branches());
    start("beside.1", "be>(opl>!Acquire,opl>!Acquire,bslp>!Sleep)", opposite_branches_beside_another());
    let (send, go) = oneshot::channel();
    let task = tokio::spawn(branch_waits_for_end(Case { lock: Lock::default(), go }));
    println!("branch.1 {} *", task.id());
    let other = tokio::spawn(waits_for_end(task));
    println!("branch.2 {} bend>!JoinHandle", other.id());
    let _ = send.send(vec![other]);
    let lock = Arc::new(RwLock::new(0));
    start("again.1", "ag>!Acquire", reads_again(lock.clone(), None));
    sleep(Duration::from_millis(20)).await;
    start("again.2", "wr>!Acquire", writes(lock));
    start("unpolled.1", "up>!Acquire", waits_behind_future_that_is_not_polled());
    // They go on when the timers end.
    start("moved", "*", another_branch_has_the_guard());
    start("weak.1", "*", another_task_can_reach_the_guard());

    // Look-alikes.
    with("", "*", &["", "*"], around_select).await;
    with("", "*", &["", "*"], around_select_of_two).await;
    with("", "ajs>*", &[], |case| around_join_set(case, "", true)).await;
    with("", "*", &["", "*"], around_unordered).await;
    with("", "sal>*", &["", "*"], around_select_all).await;
    with("", "sos>(!JoinHandle,!Static)", &[""], select_with_unit).await;
    with("", "*", &[""], select_with_channel).await;
    with("", "*", &[""], dropped_before_join).await;
    with("", "*", &[""], branch_by_hand_holds).await;
    with("", "*", &[""], other_branch_by_hand_holds).await;
    with("", "*", &[""], borrowed_future_holds).await;
    with("", "*", &[""], borrowed_guard).await;
    with("", "*", &[""], boxed_branch_holds).await;
    with("", "*", &[""], branch_with_timeout_holds).await;
    with("", "*", &[""], list_of_branches_holds).await;
    start("", "*", opposite_branches_for_a_time());
    // The writer waits for a reader that goes on.
    let lock = Arc::new(RwLock::new(0));
    start("", "*", reads_and_sleeps(lock.clone()));
    sleep(Duration::from_millis(20)).await;
    start("", "wr>!Acquire", writes(lock.clone()));
    sleep(Duration::from_millis(20)).await;
    start("", "rg>!Acquire", reads(lock.clone()));
    // The writer gives up.
    let lock = Arc::new(RwLock::new(0));
    let (sender, go) = oneshot::channel();
    start("", "ag>!Acquire", reads_again(lock.clone(), Some(go)));
    sleep(Duration::from_millis(20)).await;
    start("", "*", writes_for_a_time(lock));
    sleep(Duration::from_millis(20)).await;
    let _ = sender.send(());
}

async fn sleeps() {
    sleep(HOUR).await // @bslp
}

async fn locks(lock: Lock) {
    *lock.lock().await += 1; // @blk
}

async fn waits_for_end(task: JoinHandle<()>) {
    let _ = task.await; // @bend
}

async fn around_join(case: Case) {
    let mut held = case.lock.clone().lock_owned().await;
    let mut handles = case.handles().await;
    let _ = tokio::join!(handles.remove(0), sleeps()); // @aj
    *held += 1;
}

async fn around_try_join(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut handles = case.handles().await;
    let both = (handles.remove(0), handles.remove(0));
    let _ = tokio::try_join!(both.0, both.1); // @atj
    *held += 1;
}

async fn around_try_join_that_may_fail(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut handles = case.handles().await;
    let may_fail = async {
        sleep(HOUR).await; // @may_fail
        Ok(())
    };
    let _ = tokio::try_join!(handles.remove(0), may_fail); // @mtj
    *held += 1;
}

async fn around_join_all(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let handles = case.handles().await;
    join_all(handles).await; // @aja
    *held += 1;
}

async fn around_join_set(case: Case, name: &'static str, has_other: bool) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut set = JoinSet::new();
    for _ in 0..2 {
        println!("{name} {} blk>!Acquire", set.spawn(locks(lock.clone())).id());
    }
    if has_other {
        set.spawn(sleeps());
    }
    let _ = case.handles().await;
    let _ = set.join_next().await; // @ajs
    *held += 1;
}

async fn around_unordered(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut handles: FuturesUnordered<_> = case.handles().await.into_iter().collect();
    let _ = handles.next().await; // @afu
    *held += 1;
}

async fn around_select(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut handles = case.handles().await;
    let (first, second) = (handles.remove(0), handles.remove(0));
    tokio::select! { // @ase
        _ = first => {}
        _ = second => {}
    }
    *held += 1;
}

async fn around_select_of_two(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut handles = case.handles().await;
    let _ = select(handles.remove(0), handles.remove(0)).await; // @atw
    *held += 1;
}

async fn around_select_all(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let handles = case.handles().await.into_iter().map(|handle| handle.map(|_| ()).boxed());
    let _ = select_all(handles).await; // @sal
    *held += 1;
}

/// A guard is the result of a branch that has ended.
async fn one_branch_has_ended(case: Case) {
    let lock = case.lock.clone();
    let waits = async {
        for handle in case.handles().await {
            let _ = handle.await; // @dn1
        }
    };
    let (mut held, ()) = tokio::join!(lock.lock_owned(), waits); // @dn
    *held += 1;
}

async fn around_inner_join(case: Case) {
    let inner = async {
        let lock = case.lock.clone();
        let mut held = lock.lock().await;
        let mut handles = case.handles().await;
        let _ = tokio::join!(handles.remove(0), sleeps()); // @in1
        *held += 1;
    };
    tokio::join!(inner, sleeps()); // @in
}

/// It holds the lock for which its own branches wait.
async fn unordered_of_own_lock(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut all: FuturesUnordered<_> = (0..2).map(|_| locks(lock.clone())).collect();
    let _ = case.handles().await;
    let _ = all.next().await; // @ow
    *held += 1;
}

async fn in_order(first: Lock, second: Lock) {
    let held = first.lock().await;
    sleep(Duration::from_millis(20)).await;
    *second.lock().await = *held; // @opl
}

async fn opposite_branches() {
    let (a, b) = (Lock::default(), Lock::default());
    tokio::join!(in_order(a.clone(), b.clone()), in_order(b, a)); // @op
}

async fn opposite_branches_beside_another() {
    let (a, b) = (Lock::default(), Lock::default());
    tokio::join!(in_order(a.clone(), b.clone()), in_order(b, a), sleeps()); // @be
}

async fn opposite_branches_for_a_time() {
    let (a, b) = (Lock::default(), Lock::default());
    let both = join_all([in_order(a.clone(), b.clone()), in_order(b, a)]);
    let _ = timeout(HOUR, both).await;
}

/// One branch holds a lock and waits for a task that waits for all of this one. Another branch waits for the lock.
async fn branch_waits_for_end(case: Case) {
    let lock = case.lock.clone();
    let holds = async {
        let lock = case.lock.clone();
        let mut held = lock.lock().await;
        for handle in case.handles().await {
            let _ = handle.await;
        }
        *held += 1;
    };
    tokio::join!(holds, locks(lock));
}

/// The lock is given to a future that nobody polls any longer.
async fn waits_behind_future_that_is_not_polled() {
    let lock = Lock::default();
    let first = lock.clone().lock_owned().await;
    tokio::spawn(async move {
        sleep(Duration::from_millis(60)).await;
        drop(first);
    });
    let future = locks(lock.clone());
    tokio::pin!(future);
    tokio::select! {
        biased;
        () = &mut future => return,
        () = sleep(Duration::from_millis(20)) => {}
    }
    *lock.lock().await += 1; // @up
    future.await;
}

/// It waits for a lock that it has, behind a task that waits to write.
async fn reads_again(lock: Arc<RwLock<u32>>, go: Option<oneshot::Receiver<()>>) {
    let held = lock.read().await;
    match go {
        Some(go) => go.await.expect("it is sent"),
        None => sleep(Duration::from_millis(60)).await,
    }
    let _ = *lock.read().await + *held; // @ag
}

async fn writes(lock: Arc<RwLock<u32>>) {
    *lock.write().await += 1; // @wr
}

// Look-alikes.

async fn writes_for_a_time(lock: Arc<RwLock<u32>>) {
    let _ = timeout(HOUR, lock.write()).await;
}

async fn reads_and_sleeps(lock: Arc<RwLock<u32>>) {
    let held = lock.read().await;
    sleep(HOUR).await;
    let _ = *held;
}

async fn reads(lock: Arc<RwLock<u32>>) {
    let _ = lock.read().await; // @rg
}

static STOP: Notify = Notify::const_new();

/// A future without any memory of its own.
struct Static;

impl Future for Static {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let _ = &STOP;
        let _ = context;
        Poll::Pending
    }
}

async fn select_with_unit(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut handles = case.handles().await;
    tokio::select! { // @sos
        _ = handles.remove(0) => {}
        () = Static => {}
    }
    *held += 1;
}

async fn select_with_channel(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    let mut handles = case.handles().await;
    let (sender, mut receiver) = mpsc::channel::<u32>(1);
    tokio::spawn(async move {
        sleep(HOUR).await;
        drop(sender);
    });
    tokio::select! {
        _ = handles.remove(0) => {}
        _ = receiver.recv() => {}
    }
    *held += 1;
}

async fn dropped_before_join(case: Case) {
    let lock = case.lock.clone();
    let mut held = lock.lock().await;
    *held += 1;
    drop(held);
    start("", "*", holds_and_sleeps(lock.clone().lock_owned().await));
    let mut handles = case.handles().await;
    let _ = tokio::join!(handles.remove(0), sleeps());
}

async fn holds_and_sleeps(mut held: OwnedMutexGuard<u32>) {
    sleep(HOUR).await;
    *held += 1;
}

/// A future that is written by hand, and holds a lock for a time.
struct ByHand {
    _held: OwnedMutexGuard<u32>,
    sleep: Pin<Box<Sleep>>,
}

impl ByHand {
    fn new(held: OwnedMutexGuard<u32>) -> ByHand {
        ByHand { _held: held, sleep: Box::pin(sleep(HOUR)) }
    }
}

impl Future for ByHand {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(context)
    }
}

async fn branch_by_hand_holds(case: Case) {
    let by_hand = ByHand::new(case.lock.clone().lock_owned().await);
    let mut handles = case.handles().await;
    let _ = tokio::join!(by_hand, handles.remove(0));
}

async fn other_branch_by_hand_holds(case: Case) {
    let by_hand = ByHand::new(case.lock.clone().lock_owned().await);
    let waits = waits_for_end(case.handles().await.remove(0));
    futures::future::join(waits, by_hand).await;
}

/// The future that holds the lock belongs to the function around the branch that awaits it.
async fn borrowed_future_holds(case: Case) {
    let mut by_hand = ByHand::new(case.lock.clone().lock_owned().await);
    let mut handles = case.handles().await;
    let borrows = async {
        (&mut by_hand).await;
        sleep(HOUR).await;
    };
    let _ = tokio::join!(borrows, handles.remove(0));
}

/// The guard belongs to the function around the branch that drops it.
async fn borrowed_guard(case: Case) {
    let mut held = Some(case.lock.clone().lock_owned().await);
    let mut handles = case.handles().await;
    let drops = async {
        sleep(HOUR).await;
        held.take();
        sleep(HOUR).await;
    };
    let _ = tokio::join!(drops, handles.remove(0));
}

async fn boxed_branch_holds(case: Case) {
    let held = case.lock.clone().lock_owned().await;
    let boxed: BoxFuture<'static, ()> = holds_and_sleeps(held).map(|()| ()).boxed();
    let mut handles = case.handles().await;
    let _ = tokio::join!(boxed, handles.remove(0));
}

async fn branch_with_timeout_holds(case: Case) {
    let lock = case.lock.clone();
    let held = lock.clone().lock_owned().await;
    let mut handles = case.handles().await;
    let holds = async move {
        let _held = held;
        let _ = timeout(HOUR, std::future::pending::<()>()).await;
    };
    let _ = tokio::join!(handles.remove(0), holds);
}

async fn list_of_branches_holds(case: Case) {
    let held = case.lock.clone().lock_owned().await;
    let handle = case.handles().await.remove(0);
    let all: Vec<BoxFuture<'static, ()>> =
        vec![holds_and_sleeps(held).boxed(), waits_for_end(handle).boxed()];
    join_all(all).await;
}

/// A guard in a local variable is moved to where another branch finds it.
async fn another_branch_has_the_guard() {
    let lock = Lock::default();
    let guard = Some(lock.clone().lock_owned().await);
    sleep(Duration::from_millis(1)).await;
    let moved = Arc::new(std::sync::Mutex::new(guard));
    let other = moved.clone();
    let gives_back = async move {
        sleeps().await;
        other.lock().expect("no panic").take();
    };
    tokio::join!(gives_back, async { drop(lock.lock().await) });
    drop(moved);
}

/// The only strong pointer to a guard is here, but another task has a weak one.
async fn another_task_can_reach_the_guard() {
    let lock = Lock::default();
    let guard = Arc::new(std::sync::Mutex::new(Some(lock.clone().lock_owned().await)));
    let weak = Arc::downgrade(&guard);
    tokio::spawn(async move {
        sleeps().await;
        if let Some(guard) = weak.upgrade() {
            guard.lock().expect("no panic").take();
        }
    });
    drop(lock.lock().await);
    drop(guard);
}
