//! A server in which one request holds a lock while it waits, and all others wait for the lock.

use crate::HOUR;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

type Cache = Arc<Mutex<HashMap<String, String>>>;

async fn price(State(cache): State<Cache>) -> String {
    let mut cache = cache.lock().await; // @lock
    if let Some(known) = cache.get("price") {
        return known.clone();
    }
    let price = fetch().await; // @fetch
    cache.insert("price".into(), price.clone());
    price
}

async fn fetch() -> String {
    // A server that never answers.
    tokio::time::sleep(HOUR).await; // @never
    "1.00".into()
}

pub async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("the port is known");
    let app = Router::new().route("/price", get(price)).with_state(Cache::default());
    tokio::spawn(async move { axum::serve(listener, app).await });
    for _ in 0..100 {
        let mut client = TcpStream::connect(address).await.expect("the server accepts");
        client.write_all(b"GET /price HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("the server reads");
        std::mem::forget(client);
    }
}
