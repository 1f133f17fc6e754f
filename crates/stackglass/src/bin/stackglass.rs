//! The `stackglass` command. Everything is in the library, shared with `cargo stackglass`.

fn main() -> ! {
    std::process::exit(stackglass_cli::stackglass(std::env::args_os().collect()))
}
