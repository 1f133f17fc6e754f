//! A server that hangs because a handler holds a lock across an `.await`, and one task of each other shape.
//!
//! `// @name` marks the lines of all waits. No other statement is on such a line.

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
    let mut prices = shop.prices.lock().await; // @lock
    if let Some(price) = prices.get("price") {
        return price.clone();
    }
    let price = fetch(shop.supplier).await; // @fetch
    prices.insert("price".into(), price.clone());
    price
}

async fn fetch(supplier: SocketAddr) -> String {
    let mut supplier = TcpStream::connect(supplier).await.unwrap();
    let mut price = String::new();
    supplier.read_to_string(&mut price).await.unwrap(); // @read
    price
}

// join!
async fn stock(goods: Arc<Notify>) {
    tokio::join!(refill(goods), audit()); // @join
}
async fn refill(goods: Arc<Notify>) {
    goods.notified().await; // @refill
}
async fn audit() {
    sleep(HOUR).await; // @audit
}

// select!
async fn open(goods: Arc<Notify>) -> u32 {
    tokio::select! { // @select
        () = closing() => 1,
        () = sold_out(goods) => 2,
    }
}
async fn closing() {
    sleep(HOUR).await; // @closing
}
async fn sold_out(goods: Arc<Notify>) {
    goods.notified().await; // @sold_out
}

// Recursion.
fn shelf(depth: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
    Box::pin(async move {
        if depth == 0 {
            sleep(HOUR).await; // @bottom
            return 0;
        }
        shelf(depth - 1).await + 1 // @shelf
    })
}

// A task that waits for another.
async fn manager() {
    let worker = dial9::spawn(worker());
    worker.await.unwrap(); // @manager
}
async fn worker() {
    sleep(HOUR).await; // @worker
}

// A timeout.
async fn parcel() {
    let _ = tokio::time::timeout(HOUR, delivery()).await; // @timeout
}
async fn delivery() {
    std::future::pending::<()>().await; // @delivery
}

// An idle connection.
async fn session(stream: TcpStream) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(_line)) = lines.next_line().await {} // @session
}

// Many futures in one task.
async fn counters(goods: Arc<Notify>) {
    let mut all: FuturesUnordered<_> = (0..3).map(|_| counter(goods.clone())).collect();
    while let Some(()) = all.next().await {} // @counters
}
async fn counter(goods: Arc<Notify>) {
    goods.notified().await; // @counter
}

// The cost of a poll.
async fn spin(polls: u64) {
    for _ in 0..polls {
        tokio::task::yield_now().await;
    }
}
async fn spins(polls: u64) {
    let start = Instant::now();
    dial9::spawn(spin(polls)).await.unwrap();
    println!("{}", start.elapsed().as_secs_f64());
}

#[dial9::main(config = dial9::recorder_from_env)]
async fn main() {
    let polls = std::env::args().nth(1);
    if let Some(polls) = polls {
        return spins(polls.parse().unwrap()).await;
    }
    // It listens, and never answers.
    let supplier = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let supplier_address = supplier.local_addr().unwrap();
    let goods = Arc::new(Notify::new());
    dial9::spawn(stock(goods.clone()));
    dial9::spawn(open(goods.clone()));
    dial9::spawn(shelf(2));
    dial9::spawn(manager());
    dial9::spawn(parcel());
    dial9::spawn(session(TcpStream::connect(supplier_address).await.unwrap()));
    dial9::spawn(counters(goods));
    let shop = Shop { prices: Arc::default(), supplier: supplier_address };
    let app = Router::new().route("/price", get(price)).with_state(shop);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    axum::serve(listener, app).await.unwrap(); // @serve
}
