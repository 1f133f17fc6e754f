//! A page for the browsers of this machine, as long as one shows it.
//!
//! The server listens on loopback only. Other users of the machine can reach that as well, so the path has a random secret. Each request
//! must name this server as its host and, if it has an origin, as that: pages of other sites get nothing. There are two routes, the page
//! and a stream of events that the page holds open. The server ends when no page has held one for a while.
//!
//! Arguments of processes are visible to other users, so the address that a browser is started with leads to the page only once.

mod events;
mod request;

use crate::Page;
use events::{Events, OpenPages};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use request::{Route, Routes};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// How long no page may be open before the server ends: pages are read again, and laptops are busy.
const CLOSED: Duration = Duration::from_secs(5);
/// How long a request may take to arrive.
const REQUEST: Duration = Duration::from_secs(10);

/// Why a page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No port can be listened on.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port that was asked for; 0 for any.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
    /// There are no random numbers for the secret.
    #[error("there are no random numbers: {0}")]
    Secret(getrandom::Error),
    /// The server stopped.
    #[error("cannot serve the page: {0}")]
    Serve(#[from] io::Error),
}

/// Why a server ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The last page was closed.
    PagesClosed,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// The page that is served. Clones share it; one thread replaces it.
#[derive(Clone, Debug)]
pub struct ServedPage {
    html: Arc<RwLock<Bytes>>,
    revision: watch::Sender<u64>,
}

impl ServedPage {
    /// Replaces the page. Open pages learn of it.
    ///
    /// # Errors
    /// If the page cannot be written.
    pub fn replace(&self, page: &Page<'_>) -> io::Result<()> {
        let number = *self.revision.borrow() + 1;
        let mut html = Vec::new();
        page.served(number).write_to(&mut html)?;
        *self.html.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = html.into();
        self.revision.send_replace(number);
        Ok(())
    }

    fn html(&self) -> Bytes {
        self.html.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// A server that is about to serve a page.
///
/// ```no_run
/// use stackglass_profile::Recording;
/// use stackglass_view::{Packed, Page, Server};
///
/// let packed = Packed::new(Recording::default(), "empty");
/// let server = Server::new(&Page::new(&packed), 0)?;
/// println!("{}", server.address());
/// server.run()?;
/// # Ok::<(), stackglass_view::ServeError>(())
/// ```
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    routes: Routes,
    page: ServedPage,
}

impl Server {
    /// Listens on a port of loopback; on any free one for 0.
    ///
    /// # Errors
    /// If the port is in use, or the page cannot be written.
    pub fn new(first: &Page<'_>, port: u16) -> Result<Server, ServeError> {
        let listen = |source| ServeError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let routes = Routes {
            port: listener.local_addr().map_err(listen)?.port(),
            secret: secret().map_err(ServeError::Secret)?,
            one_time: secret().map_err(ServeError::Secret)?,
        };
        let page = ServedPage { html: Arc::default(), revision: watch::Sender::new(0) };
        page.replace(first)?;
        Ok(Server { listener, routes, page })
    }

    /// The address of the page. With it, all users of this machine can read the page.
    pub fn address(&self) -> String {
        self.routes.address(&self.routes.secret)
    }

    /// An address that leads to the page once: other users may see it among the arguments of a browser.
    pub fn one_time_address(&self) -> String {
        self.routes.address(&self.routes.one_time)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.routes.port
    }

    /// What is served, to be replaced while the server runs.
    pub fn page(&self) -> ServedPage {
        self.page.clone()
    }

    /// Serves the page until the last browser closes it, or the user presses Ctrl-C.
    ///
    /// # Errors
    /// If the system accepts no connection.
    pub fn run(self) -> Result<End, ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.accept())
    }

    async fn accept(self) -> Result<End, ServeError> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let open_pages = OpenPages::default();
        let answers = Arc::new(Answers {
            routes: self.routes,
            page: self.page,
            open_pages: open_pages.clone(),
            is_used: AtomicBool::new(false),
        });
        let served = async {
            loop {
                // A connection that is gone at once is no reason to end, nor are too many open files.
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let answers = answers.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let answers = answers.clone();
                        async move { Ok::<_, Infallible>(answers.answer(&request)) }
                    });
                    let mut connection = http1::Builder::new();
                    connection.timer(TokioTimer::new()).header_read_timeout(REQUEST);
                    // A browser that goes away is no error.
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        };
        tokio::select! {
            () = served => unreachable!("the loop does not end"),
            () = open_pages.all_closed_for(CLOSED) => Ok(End::PagesClosed),
            pressed = tokio::signal::ctrl_c() => Ok(pressed.map(|()| End::Interrupted)?),
        }
    }
}

type Answer = Response<Either<Full<Bytes>, Events>>;

/// What the server knows when a request comes.
struct Answers {
    routes: Routes,
    page: ServedPage,
    open_pages: OpenPages,
    /// Whether the address for the browser was used.
    is_used: AtomicBool,
}

impl Answers {
    fn answer(&self, request: &Request<Incoming>) -> Answer {
        let text = |status: StatusCode, text: &'static str| {
            with_headers(status, "text/plain", Either::Left(Full::from(text)))
        };
        match self.routes.route(request) {
            Route::Page => {
                with_headers(StatusCode::OK, "text/html", Either::Left(Full::new(self.page.html())))
            }
            Route::Events => {
                let events = Events::new(&self.page.revision, self.open_pages.add());
                with_headers(StatusCode::OK, "text/event-stream", Either::Right(events))
            }
            Route::OneTime if self.is_used.swap(true, Ordering::Relaxed) => text(
                StatusCode::GONE,
                "This address was used, and works only once. stackglass printed another, which works until it ends.\n",
            ),
            Route::OneTime => {
                let mut answer = text(StatusCode::SEE_OTHER, "");
                let to = HeaderValue::from_str(&self.routes.path(&self.routes.secret))
                    .expect("hexadecimal digits");
                answer.headers_mut().insert(header::LOCATION, to);
                answer
            }
            Route::Refused(status, why) => text(status, why),
        }
    }
}

fn with_headers(status: StatusCode, media: &str, body: Either<Full<Bytes>, Events>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    let media = HeaderValue::from_str(&format!("{media}; charset=utf-8")).expect("a name of a format");
    headers.insert(header::CONTENT_TYPE, media);
    // The page has a policy of its own, which allows less; this is what only a header can say.
    let always: [(HeaderName, &str); 6] = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// 128 random bits as hexadecimal digits.
fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
