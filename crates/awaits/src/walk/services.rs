//! Services of `tower` that are not ready: which limit a request waits for before its handler is called.
//!
//! A service is no future, but `Oneshot` polls it until it is ready. Only services that are known to ask the one inside first are
//! followed. `ConcurrencyLimit` waits for its semaphore if it has no permit, but has a future that gets one. It makes this future at
//! the first poll that finds no free permit; without it, nothing is known.

use super::Walk;
use super::{Place, lost};
use crate::names;
use crate::values::Value;
use stackglass_layouts::Shape;
use stackglass_profile::runtimes::{is_generic, tower};
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, SharedKind, WaitTarget};

/// Deepest nesting of services.
const DEEPEST: u32 = 64;

/// Whether this is the future that waits for a service, and then for its response.
pub(super) fn is_oneshot(name: &str) -> bool {
    is_generic(name, tower::ONESHOT)
}

impl Walk<'_, '_> {
    /// The service for which a `Oneshot` waits, if it was not called yet.
    pub(super) fn not_ready(&self, oneshot: Value) -> Option<Value> {
        let values = self.values();
        let state = values.field(oneshot, "state")?;
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
        let mut service = service;
        for _ in 0..DEEPEST {
            let name = self.values().name(service);
            if is_generic(name, tower::CONCURRENCY_LIMIT) {
                match self.limit(service) {
                    Limit::Semaphore(address) => {
                        let kind = SharedKind::Semaphore;
                        self.waits.borrow_mut().push(WaitTarget::Shared { kind, address });
                        frame.children.push(self.service_frame(service));
                        break;
                    }
                    Limit::Passed => {}
                    Limit::Unknown => break,
                }
            }
            match self.inner_service(service) {
                Some(Ok(inner)) => service = inner,
                Some(Err(name)) => {
                    frame.children.push(lost(name, "its type is not in the debug information"));
                    break;
                }
                None => break,
            }
        }
        out.push(frame);
    }

    fn service_frame(&self, value: Value) -> AwaitFrame {
        let function = names::without_arguments(self.values().name(value)).into();
        AwaitFrame { function, point: AwaitPoint::Leaf, children: Vec::new(), is_race: false }
    }

    /// The service that this one asks first whether it is ready. The name of a `dyn` type if that is not known.
    fn inner_service(&self, service: Value) -> Option<Result<Value, &str>> {
        let values = self.values();
        let layout = values.layout(service.type_id);
        let name = &*layout.name;
        let Shape::Struct(fields) = &layout.shape else { return None };
        if tower::BOXED.iter().any(|path| is_generic(name, path)) {
            return service.part(fields.iter().find(|field| values.layout(field.type_id).size > 0)?).map(Ok);
        }
        if name.starts_with("alloc::boxed::Box<dyn ") || name.starts_with("alloc::boxed::Box<(dyn ") {
            return Some(self.walker.dynamic(service).ok_or(name));
        }
        let asks = tower::ASKING.iter().any(|path| is_generic(name, path));
        values.field(service, "inner").filter(|_| asks).map(Ok)
    }

    /// What a concurrency limit waits for.
    fn limit(&self, service: Value) -> Limit {
        let values = self.values();
        let variant = |value: Option<Value>| Some(&*values.active(value?)?.1.name);
        let future = values.path(service, &["semaphore", "permit_fut"]);
        match (variant(values.field(service, "permit")), variant(future)) {
            (Some("Some"), _) => Limit::Passed,
            (Some("None"), Some("Some")) => {
                let block = values.path(service, &["semaphore", "semaphore"]);
                let semaphore = block.and_then(|arc| values.path(values.target(arc)?, &["data", "ll_sem"]));
                semaphore.map_or(Limit::Unknown, |semaphore| Limit::Semaphore(semaphore.address))
            }
            _ => Limit::Unknown,
        }
    }
}

/// What a concurrency limit waits for.
enum Limit {
    /// The semaphore at this address.
    Semaphore(u64),
    /// It has its permit, and asks the service inside.
    Passed,
    Unknown,
}
