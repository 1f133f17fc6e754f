//! Requests to stacks of services: one is in the handler, others wait for a limit, a queue, or are in futures written by hand.

use crate::{HOUR, start};
use axum::Router;
use axum::routing::get;
use axum::serve::IncomingStream;
use futures::{FutureExt, TryFutureExt};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::time::{Duration, sleep};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

type Lock = Arc<Mutex<u32>>;

/// The handler of all stacks.
async fn handle(lock: Lock) -> Result<u32, BoxError> {
    let number = lock.lock().await; // @sv_lock
    Ok(*number)
}

async fn call<S: Service<Lock>>(service: S, lock: Lock) {
    let _ = service.oneshot(lock).await; // @sv_call
}

/// Holds a lock.
async fn keep(lock: Lock) {
    let guard = lock.lock().await;
    sleep(HOUR).await; // @sv_keep
    drop(guard);
}

async fn route() -> &'static str {
    sleep(HOUR).await; // @sv_route
    "done"
}

pub async fn start_tasks() {
    let lock = Lock::default();
    start("keeper", "sv_keep>!Sleep", keep(Arc::clone(&lock)));
    sleep(Duration::from_millis(50)).await;
    let limited = ServiceBuilder::new()
        .map_future(|response| response)
        .timeout(HOUR)
        .map_response(|number: u32| number + 1)
        .concurrency_limit(1)
        .service(service_fn(handle));
    let limited = BoxCloneService::new(limited);
    start("handled", "sv_call>sv_lock>!Acquire", call(limited.clone(), Arc::clone(&lock)));
    sleep(Duration::from_millis(50)).await;
    start("limited", "sv_call>!Oneshot>!ConcurrencyLimit", call(limited.clone(), Arc::clone(&lock)));
    start("limited", "sv_call>!Oneshot>!ConcurrencyLimit", call(limited, Arc::clone(&lock)));
    let queued = ServiceBuilder::new().buffer(4).service(service_fn(handle));
    start("queued", "sv_call>*", call(queued, Arc::clone(&lock)));
    start("staged", "sv_staged>sv_lock>!Acquire", staged(Arc::clone(&lock)));
    start("wrapped", "sv_wrapped>sv_lock>!Acquire", wrapped(lock));
    start("mapped", "sv_mapped>!Never", mapped());
    let app = Router::new().route("/", get(route)).layer(GlobalConcurrencyLimitLayer::new(1));
    serve(app).await;
    serve_limited().await;
}

/// A server that is limited as a whole, by a limit within a service written by hand.
async fn serve_limited() {
    let app = Router::new().route("/", get(route));
    let limited = GlobalConcurrencyLimitLayer::new(1).layer(app);
    let service = Counted { calls: 0, enabled: Some(Ahead { next: limited }) };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("the port is known");
    let make = service_fn(move |_: IncomingStream<'_, TcpListener>| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service) }
    });
    tokio::spawn(async move { axum::serve(listener, make).await });
    ask_three_times(address).await;
}

/// A service written by hand, as libraries have.
#[derive(Clone)]
struct Counted<S> {
    calls: u64,
    enabled: Option<Ahead<S>>,
}

#[derive(Clone)]
struct Ahead<S> {
    next: S,
}

impl<R, S: Service<R>> Service<R> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let inner = self.enabled.as_mut().expect("it is enabled");
        inner.next.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.calls += 1;
        self.enabled.as_mut().expect("it is enabled").next.call(request)
    }
}

/// A server with three connections.
async fn serve(app: Router) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("the port is known");
    tokio::spawn(async move { axum::serve(listener, app).await });
    ask_three_times(address).await;
}

async fn ask_three_times(address: SocketAddr) {
    for _ in 0..3 {
        let mut client = TcpStream::connect(address).await.expect("the server accepts");
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("the server reads");
        sleep(Duration::from_millis(50)).await;
        std::mem::forget(client);
    }
}

/// A future that is written as an enum of its states.
enum Staged<A, B> {
    First { ready: A, next: Option<B> },
    Second(Pin<Box<B>>),
}

impl<A: Future<Output = ()> + Unpin, B: Future> Future for Staged<A, B> {
    type Output = B::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<B::Output>
    where
        Self: Unpin,
    {
        loop {
            match &mut *self {
                Staged::First { ready, next } => match Pin::new(ready).poll(context) {
                    Poll::Ready(()) => {
                        let next = next.take().expect("it is polled once");
                        *self = Staged::Second(Box::pin(next));
                    }
                    Poll::Pending => return Poll::Pending,
                },
                Staged::Second(future) => return future.as_mut().poll(context),
            }
        }
    }
}

impl<A: Unpin, B> Unpin for Staged<A, B> {}

/// A future without any in it.
struct Never(u32);

impl Future for Never {
    type Output = Result<u32, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Something has its waker.
        std::mem::forget(context.waker().clone());
        if self.0 == 0 { Poll::Ready(Ok(0)) } else { Poll::Pending }
    }
}

async fn mapped() {
    let future = Never(1).map_ok(|number| number + 1).map_err(BoxError::from).map(|_| ()).fuse();
    future.await; // @sv_mapped
}

async fn staged(lock: Lock) {
    let future = Staged::First { ready: std::future::ready(()), next: Some(handle(lock)) };
    let _ = future.await; // @sv_staged
}

/// A future with a name, as libraries for tracing have.
struct Named<F: ?Sized> {
    name: &'static str,
    polls: u32,
    inner: Pin<Box<F>>,
}

impl<F: Future + ?Sized> Future for Named<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls += u32::from(!self.name.is_empty());
        self.inner.as_mut().poll(context)
    }
}

async fn wrapped(lock: Lock) {
    let inner: Pin<Box<dyn Future<Output = Result<u32, BoxError>> + Send>> = Box::pin(handle(lock));
    let _ =
        Named { name: "outer", polls: 0, inner: Box::pin(Named { name: "inner", polls: 0, inner }) }.await; // @sv_wrapped
}
