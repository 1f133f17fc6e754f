//! Fetches missing debug files from debuginfod servers, by build id (elfutils, *debuginfod-client-config*(7) and
//! *debuginfod*(8), "WEBAPI").
//!
//! Only who asks for it gets this: a program that profiles itself must not start to download. `curl` does the transfer. It
//! brings encryption, certificates and proxies as the system has set them up, and nothing to build. Files go to the cache
//! that elfutils, gdb and others share: `CACHE/BUILD-ID/debuginfo`. Whether a file belongs to the module is checked when it
//! is opened, as for all debug files.

use crate::elf::hex;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Where to ask for debug files, and how long.
///
/// ```
/// use stackglass_debug_info::{Debuginfod, Options};
///
/// // As the environment says: none without `DEBUGINFOD_URLS`.
/// let options = Options { debuginfod: Debuginfod::from_environment(), ..Options::default() };
/// ```
#[derive(Clone, Debug)]
pub struct Debuginfod {
    /// The servers, in the order in which they are asked: `http://…` or `https://…`.
    pub urls: Vec<String>,
    /// The folder for files.
    pub cache: PathBuf,
    /// A server that sends less than 20 kB a second for so long is given up.
    pub patience: Duration,
    /// Longest time for all files together.
    pub longest: Duration,
    /// Size of the largest file, in bytes.
    pub largest: u64,
}

/// Slower transfers are given up after [`Debuginfod::patience`]; in bytes a second.
const SLOWEST: u32 = 20_000;
/// Longest time until a server accepts a connection.
const CONNECT: Duration = Duration::from_secs(3);
/// A server is not asked again for a file that it did not have within this time, as elfutils has it.
const KNOWN_MISSING: Duration = Duration::from_secs(600);
/// Names of modules in the message.
const NAMED: usize = 4;

impl Debuginfod {
    /// Settings of the environment: `DEBUGINFOD_URLS`, `DEBUGINFOD_CACHE_PATH`, `DEBUGINFOD_TIMEOUT` (seconds, 5 if not
    /// set), `DEBUGINFOD_MAXTIME` (60) and `DEBUGINFOD_MAXSIZE` (bytes, 2 GiB). `None` without servers, without a folder,
    /// or with `STACKGLASS_DEBUGINFOD=0`.
    pub fn from_environment() -> Option<Debuginfod> {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        if text("STACKGLASS_DEBUGINFOD").is_some_and(|text| ["0", "off", "no"].contains(&&*text)) {
            return None;
        }
        let all = text("DEBUGINFOD_URLS")?;
        // Other words in the list, such as `ima:enforcing`, are settings of elfutils.
        let is_server = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
        let urls: Vec<String> = all.split_whitespace().filter(is_server).map(str::to_owned).collect();
        if urls.is_empty() {
            return None;
        }
        let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let cache = folder("DEBUGINFOD_CACHE_PATH")
            .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("debuginfod_client")))
            .or_else(|| Some(folder("HOME")?.join(".cache/debuginfod_client")))?;
        let number = |name: &str, default: u64| {
            text(name).and_then(|text| text.parse().ok()).filter(|number| *number > 0).unwrap_or(default)
        };
        Some(Debuginfod {
            urls,
            cache,
            patience: Duration::from_secs(number("DEBUGINFOD_TIMEOUT", 5)),
            longest: Duration::from_secs(number("DEBUGINFOD_MAXTIME", 60)),
            largest: number("DEBUGINFOD_MAXSIZE", 2 << 30),
        })
    }

    /// The file in the cache for a build id, which may not exist.
    pub fn cached(&self, id: &[u8]) -> PathBuf {
        self.cache.join(hex(id)).join("debuginfo")
    }

    /// Begins to ask the servers.
    pub fn session(&self) -> Session<'_> {
        let end = Instant::now() + self.longest.min(Duration::from_secs(86_400));
        Session { settings: self, end, down: vec![None; self.urls.len()], fetched: Vec::new(), bytes: 0 }
    }
}

/// The requests for one recording.
pub struct Session<'a> {
    settings: &'a Debuginfod,
    end: Instant,
    /// By server: why it is not asked any more.
    down: Vec<Option<String>>,
    /// Names of the modules whose files were fetched.
    fetched: Vec<String>,
    bytes: u64,
}

/// Result of a request to one server.
enum Answer {
    File(u64),
    Missing,
    Failed(String),
}

impl Session<'_> {
    /// Fetches the debug file for a build id, unless the cache has it. Returns whether the cache has a new file.
    pub fn fetch(&mut self, id: &[u8], module: &str) -> bool {
        let file = self.settings.cached(id);
        if id.len() < 2 || is_known(&file) {
            return false;
        }
        let mut all_miss = true;
        for index in 0..self.settings.urls.len() {
            if self.down[index].is_some() {
                all_miss = false;
                continue;
            }
            match self.ask(&self.settings.urls[index], id, &file) {
                Answer::File(bytes) => {
                    self.bytes += bytes;
                    self.fetched.push(module.to_owned());
                    return true;
                }
                Answer::Missing => {}
                Answer::Failed(why) => {
                    all_miss = false;
                    self.down[index] = Some(why);
                }
            }
        }
        if all_miss {
            // An empty file says so to elfutils and to us. Without it, the next command asks again.
            let _ = folder_of(&file).and_then(|()| private(&file));
        }
        false
    }

    fn ask(&self, url: &str, id: &[u8], file: &Path) -> Answer {
        let Debuginfod { patience, largest, .. } = *self.settings;
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Answer::Failed(format!("no time was left after {:?}", self.settings.longest));
        }
        let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64().max(0.1));
        let mut curl = Command::new("curl");
        // Settings of the user's .curlrc could change all of the below.
        curl.args(["--disable", "--silent", "--show-error", "--fail", "--location", "--compressed"]);
        curl.args(["--proto", "=http,https", "--proto-redir", "=http,https", "--max-redirs", "5"]);
        curl.args(["--user-agent", concat!("stackglass/", env!("CARGO_PKG_VERSION"))]);
        curl.args(["--connect-timeout", &seconds(CONNECT.min(left)), "--max-time", &seconds(left)]);
        curl.args(["--speed-limit", &SLOWEST.to_string()]);
        curl.args(["--speed-time", &patience.as_secs().max(1).to_string()]);
        curl.arg("--").arg(format!("{}/buildid/{}/debuginfo", url.trim_end_matches('/'), hex(id)));
        curl.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match curl.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Answer::Failed("curl is not installed".into());
            }
            Err(error) => return Answer::Failed(format!("curl does not start: {error}")),
        };
        let temporary = file.with_extension(std::process::id().to_string());
        let saved = match child.stdout.take() {
            Some(from) => save(from, &temporary, largest),
            None => Err(io::Error::other("no output")),
        };
        if saved.is_err() {
            // It may have ended already.
            let _ = child.kill();
        }
        let ended = child.wait_with_output();
        let answer = match (saved, ended) {
            (Err(error), _) => Answer::Failed(error.to_string()),
            (_, Err(error)) => Answer::Failed(error.to_string()),
            (Ok(bytes), Ok(output)) if output.status.success() => match fs::rename(&temporary, file) {
                Ok(()) => return Answer::File(bytes),
                Err(error) => Answer::Failed(error.to_string()),
            },
            (Ok(_), Ok(output)) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let last = said.trim().lines().last().unwrap_or("curl failed").to_owned();
                let is_missing = output.status.code() == Some(22) && last.ends_with(" 404");
                if is_missing { Answer::Missing } else { Answer::Failed(last) }
            }
        };
        let _ = fs::remove_file(&temporary);
        answer
    }

    /// One line that says what was fetched and what failed; `None` if the servers had nothing and worked.
    pub fn message(self) -> Option<String> {
        let failed: Vec<String> = self
            .settings
            .urls
            .iter()
            .zip(&self.down)
            .filter_map(|(url, why)| Some(format!("{url}: {}", why.as_ref()?)))
            .collect();
        let failed = match failed.is_empty() {
            true => String::new(),
            false => format!("debuginfod failed ({})", failed.join("; ")),
        };
        if self.fetched.is_empty() {
            return (!failed.is_empty()).then_some(failed);
        }
        let named = self.fetched.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match self.fetched.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let size = match self.bytes {
            bytes @ 0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
            bytes => format!("{:.1} MB", bytes as f64 / 1e6),
        };
        let also = if failed.is_empty() { failed } else { format!("; {failed}") };
        Some(format!("debug information of {named}{more} fetched by debuginfod ({size}){also}"))
    }
}

/// Whether the cache has the file, or says that no server has it.
fn is_known(file: &Path) -> bool {
    let Ok(meta) = fs::metadata(file) else { return false };
    let age = meta.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    meta.len() > 0 || age.is_some_and(|age| age < KNOWN_MISSING)
}

fn folder_of(file: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(file.parent().unwrap_or(Path::new("/")))
}

/// A new file for this user only.
fn private(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Writes all that comes to a new file, and returns its size.
fn save(from: impl Read, path: &Path, largest: u64) -> io::Result<u64> {
    let mut from = from.take(largest.saturating_add(1));
    let mut first = [0; 4096];
    let read = from.read(&mut first)?;
    if read == 0 {
        // The transfer failed. Leave no folder behind.
        return Ok(0);
    }
    folder_of(path)?;
    let mut file = private(path)?;
    file.write_all(&first[..read])?;
    let size = read as u64 + io::copy(&mut from, &mut file)?;
    match size > largest {
        true => Err(io::Error::other(format!("the file has more than {largest} bytes (DEBUGINFOD_MAXSIZE)"))),
        false => Ok(size),
    }
}
