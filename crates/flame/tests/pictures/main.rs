//! Pixels, tags, palettes and pictures of random graphs.

mod graphs;
mod palettes;
mod pixels;
mod png_pictures;
