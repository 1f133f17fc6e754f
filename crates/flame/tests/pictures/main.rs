//! Flame graphs: their boxes, colours and bits, pages, and still pictures.

mod contrast;
mod dispatch;
mod graphs;
mod palettes;
mod pixels;
mod png_pictures;
mod pruned;
mod spans;
mod svg;
