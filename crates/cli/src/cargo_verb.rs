//! `cargo stackglass`: build with Cargo, then record the program.
//!
//! Target names and the default target follow Cargo. If the profile has no debug information, an environment variable
//! adds line tables for this build. The project is not changed.

use crate::cargo_profile;
use crate::failure::{self, Failure, Outcome};
use crate::message;
use crate::output::{Output, default_output, output_file};
use crate::record_program::{Job, record};
use crate::sampling_flags::SamplingFlags;
use cargo_metadata::TargetKind;
use clap::Args;
use stackglass_collect::launch::Program;
use std::ffi::OsString;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const EXAMPLES: &str = "\
Examples:
  cargo stackglass                          the package's program, optimised
  cargo stackglass --bin server -- --port 1 another program, with arguments
  cargo stackglass --bench parse            a benchmark
  cargo stackglass --test slow -- one_case  an integration test
  cargo stackglass --profile dev            without optimisation

The flags for sampling (--delay, --duration, -o, …) are those of `stackglass
record`.";

/// Build with Cargo, then record the program.
#[derive(Args, Debug)]
#[command(name = "stackglass", version, after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(flatten)]
    target: TargetFlags,

    /// Package to build
    #[arg(short, long, value_name = "SPEC")]
    package: Option<String>,

    /// Cargo profile
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,

    /// Features to activate, separated by commas or spaces
    #[arg(short = 'F', long, value_name = "FEATURES")]
    features: Vec<String>,

    /// Activate all features
    #[arg(long)]
    all_features: bool,

    /// Do not activate the `default` feature
    #[arg(long)]
    no_default_features: bool,

    /// Path to Cargo.toml
    #[arg(long, value_name = "PATH")]
    manifest_path: Option<PathBuf>,

    /// File for the recording [default: NAME.glass in this folder, or with the next free number: -2, -3, …]
    #[arg(short, long, value_name = "FILE", value_parser = output_file())]
    output: Option<PathBuf>,

    #[command(flatten)]
    sampling: SamplingFlags,

    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// The target to build; at most one.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct TargetFlags {
    /// Record this binary
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,
    /// Record this example
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
    /// Record this integration test
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
    /// Record this benchmark
    #[arg(long, value_name = "NAME")]
    bench: Option<String>,
}

impl TargetFlags {
    fn kind(&self) -> TargetKind {
        match self {
            TargetFlags { example: Some(_), .. } => TargetKind::Example,
            TargetFlags { test: Some(_), .. } => TargetKind::Test,
            TargetFlags { bench: Some(_), .. } => TargetKind::Bench,
            _ => TargetKind::Bin,
        }
    }
}

/// An executable that Cargo built.
struct Built {
    name: String,
    executable: PathBuf,
    package_folder: PathBuf,
}

pub(crate) fn run(flags: Flags) -> Outcome {
    let mut build = command(&flags);
    if let Some(setting) = cargo_profile::missing_line_tables(&flags.profile, flags.manifest_path.as_deref())
    {
        message::print(&format!(
            "profile {} has no debug information: building with {}={} to get names and lines",
            flags.profile, setting.variable, setting.value
        ));
        build.env(setting.variable, setting.value);
    }
    let built = run_build(build, flags.target.kind())?;
    let [built] = <[Built; 1]>::try_from(built).map_err(|built| choose(&built))?;

    // As Cargo does: programs start in the current folder, tests and benchmarks in the folder of their package.
    let test = flags.target.test.is_some() || flags.target.bench.is_some();
    let mut arguments = flags.arguments;
    if flags.target.bench.is_some() {
        arguments.insert(0, "--bench".into());
    }
    let output = flags.output.map(Output::named).unwrap_or_else(|| default_output(built.name.as_ref()));
    record(Job {
        program: Program { name: built.executable.clone().into(), path: built.executable },
        arguments,
        folder: test.then(|| built.package_folder.clone()),
        variables: vec![("CARGO_MANIFEST_DIR".into(), built.package_folder.into())],
        output,
        sampling: flags.sampling,
    })
}

/// The build command.
fn command(flags: &Flags) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let target = &flags.target;
    match (&target.bin, &target.example, &target.test, &target.bench) {
        (_, _, Some(name), _) => cargo.args(["test", "--no-run", "--test", name]),
        (_, _, _, Some(name)) => cargo.args(["bench", "--no-run", "--bench", name]),
        (_, Some(name), _, _) => cargo.args(["build", "--example", name]),
        (Some(name), ..) => cargo.args(["build", "--bin", name]),
        _ => match default_run(flags) {
            Some(name) => cargo.args(["build", "--bin", &name]),
            None => cargo.args(["build", "--bins"]),
        },
    };
    cargo.args(["--message-format=json-render-diagnostics", "--profile", &flags.profile]);
    if let Some(package) = &flags.package {
        cargo.args(["--package", package]);
    }
    for features in &flags.features {
        cargo.args(["--features", features]);
    }
    if flags.all_features {
        cargo.arg("--all-features");
    }
    if flags.no_default_features {
        cargo.arg("--no-default-features");
    }
    if let Some(path) = &flags.manifest_path {
        cargo.arg("--manifest-path").arg(path);
    }
    cargo.stdin(Stdio::null()).stdout(Stdio::piped());
    cargo
}

/// `default-run` of the package that `cargo run` would run.
fn default_run(flags: &Flags) -> Option<String> {
    let metadata = cargo_profile::metadata(flags.manifest_path.as_deref())?;
    let named = |name: &String| metadata.packages.iter().find(|package| *package.name == **name);
    let package = match &flags.package {
        Some(name) => named(name),
        None => match metadata.workspace_default_packages().as_slice() {
            [one] => Some(*one),
            _ => metadata.root_package(),
        },
    }?;
    package.default_run.clone()
}

/// Builds, and returns the executables of this kind. (Integration tests build the binaries of the package as well.)
fn run_build(mut build: Command, kind: TargetKind) -> Result<Vec<Built>, Failure> {
    let cannot = |error: std::io::Error| Failure::new(format!("cannot run cargo: {error}"));
    let mut child = build.spawn().map_err(cannot)?;
    let mut built = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for message in cargo_metadata::Message::parse_stream(BufReader::new(stdout)) {
            let cargo_metadata::Message::CompilerArtifact(artifact) = message.map_err(cannot)? else {
                continue;
            };
            if let Some(executable) = artifact.executable
                && artifact.target.kind.contains(&kind)
            {
                let manifest = artifact.manifest_path;
                built.push(Built {
                    name: artifact.target.name,
                    executable: executable.into(),
                    package_folder: manifest.parent().map(Into::into).unwrap_or_default(),
                });
            }
        }
    }
    let status = child.wait().map_err(cannot)?;
    if status.success() {
        return Ok(built);
    }
    // Cargo has printed the reason.
    Err(Failure { status: status.code().unwrap_or(failure::OWN_FAILURE), line: String::new() })
}

fn choose(built: &[Built]) -> Failure {
    if built.is_empty() {
        return Failure::new("Cargo built no program: name one with --bin, --example, --test or --bench");
    }
    let mut names: Vec<&str> = built.iter().map(|built| built.name.as_str()).collect();
    names.sort_unstable(); // Cargo lists them in the order in which they finish.
    Failure::new(format!("there are several programs: choose one with --bin ({})", names.join(", ")))
}
