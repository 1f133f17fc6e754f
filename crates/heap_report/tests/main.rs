//! Answers about heap graphs with known content, and reports on them. One binary, so that the tests compile soon.
mod goldens;

mod heap_graph;
mod heap_text;
mod heap_tree;
mod heap_watch;
mod maker;
