//! Which requests are answered.

use hyper::{Method, Request, StatusCode, header};

/// What requests must know.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) port: u16,
    /// The path of the page.
    pub(super) secret: String,
    /// The path that leads there once.
    pub(super) one_time: String,
}

/// What a request gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Route {
    /// The page.
    Page,
    /// The stream that says when the page has changed.
    Events,
    /// The way to the page.
    OneTime,
    /// Nothing, and why.
    Refused(StatusCode, &'static str),
}

impl Routes {
    /// The path with a secret.
    pub(super) fn path(&self, secret: &str) -> String {
        format!("/{secret}/")
    }

    /// The address with a secret.
    pub(super) fn address(&self, secret: &str) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.path(secret))
    }

    /// What a request gets. A page of another site can send requests here, with the name of its own host or with its origin.
    pub(super) fn route<B>(&self, request: &Request<B>) -> Route {
        let forbidden = |why| Route::Refused(StatusCode::FORBIDDEN, why);
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return forbidden("one host must be named\n");
        };
        let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        if !names.iter().any(|name| host.as_bytes() == name.as_bytes()) {
            return forbidden("this server has another name\n");
        }
        let is_here = |origin: &[u8]| origin.strip_prefix(b"http://") == Some(host.as_bytes());
        if request.headers().get_all(header::ORIGIN).iter().any(|origin| !is_here(origin.as_bytes())) {
            return forbidden("pages of other sites get nothing\n");
        }
        if request.method() != Method::GET {
            return Route::Refused(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n");
        }
        let mut parts = request.uri().path().split('/');
        let (first, second, third, more) = (parts.next(), parts.next(), parts.next(), parts.next());
        match (first, second, third, more) {
            (Some(""), Some(secret), Some(""), None) if is_same(secret, &self.secret) => Route::Page,
            (Some(""), Some(secret), Some("events"), None) if is_same(secret, &self.secret) => Route::Events,
            (Some(""), Some(secret), Some(""), None) if is_same(secret, &self.one_time) => Route::OneTime,
            _ => Route::Refused(StatusCode::NOT_FOUND, "there is no such page\n"),
        }
    }
}

/// Compares in a time that does not depend on how much is the same.
fn is_same(given: &str, secret: &str) -> bool {
    let differences = given.bytes().zip(secret.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == secret.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, path: &str, headers: &[(&str, &str)]) -> Route {
        let routes = Routes { port: 4000, secret: "a1".into(), one_time: "b2".into() };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        routes.route(&request.body(()).expect("a request"))
    }

    fn status(method: Method, path: &str, headers: &[(&str, &str)]) -> u16 {
        match route(method, path, headers) {
            Route::Refused(status, _) => status.as_u16(),
            _ => 200,
        }
    }

    #[test]
    fn only_the_secret_leads_to_the_page() {
        let here = [("host", "127.0.0.1:4000")];
        assert_eq!(route(Method::GET, "/a1/", &here), Route::Page);
        assert_eq!(route(Method::GET, "/a1/events", &here), Route::Events);
        assert_eq!(route(Method::GET, "/b2/", &here), Route::OneTime);
        for path in [
            "/",
            "/a1",
            "/a",
            "/a1/a1/",
            "/a1/other",
            "/a11/",
            "//a1/",
            "/a1/events/",
            "/b2/events",
            "/A1/",
            "/a1/../a1/",
        ] {
            assert_eq!(status(Method::GET, path, &here), 404, "{path}");
        }
        assert_eq!(status(Method::POST, "/a1/", &here), 405);
        assert_eq!(status(Method::HEAD, "/a1/", &here), 405);
    }

    #[test]
    fn other_hosts_and_origins_get_nothing() {
        let ask = |headers: &[(&str, &str)]| status(Method::GET, "/a1/", headers);
        assert_eq!(ask(&[("host", "localhost:4000")]), 200);
        assert_eq!(ask(&[]), 403);
        for host in
            ["evil.example", "127.0.0.1", "127.0.0.1:4001", "127.0.0.1:4000.evil.example", "[::1]:4000", ""]
        {
            assert_eq!(ask(&[("host", host)]), 403, "{host}");
        }
        assert_eq!(ask(&[("host", "127.0.0.1:4000"), ("host", "evil.example")]), 403);
        assert_eq!(ask(&[("host", "127.0.0.1:4000"), ("origin", "http://127.0.0.1:4000")]), 200);
        for origin in ["http://evil.example", "null", "https://127.0.0.1:4000", "http://localhost:4000", ""] {
            assert_eq!(ask(&[("host", "127.0.0.1:4000"), ("origin", origin)]), 403, "{origin}");
        }
    }
}
