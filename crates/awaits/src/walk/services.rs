//! Services of `tower` that are not ready: which limit a request waits for before its handler is called.
//!
//! A service is no future, but `Oneshot` polls it until it is ready. Services are in each other, by value, in boxes and in enums.
//! `ConcurrencyLimit` waits for its semaphore if it has no permit, but has a future that gets one: it makes this future when it is
//! asked and finds no free permit, and a copy of it has none. So the one limit in this state is what the request waits for, whichever
//! services are around it. If several are, nothing is known.

use super::Walk;
use super::{Place, lost};
use crate::names;
use crate::values::Value;
use stackglass_layouts::Shape;
use stackglass_profile::runtimes::{is_generic, tower};
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, SharedKind, WaitTarget};

/// Deepest nesting of services.
const DEEPEST: u32 = 64;
/// Most values that are looked into.
const MOST: u32 = 2000;

/// Whether this is the future that waits for a service, and then for its response.
pub(super) fn is_oneshot(name: &str) -> bool {
    tower::ONESHOTS.iter().any(|path| is_generic(name, path))
}

impl Walk<'_, '_> {
    /// The service for which a `Oneshot` waits, if it was not called yet.
    pub(super) fn not_ready(&self, oneshot: Value) -> Option<Value> {
        let values = self.values();
        // That of `hyper-util` is its own state.
        let state = values.field(oneshot, "state").unwrap_or(oneshot);
        let (_, variant) = values.active(state).filter(|(_, variant)| &*variant.name == "NotReady")?;
        state.part(variant.fields.iter().find(|field| &*field.name == "svc")?)
    }

    /// The frames of a `Oneshot` that waits for its service.
    pub(super) fn waits_for_service(
        &self,
        oneshot: Value,
        service: Value,
        place: Place<'_>,
        out: &mut Vec<AwaitFrame>,
    ) {
        self.open(place);
        let mut frame = self.service_frame(oneshot);
        let mut found = Limits { waiting: Vec::new(), unknown: None, left: MOST };
        self.limits(service, DEEPEST, &mut found);
        match (&found.waiting[..], found.unknown) {
            ([(limit, address)], _) => {
                let kind = SharedKind::Semaphore;
                self.waits.borrow_mut().push(WaitTarget::Shared { kind, address: *address });
                frame.children.push(self.service_frame(*limit));
            }
            ([], Some(name)) => frame.children.push(lost(name, "its type is not in the debug information")),
            _ => {}
        }
        out.push(frame);
    }

    fn service_frame(&self, value: Value) -> AwaitFrame {
        let function = names::without_arguments(self.values().name(value)).into();
        AwaitFrame { function, point: AwaitPoint::Leaf, children: Vec::new(), is_race: false }
    }

    /// The limits in a service that wait.
    fn limits<'v>(&'v self, value: Value, depth: u32, found: &mut Limits<'v>) {
        let Some((depth, left)) = depth.checked_sub(1).zip(found.left.checked_sub(1)) else { return };
        found.left = left;
        let values = self.values();
        let layout = values.layout(value.type_id);
        let name = &*layout.name;
        if is_generic(name, tower::CONCURRENCY_LIMIT) {
            found.waiting.extend(self.semaphore_of(value).map(|semaphore| (value, semaphore)));
        }
        if name.starts_with("alloc::boxed::Box<dyn ") || name.starts_with("alloc::boxed::Box<(dyn ") {
            return match self.walker.dynamic(value) {
                Some(inner) => self.limits(inner, depth, found),
                None if name.contains("Service<") => found.unknown = found.unknown.or(Some(name)),
                None => {}
            };
        }
        let fields = match &layout.shape {
            Shape::Struct(fields) => fields,
            Shape::Enum { .. } => match values.active(value) {
                Some((_, variant)) => &variant.fields,
                None => return,
            },
            Shape::Pointer { .. } if name.starts_with("alloc::boxed::Box<") => {
                return if let Some(inner) = values.target(value) {
                    self.limits(inner, depth, found)
                };
            }
            _ => return,
        };
        fields.iter().filter_map(|field| value.part(field)).for_each(|part| self.limits(part, depth, found));
    }

    /// The semaphore for which a concurrency limit waits.
    fn semaphore_of(&self, limit: Value) -> Option<u64> {
        let values = self.values();
        let variant = |value: Option<Value>| Some(&*values.active(value?)?.1.name);
        let future = values.path(limit, &["semaphore", "permit_fut"]);
        if (variant(values.field(limit, "permit")), variant(future)) != (Some("None"), Some("Some")) {
            return None;
        }
        let block = values.target(values.path(limit, &["semaphore", "semaphore"])?)?;
        Some(values.path(block, &["data", "ll_sem"])?.address)
    }
}

/// The limits in a service.
struct Limits<'v> {
    /// Those that wait, with the addresses of their semaphores.
    waiting: Vec<(Value, u64)>,
    /// A service whose type is not known.
    unknown: Option<&'v str>,
    /// Values that may still be looked into.
    left: u32,
}
