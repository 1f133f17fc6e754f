//! The stream that an open page holds: it says when there is a newer page, and the server counts the open pages.

use hyper::body::{Body, Bytes, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How often something is sent, so that a closed connection is noticed.
const BEAT: Duration = Duration::from_secs(10);

/// How many pages are open; `None` before the first.
#[derive(Clone, Debug)]
pub(super) struct OpenPages(watch::Sender<Option<usize>>);

impl Default for OpenPages {
    fn default() -> OpenPages {
        OpenPages(watch::Sender::new(None))
    }
}

/// An open page.
pub(super) struct OpenPage(OpenPages);

impl OpenPages {
    /// Counts a page until it is dropped.
    pub(super) fn add(&self) -> OpenPage {
        self.0.send_modify(|count| *count = Some(count.unwrap_or(0) + 1));
        OpenPage(self.clone())
    }

    /// Returns when there have been pages, and none for a while.
    pub(super) async fn all_closed_for(&self, time: Duration) {
        let mut count = self.0.subscribe();
        loop {
            // The sender is here, so this does not fail.
            let _ = count.wait_for(|count| *count == Some(0)).await;
            let another = count.wait_for(|count| *count != Some(0));
            if tokio::time::timeout(time, another).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = Some(count.unwrap_or(1).saturating_sub(1)));
    }
}

/// A stream of server-sent events: `page` with the number of the newest page.
/// Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.
pub(super) struct Events(mpsc::Receiver<Bytes>);

impl Events {
    pub(super) fn new(revision: &watch::Sender<u64>, page: OpenPage) -> Events {
        let (sender, receiver) = mpsc::channel(1);
        let mut revision = revision.subscribe();
        tokio::spawn(async move {
            let _page = page;
            loop {
                let number = *revision.borrow_and_update();
                if sender.send(format!("event: page\ndata: {number}\n\n").into()).await.is_err() {
                    return;
                }
                loop {
                    tokio::select! {
                        () = sender.closed() => return,
                        changed = revision.changed() => match changed {
                            Ok(()) => break,
                            Err(_) => return,
                        },
                        () = tokio::time::sleep(BEAT) => {
                            if sender.send(Bytes::from_static(b":\n\n")).await.is_err() {
                                return;
                            }
                        }
                    }
                }
            }
        });
        Events(receiver)
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}
