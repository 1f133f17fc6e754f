//! Compiles the callers written in C: without frame pointers, with line tables, as a
//! distribution would.

fn main() {
    println!("cargo:rerun-if-changed=c/sleepers.c");
    cc::Build::new()
        .file("c/sleepers.c")
        .flag("-O2")
        .flag("-g1")
        .flag("-fomit-frame-pointer")
        .flag("-fno-optimize-sibling-calls")
        .warnings(true)
        .extra_warnings(true)
        .compile("sleepers");
}
