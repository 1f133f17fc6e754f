//! Tasks that hold a lock in many ways while they wait, each with a task that waits for the lock; and tasks that have given it away.
//!
//! `held.X` holds what `waits.X` waits for. `free.X` looks as if it did. Of those that `shut.X` waits for, nobody is the holder.

use crate::{HOUR, start};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use futures::future::{BoxFuture, FutureExt};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMutexGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard,
    Semaphore, SemaphorePermit, broadcast, mpsc, oneshot, watch,
};
use tokio::time::{interval, sleep, timeout};

type Error = Box<dyn std::error::Error + Send + Sync>;

struct App {
    cache: Mutex<HashMap<u32, String>>,
    supplier: SocketAddr,
}

/// Waits for an answer that never comes.
async fn fetch(app: &App, id: u32) -> Result<String, Error> {
    let mut supplier = TcpStream::connect(app.supplier).await?;
    supplier.write_all(format!("price {id}\n").as_bytes()).await?;
    let mut price = String::new();
    supplier.read_to_string(&mut price).await?; // @hd_read
    Ok(price)
}

// An axum handler, also as a task of its own.
async fn order(State(app): State<Arc<App>>, Path(id): Path<u32>) -> Result<String, StatusCode> {
    let mut cache = app.cache.lock().await; // @hd_lock
    if let Some(known) = cache.get(&id) {
        return Ok(known.clone());
    }
    let price = fetch(&app, id).await.map_err(|_| StatusCode::BAD_GATEWAY)?; // @hd_order
    cache.insert(id, price.clone());
    Ok(price)
}

// Several ways out, each with values of its own.
async fn in_match(app: Arc<App>, id: u32, names: Vec<String>) -> Result<u32, Error> {
    let mut cache = app.cache.lock().await;
    let name = names.get(id as usize).cloned().unwrap_or_default();
    let price = match id % 3 {
        0 => return Err(format!("no {name}").into()),
        1 => {
            let first = fetch(&app, id).await?; // @hd_match
            let second = fetch(&app, id + 1).await?;
            format!("{first} {second} {name}")
        }
        _ => timeout(HOUR, fetch(&app, id + 3)).await??,
    };
    cache.insert(id, price);
    Ok(cache.len() as u32)
}

async fn in_loop(app: Arc<App>, names: Vec<String>) -> Result<usize, Error> {
    let mut all = BTreeMap::new();
    let mut ticks = interval(Duration::from_millis(1));
    for (id, name) in names.into_iter().enumerate() {
        let mut cache = app.cache.lock().await;
        if all.contains_key(&name) {
            continue;
        }
        ticks.tick().await;
        let price = fetch(&app, id as u32).await?; // @hd_loop
        if price.is_empty() {
            break;
        }
        cache.insert(id as u32, price.clone());
        all.insert(name, price);
    }
    Ok(all.len())
}

struct Work<'l> {
    name: String,
    parts: Vec<Box<dyn Fn() -> u32 + Send + Sync>>,
    cache: MutexGuard<'l, HashMap<u32, String>>,
}

async fn in_field(app: Arc<App>) -> Result<u32, Error> {
    let parts: Vec<Box<dyn Fn() -> u32 + Send + Sync>> = vec![Box::new(|| 1), Box::new(|| 2)];
    let mut work = Work { name: "work".to_owned(), parts, cache: app.cache.lock().await };
    let price = fetch(&app, 5).await?; // @hd_field
    work.cache.insert(work.parts.iter().map(|part| part()).sum(), price + &work.name);
    Ok(work.cache.len() as u32)
}

async fn in_option(app: Arc<App>, is_open: bool) -> Result<u32, Error> {
    let mut cache = if is_open { Some(app.cache.lock().await) } else { None };
    let price = fetch(&app, 6).await?; // @hd_option
    if let Some(cache) = &mut cache {
        cache.insert(6, price);
    }
    Ok(cache.map_or(0, |cache| cache.len() as u32))
}

async fn in_tuple(app: Arc<App>, name: String) -> Result<usize, Error> {
    let mut both = (name, app.cache.lock().await, Arc::new(3));
    let price = fetch(&app, 7).await?; // @hd_tuple
    both.1.insert(7, price);
    Ok(both.0.len() + *both.2)
}

async fn owned(lock: Arc<Mutex<Vec<String>>>, app: Arc<App>) -> Result<(), Error> {
    let mut held: OwnedMutexGuard<Vec<String>> = lock.lock_owned().await;
    for id in 0..3 {
        let price = fetch(&app, id).await?; // @hd_owned
        held.push(price);
    }
    Ok(())
}

async fn reading(lock: Arc<RwLock<Vec<String>>>, app: Arc<App>) -> Result<usize, Error> {
    let held: RwLockReadGuard<'_, Vec<String>> = lock.read().await;
    let price = fetch(&app, 8).await?; // @hd_reading
    Ok(held.iter().filter(|known| **known == price).count())
}

async fn writing(lock: Arc<RwLock<Vec<String>>>, app: Arc<App>) -> Result<(), Error> {
    let mut held = lock.write().await;
    if held.len() > 7 {
        return Ok(());
    }
    let price = fetch(&app, 9).await?; // @hd_writing
    held.push(price);
    Ok(())
}

async fn writing_owned(lock: Arc<RwLock<Vec<String>>>, app: Arc<App>) -> Result<(), Error> {
    let mut held: OwnedRwLockWriteGuard<Vec<String>> = lock.write_owned().await;
    let price = fetch(&app, 10).await?; // @hd_writing_owned
    held.push(price);
    Ok(())
}

async fn mapped(lock: Arc<Mutex<(String, u32)>>, app: Arc<App>) -> Result<u32, Error> {
    let mut held: MappedMutexGuard<'_, String> = MutexGuard::map(lock.lock().await, |both| &mut both.0);
    let price = fetch(&app, 11).await?; // @hd_mapped
    held.push_str(&price);
    Ok(held.len() as u32)
}

async fn permits(semaphore: Arc<Semaphore>, app: Arc<App>) -> Result<String, Error> {
    let _permit: SemaphorePermit<'_> = semaphore.acquire().await?;
    let price = fetch(&app, 12).await?; // @hd_permit
    Ok(price)
}

/// With other things that are dropped: what they do is to be followed, too.
async fn with_much(app: Arc<App>, stream: TcpStream) -> Result<usize, Error> {
    let mut cache = app.cache.lock().await;
    let (sender, mut numbers) = mpsc::channel::<String>(4);
    let (_single, single) = oneshot::channel::<Vec<String>>();
    let (watched, watcher) = watch::channel(String::from("x"));
    let (_all, mut all) = broadcast::channel::<String>(4);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async { sleep(HOUR).await });
    let stream = BufReader::new(stream);
    let by_name: HashMap<String, Vec<String>> =
        (0..40).map(|n| (n.to_string(), vec!["x".into(); 3])).collect();
    sender.send("first".into()).await?;
    let price = tokio::select! { // @hd_much
        price = fetch(&app, 13) => price?,
        Some(number) = tasks.join_next() => format!("{number:?}"),
        number = all.recv() => number?,
        number = single => format!("{number:?}"),
    };
    let _ = numbers.recv().await;
    watched.send_replace(price.clone());
    cache.insert(13, price);
    Ok(by_name.len() + stream.buffer().len() + watcher.borrow().len())
}

/// Behind pointers to futures whose types are not known statically.
fn boxed(app: Arc<App>, depth: u32) -> BoxFuture<'static, Result<u32, Error>> {
    async move {
        if depth > 0 {
            return boxed(app, depth - 1).await; // @hd_boxed
        }
        let mut cache = app.cache.lock().await;
        let price = fetch(&app, 14).await?; // @hd_boxed0
        cache.insert(14, price);
        Ok(3)
    }
    .boxed()
}

/// What it holds is in a future that it polls.
async fn in_select(app: Arc<App>) -> Result<u32, Error> {
    let held = async {
        let mut cache = app.cache.lock().await;
        let price = fetch(&app, 15).await?; // @hd_select1
        cache.insert(15, price);
        Ok::<u32, Error>(1)
    };
    tokio::select! { // @hd_select
        number = held => number,
        () = sleep(HOUR) => Ok(2),
    }
}

/// Some have a guard, others have given it back.
async fn in_list(locks: Vec<Arc<Mutex<u32>>>, app: Arc<App>) -> Result<usize, Error> {
    let mut all = Vec::new();
    for lock in locks {
        all.push(Box::new(lock.lock_owned().await));
    }
    let last = all.pop();
    drop(last);
    let price = fetch(&app, 16).await?; // @hd_list
    Ok(price.len() + all.len())
}

// Look-alikes.
async fn drops(app: Arc<App>, id: u32) -> Result<String, Error> {
    let cache = app.cache.lock().await;
    if let Some(known) = cache.get(&id) {
        return Ok(known.clone());
    }
    drop(cache);
    let price = fetch(&app, id).await?; // @hd_drops
    app.cache.lock().await.insert(id, price.clone());
    Ok(price)
}

async fn drops_on_one_way(app: Arc<App>, id: u32) -> Result<String, Error> {
    let mut cache = app.cache.lock().await;
    if id > 3 {
        cache.insert(id, String::new());
        drop(cache);
    } else {
        cache.insert(0, String::new());
        std::mem::forget(cache);
    }
    fetch(&app, id).await // @hd_one_way
}

async fn takes(app: Arc<App>) -> Result<u32, Error> {
    let mut cache = Some(app.cache.lock().await);
    if let Some(mut cache) = cache.take() {
        cache.insert(3, String::new());
    }
    let price = fetch(&app, 17).await?; // @hd_takes
    Ok(price.len() as u32 + cache.map_or(0, |cache| cache.len() as u32))
}

async fn gives_away(lock: Arc<Mutex<Vec<String>>>, app: Arc<App>) -> Result<(), Error> {
    let held = lock.lock_owned().await;
    start("held.given", "hd_given>hd_read>*", is_given(held, app.clone()));
    fetch(&app, 18).await?; // @hd_gives
    Ok(())
}

async fn is_given(mut held: OwnedMutexGuard<Vec<String>>, app: Arc<App>) -> Result<(), Error> {
    let price = fetch(&app, 19).await?; // @hd_given
    held.push(price);
    Ok(())
}

async fn waits_for(app: Arc<App>) {
    app.cache.lock().await.clear(); // @hd_waits
}

/// Starts a task that waits for a lock, later.
type Waiter = (&'static str, BoxFuture<'static, ()>);

struct Tasks {
    supplier: SocketAddr,
    waiters: Vec<Waiter>,
}

impl Tasks {
    fn app(&self) -> Arc<App> {
        Arc::new(App { cache: Mutex::default(), supplier: self.supplier })
    }

    /// A task that holds the lock of its own `App`.
    fn of_app<F>(
        &mut self,
        names: [&'static str; 2],
        stack: &str,
        future: impl FnOnce(Arc<App>) -> F,
    ) -> Arc<App>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let app = self.app();
        start(names[0], stack, future(app.clone()));
        self.waiters.push((names[1], waits_for(app.clone()).boxed()));
        app
    }
}

pub async fn start_tasks() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let mut tasks =
        Tasks { supplier: listener.local_addr().expect("the port is known"), waiters: Vec::new() };
    let names = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    tasks.of_app(["held.order", "waits.order"], "hd_order>hd_read>*", |app| order(State(app), Path(3)));
    tasks.of_app(["held.match", "waits.match"], "hd_match>hd_read>*", |app| in_match(app, 1, names()));
    tasks.of_app(["held.loop", "waits.loop"], "hd_loop>hd_read>*", |app| in_loop(app, names()));
    tasks.of_app(["held.field", "waits.field"], "hd_field>hd_read>*", in_field);
    tasks.of_app(["held.option", "waits.option"], "hd_option>hd_read>*", |app| in_option(app, true));
    tasks.of_app(["held.tuple", "waits.tuple"], "hd_tuple>hd_read>*", |app| in_tuple(app, "x".into()));
    let stream = TcpStream::connect(tasks.supplier).await.expect("the listener accepts");
    tasks.of_app(["held.much", "waits.much"], "hd_much>*", |app| with_much(app, stream));
    tasks.of_app(["held.boxed", "waits.boxed"], "hd_boxed>hd_boxed>hd_boxed0>hd_read>*", |app| boxed(app, 2));
    tasks.of_app(["held.select", "waits.select"], "hd_select>(hd_select1>hd_read>*", in_select);
    let app = tasks.app();
    let guarded: Arc<Mutex<Vec<String>>> = Arc::default();
    start("held.owned", "hd_owned>hd_read>*", owned(guarded.clone(), app.clone()));
    tasks.waiters.push(("waits.owned", async move { guarded.lock().await.clear() }.boxed()));
    for (kind, held, waits) in [
        (0, "held.reading", "waits.reading"),
        (1, "held.writing", "waits.writing"),
        (2, "held.writing_owned", "waits.writing_owned"),
    ] {
        let lock: Arc<RwLock<Vec<String>>> = Arc::default();
        match kind {
            0 => start(held, "hd_reading>hd_read>*", reading(lock.clone(), app.clone())),
            1 => start(held, "hd_writing>hd_read>*", writing(lock.clone(), app.clone())),
            _ => start(held, "hd_writing_owned>hd_read>*", writing_owned(lock.clone(), app.clone())),
        }
        tasks.waiters.push((waits, async move { lock.write().await.clear() }.boxed()));
    }
    let both: Arc<Mutex<(String, u32)>> = Arc::default();
    start("held.mapped", "hd_mapped>hd_read>*", mapped(both.clone(), app.clone()));
    tasks.waiters.push(("waits.mapped", async move { both.lock().await.1 += 1 }.boxed()));
    let semaphore = Arc::new(Semaphore::new(1));
    start("held.permit", "hd_permit>hd_read>*", permits(semaphore.clone(), app.clone()));
    tasks.waiters.push(("waits.permit", async move { drop(semaphore.acquire().await) }.boxed()));
    let locks: Vec<Arc<Mutex<u32>>> = vec![Arc::default(), Arc::default()];
    start("held.list", "hd_list>hd_read>*", in_list(locks.clone(), app.clone()));
    let first = locks[0].clone();
    tasks.waiters.push(("waits.list", async move { *first.lock().await += 1 }.boxed()));
    handler(&mut tasks).await;

    // Look-alikes.
    let shared = tasks.of_app(["free.drops", "waits.drops"], "hd_drops>hd_read>*", |app| drops(app, 4));
    let taken = tasks.of_app(["free.takes", "waits.takes"], "hd_takes>hd_read>*", takes);
    let one_way = tasks
        .of_app(["free.one_way", "waits.one_way"], "hd_one_way>hd_read>*", |app| drops_on_one_way(app, 5));
    tasks.of_app(["free.none", "shut.none"], "hd_one_way>hd_read>*", |app| drops_on_one_way(app, 2));
    let given: Arc<Mutex<Vec<String>>> = Arc::default();
    start("free.given", "hd_gives>hd_read>*", gives_away(given.clone(), app.clone()));
    tasks.waiters.push(("waits.given", async move { given.lock().await.clear() }.boxed()));
    sleep(Duration::from_millis(100)).await;
    start("held.drops", "hd_order>hd_read>*", order(State(shared), Path(3)));
    start("held.takes", "hd_field>hd_read>*", in_field(taken));
    start("held.one_way", "hd_order>hd_read>*", order(State(one_way), Path(3)));
    sleep(Duration::from_millis(100)).await;
    for (name, waiter) in tasks.waiters {
        start(name, "*", waiter);
    }
    std::mem::forget(listener);
}

/// A server, one of whose connections holds the lock for which others wait.
async fn handler(tasks: &mut Tasks) {
    let app = tasks.app();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("the port is known");
    let router = Router::new().route("/order/{id}", get(order)).with_state(app.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut client = TcpStream::connect(address).await.expect("the server accepts");
    client.write_all(b"GET /order/3 HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("the server reads");
    std::mem::forget(client);
    tasks.waiters.push(("waits.handler", waits_for(app).boxed()));
}
