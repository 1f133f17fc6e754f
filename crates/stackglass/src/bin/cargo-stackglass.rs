//! `cargo stackglass`: Cargo finds this executable by its name and passes its arguments on.

fn main() -> ! {
    std::process::exit(stackglass_cli::cargo_stackglass(std::env::args_os().collect()))
}
