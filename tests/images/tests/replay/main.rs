//! What is read of stored images is what their programs say of themselves, and damaged images are harmless.
//!
//! The same functions read them that read a frozen process: [`stackglass_inspect::heap::write_graph`] and
//! [`stackglass_inspect::tasks::of_image`].

mod graph;
mod heap;
mod hostile;
mod programs;
mod record;
mod tasks;
