//! Decides the type of one stack: see [`rules`](super::rules) for which frame decides, and why.

use super::display;
use super::rules::{Family, Role};

/// A frame of an allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Layer {
    /// Allocates for its caller.
    Transparent,
    /// A function of a container.
    Container(Container),
    /// Any other function.
    Other,
    /// The type is known without looking further.
    Known(Decision),
}

/// What a stack allocates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Decision {
    /// The type as a programmer writes it.
    pub name: String,
    /// What the block contains; `None` if only its container is known.
    pub contents: Option<Contents>,
}

/// What a block contains, in names of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// What the block is.
    pub family: Family,
    /// The type of an element, value, slot or entry, as the family says.
    pub a_type: String,
}

/// A function of a container on its own block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Container {
    pub family: Family,
    pub role: Role,
    /// Whether it allocates for this container alone, even if inlined calls are not known.
    pub alone: bool,
    /// The type in the file, if the name has it.
    pub a_type: Option<String>,
}

/// The frames at a location, innermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub layers: Vec<Layer>,
    /// Whether inlined calls are known.
    pub complete: bool,
    /// Whether other functions have the same code.
    pub folded: bool,
}

/// The type of a block allocated at these places, innermost first. `None` if it is unknown.
pub(crate) fn decide<'place>(places: impl Iterator<Item = &'place Place>) -> Option<Decision> {
    let mut frames = places.flat_map(|place| {
        let last = place.layers.len().saturating_sub(1);
        let layers = place.layers.iter().enumerate();
        layers.map(move |(at, layer)| Frame { layer, place, outermost: at == last })
    });
    let mut now = frames.find(|frame| *frame.layer != Layer::Transparent)?;
    let mut container = match now.layer {
        Layer::Container(container) => container,
        Layer::Known(decision) => return Some(decision.clone()),
        Layer::Transparent | Layer::Other => return None,
    };
    if !container.alone && !now.place.complete {
        return None;
    }
    let family = container.family;
    let mut decided = container.a_type.as_deref();
    loop {
        // Without a name for the function around, or with several, only its caller is evidence.
        let next = frames.next();
        let crosses = now.outermost;
        let caller = next.as_ref().and_then(|next| match next.layer {
            Layer::Container(caller) if is_own_call(container, caller, next.place) => Some(caller),
            _ => None,
        });
        match (caller, next) {
            (Some(caller), Some(next)) => {
                // Inside of one function, all names are true; the innermost is the most exact.
                if (crosses || decided.is_none()) && caller.a_type.is_some() {
                    decided = caller.a_type.as_deref();
                } else if crosses && now.place.folded {
                    decided = None;
                }
                (now, container) = (next, caller);
            }
            _ => {
                if now.place.folded {
                    decided = None;
                }
                break;
            }
        }
    }
    Some(match decided {
        Some(a_type) => {
            let contents = Contents { family, a_type: a_type.to_owned() };
            Decision { name: display::block(family, a_type), contents: Some(contents) }
        }
        None => Decision { name: display::container(family).to_owned(), contents: None },
    })
}

#[derive(Clone, Copy)]
struct Frame<'place> {
    layer: &'place Layer,
    place: &'place Place,
    /// Whether it is the function with the code, not an inlined call.
    outermost: bool,
}

/// Whether a direct call is on the caller's own block.
fn is_own_call(callee: &Container, caller: &Container, place: &Place) -> bool {
    callee.role == Role::Closed
        && callee.family == caller.family
        && (caller.role == Role::Closed || place.complete)
}
