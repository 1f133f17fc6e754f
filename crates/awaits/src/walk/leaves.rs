//! Futures in which there is no coroutine: what a task waits for.

use super::{Need, Place, Walk, is_wrapper};
use crate::futures::{Form, Part, form};
use crate::values::Value;
use crate::{hidden, join_set, names, wrapped};
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, SharedKind, Wait, WaitTarget};
use stackglass_symbols::layouts::Shape;

impl Walk<'_, '_> {
    /// A future without the pointers and wrappers around it.
    pub(super) fn stripped(&self, mut value: Value) -> Value {
        let values = self.values();
        for _ in 0..8 {
            let layout = values.layout(value.type_id);
            let inner = match &layout.shape {
                _ if wrapped::is_wrapper(&layout.name) => {
                    self.note_wrapper(value);
                    values.field(value, "future")
                }
                _ if form(values.layouts, value.type_id) == Form::Dynamic => self.walker.dynamic(value),
                Shape::Struct(fields) if is_wrapper(&layout.name) => {
                    let large = fields.iter().find(|field| values.layout(field.type_id).size > 0);
                    large.and_then(|field| value.part(field))
                }
                Shape::Pointer { .. } if is_wrapper(&layout.name) || layout.name.starts_with("&mut ") => {
                    values.target(value)
                }
                _ => None,
            };
            let Some(inner) = inner else { break };
            value = inner;
        }
        value
    }

    /// A future in which there is no coroutine: its own type.
    pub(super) fn leaf(&self, value: Value, place: Place<'_>) -> AwaitFrame {
        let values = self.values();
        let wait = |target, place: Place<'_>| Wait {
            target,
            is_needed: place.need != Need::No,
            unless_fails: place.need == Need::UnlessFails,
            permits: 0,
        };
        if let Some(target) = self.target(value, place) {
            let permits = values.field(value, "num_permits").and_then(|permits| values.word(permits));
            self.waits.borrow_mut().push(Wait { permits: permits.unwrap_or(0), ..wait(target, place) });
        }
        if place.within.starts_with(join_set::PATH) {
            let ids = join_set::tasks(values, &self.walker.headers, value).into_iter();
            let any = Place { need: Need::No, ..place };
            self.waits.borrow_mut().extend(ids.map(|id| wait(WaitTarget::Task(id), any)));
        }
        let function = self.walker.name(value.type_id);
        let is_hidden = self.walker.types.lead_to(Part::Hidden, value.type_id);
        let why = is_hidden.then(|| hidden::place(values, self.walker.types, value.type_id)).flatten();
        let point = why.map_or(AwaitPoint::Leaf, AwaitPoint::Lost);
        AwaitFrame { function, point, children: Vec::new() }
    }

    /// What a leaf waits for.
    fn target(&self, leaf: Value, place: Place<'_>) -> Option<WaitTarget> {
        let values = self.values();
        let shared = |kind, field: &str| {
            let address = values.target(values.field(leaf, field)?)?.address;
            Some(WaitTarget::Shared { kind, address })
        };
        match names::without_arguments(values.name(leaf)) {
            "tokio::runtime::task::join::JoinHandle" => {
                let header = values.target(values.field(leaf, "raw")?)?;
                Some(WaitTarget::Task(self.walker.headers.id(values, header.address)?))
            }
            "tokio::sync::batch_semaphore::Acquire" => {
                let kind = match place.within {
                    within if within.starts_with("tokio::sync::mutex::") => SharedKind::Mutex,
                    within if within.starts_with("tokio::sync::rwlock::") => SharedKind::RwLock,
                    within if within.starts_with("tokio::sync::mpsc::") => SharedKind::FullChannel,
                    _ => SharedKind::Semaphore,
                };
                shared(kind, "semaphore")
            }
            "tokio::sync::notify::Notified" => shared(SharedKind::Notify, "notify"),
            "tokio::sync::oneshot::Receiver" => shared(SharedKind::Oneshot, "inner"),
            _ => None,
        }
    }
}
