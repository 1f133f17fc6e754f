//! Compiles the callers in C as distributions do: without frame pointers, with line tables.

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
