//! The server over real sockets.

use super::*;
use crate::Packed;
use stackglass_profile::Recording;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

fn server() -> Server {
    Server::new(&Page::new(&Packed::new(Recording::default(), "empty")), 0).expect("a free port")
}

/// Sends a request for an address, and returns the connection.
fn ask(address: &str) -> TcpStream {
    let (host, path) =
        address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let mut stream = TcpStream::connect(host).expect("a server");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it is sent");
    stream
}

fn answer(address: &str) -> String {
    let mut text = String::new();
    ask(address).read_to_string(&mut text).expect("an answer");
    text
}

/// Reads until this comes.
fn wait_for(stream: &mut TcpStream, what: &str) {
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains(what) {
        let mut part = [0; 1000];
        let count = stream.read(&mut part).expect("it is open");
        assert!(count > 0, "it ends before {what}: {}", String::from_utf8_lossy(&text));
        text.extend(&part[..count]);
    }
}

#[test]
fn a_page_is_served_until_the_last_browser_closes_it() {
    let server = server();
    let (address, once, served) = (server.address(), server.one_time_address(), server.page());
    assert!(address != once && server.listener.local_addr().is_ok_and(|at| at.ip().is_loopback()));
    let running = thread::spawn(|| server.run());

    let redirect = answer(&once);
    assert!(
        redirect.starts_with("HTTP/1.1 303")
            && redirect.contains(&format!(
                "location: /{}",
                address.rsplit_once(':').expect("a port").1.split_once('/').expect("a path").1
            )),
        "{redirect}"
    );
    assert!(answer(&once).starts_with("HTTP/1.1 410"));
    let page = answer(&address);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<title>empty</title>"), "{page}");
    assert!(page.contains("connect-src 'self'") && page.contains("frame-ancestors 'none'"), "{page}");

    let mut events = ask(&format!("{address}events"));
    wait_for(&mut events, "data: 1\n");
    let other = Packed::new(Recording::default(), "other");
    served.replace(&Page::new(&other)).expect("a page");
    wait_for(&mut events, "data: 2\n");
    assert!(answer(&address).contains("<title>other</title>"));
    assert!(!running.is_finished());
    drop(events);
    assert_eq!(running.join().expect("no panic").expect("no error"), End::PagesClosed);
}
