//! Futures of many shapes, each suspended at a place that is known.

use crate::{HOUR, start};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::time::sleep;

// Nested functions, with branches, loops and statements of several lines.
async fn one(x: u64) -> u64 {
    let more = x + 1;
    two(more).await + more // @n1
}
async fn two(x: u64) -> u64 {
    let text = format!("{x}");
    let result = three(x).await; // @n2
    result + text.len() as u64
}
async fn three(x: u64) -> u64 {
    tokio::task::yield_now().await;
    let mut sum = 0;
    for number in 0..3 {
        sum += four(x + number).await; // @n3
    }
    sum
}
async fn four(x: u64) -> u64 {
    if x > 1_000_000 {
        five(1, 2).await
    } else {
        five(x, x * 2).await // @n4
    }
}
async fn five(x: u64, y: u64) -> u64 {
    let sum = six(
        x, //
        y, //
    )
    .await; // @n5
    sum + 1
}
async fn six(x: u64, _: u64) -> u64 {
    sleep(HOUR).await; // @n6
    x
}

// Recursion.
fn boxed_dyn(depth: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
    Box::pin(async move {
        if depth == 0 {
            sleep(HOUR).await; // @br0
            return 0;
        }
        boxed_dyn(depth - 1).await + 1 // @br
    })
}
async fn boxed_own(depth: u32) -> u32 {
    if depth == 0 {
        sleep(HOUR).await; // @bc0
        return 0;
    }
    Box::pin(boxed_own(depth - 1)).await + 1 // @bc
}

// Futures that others consist of.
async fn sleeps() {
    sleep(HOUR).await // @slp
}
async fn notified(notify: Arc<Notify>) {
    notify.notified().await // @ntf
}
async fn immediate() -> u32 {
    7
}

// Macros.
async fn joins(notify: Arc<Notify>) -> u32 {
    let (number, _, _) = tokio::join!(immediate(), sleeps(), notified(notify)); // @join
    number
}
async fn tries_to_join(notify: Arc<Notify>) -> Result<(), ()> {
    async fn first() -> Result<(), ()> {
        sleep(HOUR).await; // @tj1
        Ok(())
    }
    async fn second(notify: Arc<Notify>) -> Result<(), ()> {
        notify.notified().await; // @tj2
        Ok(())
    }
    tokio::try_join!(first(), second(notify))?; // @tj
    Ok(())
}
async fn selects(notify: Arc<Notify>) -> u32 {
    tokio::select! { // @sel
        _ = sleeps() => 1,
        _ = notified(notify) => 2,
        _ = async { sleep(HOUR).await; } => 3, // @sel3
    }
}

// A function whose type has a name of some 25 kB, as services of web servers have.
type Twice<T> = std::marker::PhantomData<(T, T)>;
type Long = Twice<Twice<Twice<Twice<Twice<Twice<Twice<Twice<Twice<Twice<u64>>>>>>>>>>;
async fn named_at_length<T>(_: std::marker::PhantomData<T>) {
    sleep(HOUR).await; // @long
}

// Channels and streams.
async fn receives(mut channel: mpsc::Receiver<u32>) {
    while let Some(_number) = channel.recv().await {} // @recv
}
async fn streams(channel: mpsc::Receiver<u32>) {
    let mut stream = tokio_stream::wrappers::ReceiverStream::new(channel);
    while let Some(_number) = StreamExt::next(&mut stream).await {} // @stream
}
async fn maps_stream(channel: mpsc::Receiver<u32>) {
    let stream = tokio_stream::wrappers::ReceiverStream::new(channel);
    let stream = stream.then(|number| async move {
        sleep(HOUR).await; // @ms1
        number
    });
    tokio::pin!(stream);
    while let Some(_number) = stream.next().await {} // @ms
}
async fn receives_once(channel: oneshot::Receiver<u32>) {
    let _ = channel.await; // @os
}
async fn watches(mut channel: watch::Receiver<u32>) {
    let _ = channel.changed().await; // @wa
}
async fn receives_all(mut channel: broadcast::Receiver<u32>) {
    let _ = channel.recv().await; // @bc1
}

// Several futures.
async fn join_set() {
    let mut set = tokio::task::JoinSet::new();
    for _ in 0..3 {
        set.spawn(sleeps());
    }
    while let Some(_result) = set.join_next().await {} // @js
}
async fn unordered(notify: Arc<Notify>) {
    let mut all: FuturesUnordered<_> = (0..3).map(|_| notified(notify.clone())).collect();
    while let Some(()) = all.next().await {} // @fu
}
async fn joins_all(notify: Arc<Notify>) {
    futures::future::join_all((0..2).map(|_| notified(notify.clone()))).await; // @ja
}
async fn selects_of_two(notify: Arc<Notify>) {
    let (first, second) = (sleeps(), notified(notify));
    tokio::pin!(first, second);
    let _ = futures::future::select(first, second).await; // @fs
}
async fn selects_all(notify: Arc<Notify>) {
    let all: Vec<BoxFuture<'static, ()>> = vec![sleeps().boxed(), notified(notify).boxed()];
    futures::future::select_all(all).await; // @sa
}

// Locks.
async fn locks(mutex: Arc<Mutex<u32>>) {
    let mut number = mutex.lock().await; // @mx
    *number += 1;
}
async fn writes(lock: Arc<RwLock<u32>>) {
    let mut number = lock.write().await; // @rw
    *number += 1;
}
async fn acquires(semaphore: Arc<Semaphore>) {
    let _permit = semaphore.acquire().await; // @sm
}

// Adapters.
async fn joins_handle(handle: tokio::task::JoinHandle<()>) {
    let _ = handle.await; // @jh
}
async fn with_timeout() {
    let _ = tokio::time::timeout(HOUR, sleeps()).await; // @to
}
async fn mapped() -> u32 {
    sleeps().map(|_| 3).await // @map
}
async fn after(notify: Arc<Notify>) {
    immediate().then(move |_| notified(notify)).await // @then
}
async fn boxed(future: BoxFuture<'static, ()>) {
    future.await // @bx
}
async fn optional(future: Option<BoxFuture<'static, ()>>) {
    if let Some(future) = future {
        future.await // @opt
    }
}
async fn pinned() {
    let future = sleeps();
    tokio::pin!(future);
    (&mut future).await; // @pin
}
async fn generic<T: std::fmt::Debug, F: Future<Output = T>>(future: F) -> String {
    let value = future.await; // @gen
    format!("{value:?}")
}
async fn calls_closure<F: AsyncFn(u32) -> u32>(closure: F) -> u32 {
    closure(3).await // @cu
}
async fn blocks() {
    let inner = async { sleeps().await }; // @bl1
    let outer = async move {
        inner.await; // @bl2
        tokio::task::yield_now().await;
    };
    outer.await // @bl
}
async fn by_hand() {
    ByHand { inner: Box::pin(sleeps()), polls: 0 }.await // @man
}

/// A future that is written by hand.
struct ByHand<F> {
    inner: Pin<Box<F>>,
    polls: u32,
}

impl<F: Future> Future for ByHand<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls += 1;
        self.inner.as_mut().poll(context)
    }
}

// Methods.
#[async_trait::async_trait]
trait Service {
    async fn call(&self, number: u32) -> u32;
}
struct Own;
#[async_trait::async_trait]
impl Service for Own {
    async fn call(&self, number: u32) -> u32 {
        sleeps().await; // @at1
        number
    }
}
async fn uses_trait(service: Arc<dyn Service + Send + Sync>) -> u32 {
    service.call(3).await // @at
}
trait Native {
    fn go(&self) -> impl Future<Output = u32> + Send;
}
impl Native for Own {
    async fn go(&self) -> u32 {
        sleeps().await; // @nt1
        3
    }
}
async fn uses_native<N: Native>(service: N) -> u32 {
    service.go().await // @nt
}

// Input and output.
async fn reads(mut stream: TcpStream) {
    let mut bytes = [0u8; 16];
    let _ = stream.read(&mut bytes).await; // @rd
}
async fn reads_lines(stream: TcpStream) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(_line)) = lines.next_line().await {} // @ln
}
async fn reads_exactly(mut stream: TcpStream) -> std::io::Result<()> {
    let mut bytes = [0u8; 160];
    stream.read_exact(&mut bytes).await?; // @rx
    Ok(())
}
async fn accepts(listener: TcpListener) {
    let _ = listener.accept().await; // @ac
}
async fn ticks() {
    let mut interval = tokio::time::interval(HOUR);
    loop {
        interval.tick().await; // @tick
    }
}
async fn blocking() {
    let _ = tokio::task::spawn_blocking(|| std::thread::sleep(HOUR)).await; // @sb
}
async fn handler() -> String {
    slow_part().await; // @ax
    "done".into()
}
async fn slow_part() {
    sleep(HOUR).await // @ax2
}

/// More tasks of one shape.
pub fn many(count: u64) {
    for _ in 0..count {
        start("nested", "n1>n2>n3>n4>n5>n6>!Sleep", one(1));
    }
}

/// Tasks of a local set on a current-thread runtime.
pub fn local() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let set = tokio::task::LocalSet::new();
    let runtime = runtime.expect("a runtime can be made");
    set.block_on(&runtime, async {
        let notify = std::rc::Rc::new(5);
        let task = tokio::task::spawn_local(async move {
            sleeps().await; // @local
            drop(notify);
        });
        println!("local {} local>slp>!Sleep", task.id());
        start("nested", "n1>n2>n3>n4>n5>n6>!Sleep", one(1));
        sleep(std::time::Duration::from_millis(300)).await;
        crate::ready();
        sleep(HOUR).await; // @local_block_on
    });
}

/// One task of each shape.
pub async fn all() {
    let notify = Arc::new(Notify::new());
    start("nested", "n1>n2>n3>n4>n5>n6>!Sleep", one(1));
    start("boxed_dyn", "br>br>br>br>br0>!Sleep", boxed_dyn(4));
    start("boxed_own", "bc>bc>bc>bc>bc0>!Sleep", boxed_own(4));
    start("long", "long>!Sleep", named_at_length::<Long>(std::marker::PhantomData));
    start("join", "join>(slp>!Sleep,ntf>!Notified)", joins(notify.clone()));
    start("try_join", "tj>(tj1>!Sleep,tj2>!Notified)", tries_to_join(notify.clone()));
    start("select", "sel>(slp>!Sleep,ntf>!Notified,sel3>!Sleep)", selects(notify.clone()));
    channels().await;
    start("join_set", "js>!*", join_set());
    start("unordered", "fu>(ntf>!Notified,ntf>!Notified,ntf>!Notified)", unordered(notify.clone()));
    start("join_all", "ja>(ntf>!Notified,ntf>!Notified)", joins_all(notify.clone()));
    start("select_of_two", "fs>(slp>!Sleep,ntf>!Notified)", selects_of_two(notify.clone()));
    start("select_all", "sa>(slp>!Sleep,ntf>!Notified)", selects_all(notify.clone()));
    held_locks().await;
    start("join_handle", "jh>!JoinHandle", joins_handle(tokio::spawn(sleeps())));
    start("timeout", "to>!Timeout>slp>!Sleep", with_timeout());
    start("map", "map>slp>!Sleep", mapped());
    start("then", "then>ntf>!Notified", after(notify.clone()));
    start("boxed", "bx>slp>!Sleep", boxed(sleeps().boxed()));
    start("optional", "opt>slp>!Sleep", optional(Some(Box::pin(sleeps()))));
    start("pinned", "pin>slp>!Sleep", pinned());
    start("generic", "gen>gen>slp>!Sleep", generic(generic(sleeps())));
    let closure = async |number| {
        sleep(HOUR).await; // @cl
        number
    };
    start("async_closure", "cu>cl>!Sleep", calls_closure(closure));
    start("blocks", "bl>bl2>bl1>slp>!Sleep", blocks());
    start("by_hand", "man>slp>!Sleep", by_hand());
    start("async_trait", "at>at1>slp>!Sleep", uses_trait(Arc::new(Own)));
    start("native_trait", "nt>nt1>slp>!Sleep", uses_native(Own));
    start("interval", "tick>!*", ticks());
    start("spawn_blocking", "sb>!JoinHandle", blocking());
    network().await;
    server().await;
}

async fn channels() {
    // The other ends are not dropped, so that the tasks wait.
    let (sender, channel) = mpsc::channel(4);
    std::mem::forget(sender);
    start("mpsc", "recv>!*", receives(channel));
    let (sender, channel) = mpsc::channel(4);
    std::mem::forget(sender);
    start("stream", "stream>!Next", streams(channel));
    let (sender, channel) = mpsc::channel(4);
    sender.send(3).await.expect("there is room");
    std::mem::forget(sender);
    start("map_stream", "ms>ms1>!Sleep", maps_stream(channel));
    let (sender, channel) = oneshot::channel();
    std::mem::forget(sender);
    start("oneshot", "os>!Receiver", receives_once(channel));
    let (sender, channel) = watch::channel(1);
    std::mem::forget(sender);
    start("watch", "wa>!*", watches(channel));
    let (sender, channel) = broadcast::channel(3);
    std::mem::forget(sender);
    start("broadcast", "bc1>!Recv", receives_all(channel));
}

async fn held_locks() {
    let mutex = Arc::new(Mutex::new(1));
    std::mem::forget(mutex.clone().lock_owned().await);
    start("mutex", "mx>!Acquire", locks(mutex));
    let lock = Arc::new(RwLock::new(1));
    std::mem::forget(lock.clone().read_owned().await);
    start("rwlock", "rw>!Acquire", writes(lock));
    start("semaphore", "sm>!Acquire", acquires(Arc::new(Semaphore::new(0))));
}

async fn network() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("the port is known");
    for number in 0..3 {
        let client = TcpStream::connect(address).await.expect("the listener accepts");
        let (stream, _) = listener.accept().await.expect("a client connects");
        std::mem::forget(stream);
        match number {
            0 => start("read", "rd>!Read", reads(client)),
            1 => start("lines", "ln>!*", reads_lines(client)),
            _ => start("read_exact", "rx>!ReadExact", reads_exactly(client)),
        }
    }
    start("accept", "ac>!*", accepts(listener));
}

/// Beside a task of this program, one of a library without debug information.
pub fn with_a_bare_one() {
    start("own", "slp>!Sleep", sleeps());
    start("boxed", "*", async { awaits_bare::boxed().await });
    println!("bare {} *", awaits_bare::start());
}

/// A server with a connection that is idle, and one whose request is handled.
async fn server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("the port is known");
    let app = axum::Router::new()
        .route("/", axum::routing::get(handler))
        .route("/quick", axum::routing::get(|| async { "quick" }));
    let serve = async move {
        axum::serve(listener, app).await // @srv
    };
    start("serve", "srv>!*", serve);
    let mut idle = TcpStream::connect(address).await.expect("the server accepts");
    idle.write_all(b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("the server reads");
    let mut bytes = [0u8; 512];
    let _ = idle.read(&mut bytes).await.expect("the server answers");
    std::mem::forget(idle);
    let mut client = TcpStream::connect(address).await.expect("the server accepts");
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("the server reads");
    std::mem::forget(client);
}
