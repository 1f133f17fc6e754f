//! Futures in which there is no coroutine: what a task waits for.

use super::{Place, Walk};
use crate::futures::{Form, Part, form};
use crate::needs::{Content, Kind};
use crate::values::{Value, Values};
use crate::walker::is_box;
use crate::{ends, join_set, joins, names, opaque_futures, wrapper};
use stackglass_layouts::{Shape, Variant};
use stackglass_profile::runtimes::{
    HTTP2_CONNECTION, IDLE_CONNECTIONS, OTHER_MUTEXES, RECEIVING, SENDING, futures, is_generic, tokio,
};
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, SharedKind, WaitTarget};

/// Deepest nesting of a mutex in a future that waits for it.
const DEEPEST: u32 = 8;
/// Deepest nesting of combinators.
const DEEPEST_COMBINATOR: u32 = 32;

impl Walk<'_, '_> {
    /// A future without the pointers and wrappers around it, and whether one of the pointers only borrows it.
    pub(super) fn stripped(&self, mut value: Value) -> (Value, bool) {
        let values = self.values();
        let mut is_borrowed = false;
        for _ in 0..8 {
            let layout = values.layout(value.type_id);
            let inner = match &layout.shape {
                _ if wrapper::is_wrapper(&layout.name) => {
                    self.note_wrapper(value);
                    values.field(value, "future")
                }
                _ if form(values.layouts, value.type_id) == Form::Dynamic => self.walker.dynamic(value),
                Shape::Struct(fields) if is_box(&layout.name) => {
                    let large = fields.iter().find(|field| values.layout(field.type_id).size > 0);
                    large.and_then(|field| value.part(field))
                }
                Shape::Pointer { .. } if is_box(&layout.name) || layout.name.starts_with("&mut ") => {
                    values.target(value)
                }
                _ => None,
            };
            let Some(inner) = inner else { break };
            is_borrowed |= layout.name.contains("&mut ");
            value = inner;
        }
        (value, is_borrowed)
    }

    /// A future in which there is no coroutine: its own type.
    pub(super) fn leaf(&self, value: Value, place: Place<'_>) -> AwaitFrame {
        let values = self.values();
        self.note_timer(Some(value));
        let is_known = form(values.layouts, value.type_id) == Form::Leaf;
        // Those of other libraries may have anything, also by reference.
        let is_of_tokio = place.within.starts_with(tokio::CRATE) && place.is_own;
        let content = if is_known || is_of_tokio { Content::Nothing } else { Content::Unknown };
        let is_of_set = place.within.starts_with(tokio::JOIN_SET_MODULE);
        match self.target(value, place) {
            _ if is_of_set => self.set_of_tasks(value, place),
            Some(target) => {
                let permits = values.field(value, "num_permits").and_then(|permits| values.word(permits));
                let missing = values.path(value, &["node", "state"]).and_then(|state| values.word(state));
                let queued = values.field(value, "queued");
                let is_queued = queued.and_then(|queued| values.pages.number(queued.address, 1)) == Some(1);
                let assigned = permits.zip(missing).filter(|_| is_queued);
                let assigned = assigned.and_then(|(permits, missing)| permits.checked_sub(missing));
                self.wait(target, (permits.unwrap_or(0), assigned.unwrap_or(0)), place, content);
            }
            None => {
                self.needs.borrow_mut().add(place.node, Kind::Open, content);
            }
        }
        let function = self.walker.name(self.innermost(value).type_id);
        let is_hidden = self.walker.types.lead_to(Part::Hidden, value.type_id);
        let why =
            is_hidden.then(|| opaque_futures::place(values, self.walker.types, value.type_id)).flatten();
        let point = why.map_or(AwaitPoint::Leaf, AwaitPoint::Lost);
        AwaitFrame { function, point, children: Vec::new(), is_race: false }
    }

    /// The future in combinators that only change its result, as `Map`: it says more than they do. So does the connection in one that
    /// may be of several versions of HTTP.
    fn innermost(&self, future: Value) -> Value {
        let values = self.values();
        if IDLE_CONNECTIONS.contains(&names::without_arguments(values.name(future))) {
            let http2 = ends::find(values, future, DEEPEST, &|name| is_generic(name, HTTP2_CONNECTION));
            return http2.unwrap_or(future);
        }
        let mut inner = future;
        for _ in 0..DEEPEST_COMBINATOR {
            let layout = values.layout(inner.type_id);
            let is_passed = layout.name.starts_with(futures::FUTURE) && joins::kind(&layout.name).is_none();
            let fields = match &layout.shape {
                Shape::Struct(fields) if is_passed => fields,
                Shape::Enum { .. } if is_passed => match values.active(inner) {
                    Some((_, variant)) => &variant.fields,
                    None => break,
                },
                _ => break,
            };
            let next = fields.iter().find(|field| matches!(&*field.name, "inner" | "future"));
            let next = next.and_then(|field| inner.part(field));
            let Some(next) = next.and_then(|next| self.unfinished(next)) else { break };
            inner = next;
        }
        // What several own, or a list, is no future.
        const NO_FUTURES: [&str; 5] = ["alloc::", "core::", "std::", "(", "&"];
        let is_future = NO_FUTURES.iter().all(|begin| !values.name(inner).starts_with(begin));
        if is_future { inner } else { future }
    }

    /// Notes what is waited for. `permits` of a lock: all, and those that are assigned.
    fn wait(&self, target: WaitTarget, (permits, assigned): (u64, u64), place: Place<'_>, content: Content) {
        let kind = match target {
            WaitTarget::Task(id) => Kind::Task(id),
            WaitTarget::Shared { kind, address } => Kind::Shared { kind, address, permits, assigned },
        };
        self.needs.borrow_mut().add(place.node, kind, content);
        self.waits.borrow_mut().push(target);
    }

    /// The end of any task of a `JoinSet`.
    fn set_of_tasks(&self, value: Value, place: Place<'_>) {
        let (ids, is_whole) = join_set::tasks(self.values(), &self.walker.headers, value);
        let node = self.needs.borrow_mut().add(place.node, Kind::Any, Content::Nothing);
        let place = Place { node, ..place };
        if !is_whole {
            self.open(place);
        }
        for id in ids {
            self.wait(WaitTarget::Task(id), (0, 0), place, Content::Nothing);
        }
    }

    /// What a leaf waits for.
    fn target(&self, leaf: Value, place: Place<'_>) -> Option<WaitTarget> {
        let values = self.values();
        if let Some((kind, address)) = place.shared {
            return Some(WaitTarget::Shared { kind, address });
        }
        let shared = |kind, field: &str| {
            let address = values.target(values.field(leaf, field)?)?.address;
            Some(WaitTarget::Shared { kind, address })
        };
        match names::without_arguments(values.name(leaf)) {
            tokio::JOIN_HANDLE => {
                let header = values.target(values.field(leaf, "raw")?)?;
                Some(WaitTarget::Task(self.walker.headers.id(values, header.address)?))
            }
            tokio::ACQUIRE => {
                let kind = match place.within {
                    within if within.starts_with(tokio::MUTEX_MODULE) => SharedKind::Mutex,
                    within if within.starts_with(tokio::RWLOCK_MODULE) => SharedKind::RwLock,
                    within if within.starts_with(tokio::MPSC_MODULE) => SharedKind::FullChannel,
                    _ => SharedKind::Semaphore,
                };
                shared(kind, "semaphore")
            }
            tokio::NOTIFIED => shared(SharedKind::Notify, "notify"),
            tokio::ONESHOT_RECEIVER => shared(SharedKind::Oneshot, "inner"),
            name => other_target(values, leaf, name),
        }
    }

    /// What a function of tokio waits for with all that it awaits: the channel of its receiver, or the barrier.
    pub(super) fn shared_of(
        &self,
        coroutine: Value,
        variant: &Variant,
        function: &str,
    ) -> Option<(SharedKind, u64)> {
        let values = self.values();
        let kind = match function {
            tokio::BARRIER_WAIT => SharedKind::Barrier,
            _ if tokio::RECEIVE.contains(&function) => SharedKind::EmptyChannel,
            _ if tokio::WATCH.contains(&function) => SharedKind::Watch,
            _ => return None,
        };
        let own = variant.fields.iter().find(|field| &*field.name == "self")?;
        let own = coroutine.part(own)?;
        let address = match kind {
            SharedKind::Barrier => ends::find(values, own, 4, &|name| name == tokio::BARRIER)?.address,
            _ => ends::channel(values, own)?.address,
        };
        Some((kind, address))
    }
}

/// What a future of another library waits for.
fn other_target(values: &Values<'_>, leaf: Value, name: &str) -> Option<WaitTarget> {
    let kind = match () {
        () if RECEIVING.contains(&name) => SharedKind::EmptyChannel,
        () if SENDING.contains(&name) => SharedKind::FullChannel,
        () => {
            let (mutex, ..) = OTHER_MUTEXES.iter().find(|(_, future, _)| *future == name)?;
            let mutex = ends::find(values, leaf, DEEPEST, &|name| is_generic(name, mutex))?;
            let address = values.field(mutex, "state")?.address;
            return Some(WaitTarget::Shared { kind: SharedKind::OtherMutex, address });
        }
    };
    Some(WaitTarget::Shared { kind, address: ends::channel(values, leaf)?.address })
}
