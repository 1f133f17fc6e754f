//! A server that hangs because a handler holds a lock across an `.await`, and one task of each other shape.
//!
//! `// @name` marks the lines of all waits. No other statement is on such a line.

use await_tree::{InstrumentAwait, Registry};
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify};
use tokio::time::sleep;

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone)]
struct Shop {
    prices: Arc<Mutex<HashMap<String, String>>>,
    supplier: SocketAddr,
}

async fn price(State(shop): State<Shop>) -> String {
    let root = Registry::current().register_anonymous("price");
    root.instrument(known_price(shop)).await
}
async fn known_price(shop: Shop) -> String {
    let mut prices = shop.prices.lock().instrument_await("lock").await; // @lock
    if let Some(price) = prices.get("price") {
        return price.clone();
    }
    let price = fetch(shop.supplier).instrument_await("fetch").await; // @fetch
    prices.insert("price".into(), price.clone());
    price
}

async fn fetch(supplier: SocketAddr) -> String {
    let mut supplier = TcpStream::connect(supplier).instrument_await("connect").await.unwrap();
    let mut price = String::new();
    supplier.read_to_string(&mut price).instrument_await("read").await.unwrap(); // @read
    price
}

// join!
async fn stock(goods: Arc<Notify>) {
    tokio::join!(refill(goods).instrument_await("refill()"), audit().instrument_await("audit()")); // @join
}
async fn refill(goods: Arc<Notify>) {
    goods.notified().instrument_await("refill").await; // @refill
}
async fn audit() {
    sleep(HOUR).instrument_await("audit").await; // @audit
}

// select!
async fn open(goods: Arc<Notify>) -> u32 {
    tokio::select! { // @select
        () = closing().instrument_await("closing()") => 1,
        () = sold_out(goods).instrument_await("sold_out()") => 2,
    }
}
async fn closing() {
    sleep(HOUR).instrument_await("closing").await; // @closing
}
async fn sold_out(goods: Arc<Notify>) {
    goods.notified().instrument_await("sold_out").await; // @sold_out
}

// Recursion.
fn shelf(depth: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
    Box::pin(async move {
        if depth == 0 {
            sleep(HOUR).instrument_await("bottom").await; // @bottom
            return 0;
        }
        shelf(depth - 1).instrument_await("shelf").await + 1 // @shelf
    })
}

// A task that waits for another.
async fn manager() {
    let worker = await_tree::spawn_anonymous("worker", worker());
    worker.instrument_await("manager").await.unwrap(); // @manager
}
async fn worker() {
    sleep(HOUR).instrument_await("worker").await; // @worker
}

// A timeout.
async fn parcel() {
    let _ = tokio::time::timeout(HOUR, delivery().instrument_await("delivery()"))
        .instrument_await("timeout")
        .await; // @timeout
}
async fn delivery() {
    std::future::pending::<()>().instrument_await("delivery").await; // @delivery
}

// An idle connection.
async fn session(stream: TcpStream) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(_line)) = lines.next_line().instrument_await("session").await {} // @session
}

// Many futures in one task.
async fn counters(goods: Arc<Notify>) {
    let mut all: FuturesUnordered<_> =
        (0..3).map(|_| counter(goods.clone()).instrument_await("counter()")).collect();
    while let Some(()) = all.next().instrument_await("counters").await {} // @counters
}
async fn counter(goods: Arc<Notify>) {
    goods.notified().instrument_await("counter").await; // @counter
}

async fn dump() -> String {
    let trees = Registry::current().collect_all();
    trees.iter().map(|(_, tree)| format!("{tree}\n")).collect()
}

// The cost of a poll.
async fn spin(polls: u64) {
    for _ in 0..polls {
        tokio::task::yield_now().instrument_await("yield").await;
    }
}
async fn spins(polls: u64) {
    let start = Instant::now();
    await_tree::spawn_anonymous("spin", spin(polls)).await.unwrap();
    println!("{}", start.elapsed().as_secs_f64());
}

#[tokio::main]
async fn main() {
    await_tree::init_global_registry(Default::default());
    if let Some(polls) = std::env::args().nth(1) {
        return spins(polls.parse().unwrap()).await;
    }
    // It listens, and never answers.
    let supplier = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let supplier_address = supplier.local_addr().unwrap();
    let goods = Arc::new(Notify::new());
    await_tree::spawn_anonymous("stock", stock(goods.clone()));
    await_tree::spawn_anonymous("open", open(goods.clone()));
    await_tree::spawn_anonymous("shelf", shelf(2));
    await_tree::spawn_anonymous("manager", manager());
    await_tree::spawn_anonymous("parcel", parcel());
    await_tree::spawn_anonymous("session", session(TcpStream::connect(supplier_address).await.unwrap()));
    await_tree::spawn_anonymous("counters", counters(goods));
    let shop = Shop { prices: Arc::default(), supplier: supplier_address };
    let app = Router::new().route("/price", get(price)).route("/dump", get(dump)).with_state(shop);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let root = Registry::current().register_anonymous("main");
    root.instrument(axum::serve(listener, app).into_future().instrument_await("serve")).await.unwrap(); // @serve
}
