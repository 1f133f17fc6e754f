//! `stackglass top PID` and `top -- PROGRAM`: where a program spends its time now, live.

mod model;
mod view;

use crate::Outcome;
use crate::arguments::{delay, output_file, process_id};
use crate::driver::DriverFlag;
use crate::failure::Failure;
use crate::record::default_output;
use clap::Args;
use model::Model;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use stackglass_collect::Recorder;
use stackglass_collect::attach::{Attached, Driver, Stopped, access, process};
use stackglass_profile::{About, Nanos};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use view::{Screen, Tab};

/// Time between two drawings.
const REFRESH: Duration = Duration::from_secs(1);
/// Longest wait for a key, so that streams are drained.
const PATIENCE: Duration = Duration::from_millis(50);
/// Words that the recording behind `s` may take; it begins anew when it is full.
const WORDS: u64 = 20_000_000;

const EXAMPLES: &str = "\
Examples:
  stackglass top 1234             a program that runs
  stackglass top -- ./server      start one; its output is not shown, and it
                                  ends with the view

Keys: up and down choose, enter shows callers and callees, / filters, p
pauses, s saves a recording, ? helps, q leaves.";

/// Watch where a program spends its time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id, required_unless_present = "command")]
    pid: Option<u32>,

    /// Time between two looks at each thread (100us to 1h)
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = delay)]
    delay: Duration,

    #[command(flatten)]
    driver: DriverFlag,

    /// File that the key s saves to [default: PROGRAM.glass in this folder]
    #[arg(short, long, value_name = "FILE", value_parser = output_file())]
    output: Option<PathBuf>,

    /// Program to run, and its arguments.
    #[arg(last = true, conflicts_with = "pid", value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::new("top needs a terminal; `stackglass peek PID` writes to a file or a pipe"));
    }
    let started = flags.command.split_first().map(|(name, arguments)| start(name, arguments)).transpose()?;
    let pid = match &started {
        Some(Started(Some(child))) => child.id(),
        _ => access::process_of(flags.pid.unwrap_or_default()),
    };
    let attached = Attached::begin(pid, flags.delay, flags.driver.asked()).map_err(Failure::new)?;
    let executable = process::executable(pid);
    let output = flags.output.clone().unwrap_or_else(|| default_output(&executable));
    let name = executable.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let driver = match attached.choice().driver {
        Driver::Ptrace => "ptrace",
        Driver::Perf => "perf",
    };
    let head = format!("{name} {pid}  by {driver}");
    let mut top = Top::new(attached, pid, flags.delay, output, head);
    let mut terminal = ratatui::try_init()?;
    let result = top.watch(&mut terminal);
    ratatui::restore();
    result?;
    // Told where it can be read: the screen is back to what it was.
    if let Some(why) = top.attached.stopped() {
        let line = match why {
            Stopped::Gone => format!("process {pid} has ended"),
            Stopped::Locked(why) => why,
        };
        crate::failure::say(&line);
    }
    if let (Some(mut started), Some(Stopped::Gone)) = (started, top.attached.stopped()) {
        started.has_ended();
    }
    Ok(0)
}

/// A program that ends with us.
struct Started(Option<Child>);

impl Started {
    /// Its id may be another program's by now.
    fn has_ended(&mut self) {
        self.0 = None;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(name: &OsString, arguments: &[OsString]) -> Result<Started, Failure> {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| Failure {
        status: if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 },
        line: format!("{}: {error}", name.to_string_lossy()),
    })?;
    Ok(Started(Some(child)))
}

struct Top {
    attached: Attached,
    recorder: Recorder,
    model: Model,
    screen: Screen,
    output: PathBuf,
    /// Samples before this one were taken up.
    seen: usize,
    refreshed: Instant,
}

impl Top {
    fn new(attached: Attached, pid: u32, delay: Duration, output: PathBuf, head: String) -> Top {
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let about = About {
            command: process::arguments(pid),
            started: started.as_nanos() as u64,
            start: Nanos(Attached::now()),
            delay: Nanos(delay.as_nanos() as u64),
            capacity: WORDS,
            writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
            ..About::default()
        };
        Top {
            attached,
            recorder: Recorder::new(about),
            model: Model::default(),
            screen: Screen { head, ..Screen::default() },
            output,
            seen: 0,
            refreshed: Instant::now(),
        }
    }

    /// Until somebody leaves or the process ends.
    fn watch(&mut self, terminal: &mut ratatui::DefaultTerminal) -> std::io::Result<()> {
        // The first figures come soon.
        let mut refresh = REFRESH / 4;
        terminal.draw(|frame| self.screen.draw(&self.model, frame))?;
        loop {
            self.attached.drain(&mut self.recorder);
            if self.refreshed.elapsed() >= refresh {
                self.refresh();
                refresh = REFRESH;
                terminal.draw(|frame| self.screen.draw(&self.model, frame))?;
            }
            if self.attached.stopped().is_some() {
                return Ok(());
            }
            if event::poll(PATIENCE)? {
                if let Event::Key(key) = event::read()?
                    && key.kind != KeyEventKind::Release
                    && self.key(key)
                {
                    return Ok(());
                }
                terminal.draw(|frame| self.screen.draw(&self.model, frame))?;
            }
        }
    }

    /// Takes up what has come since the last time.
    fn refresh(&mut self) {
        let wall = self.refreshed.elapsed().as_nanos() as u64;
        self.refreshed = Instant::now();
        // What grows from here on is the next time's.
        self.recorder.settle();
        if !self.screen.paused {
            self.model.take(self.recorder.recording(), self.seen, wall);
        }
        self.seen = self.recorder.recording().samples.len();
        if self.recorder.is_full() {
            let before = self.recorder.clear_samples();
            self.attached.forget_stacks(&before, &mut self.recorder);
            self.recorder.about_mut().start = Nanos(Attached::now());
            self.seen = 0;
        }
    }

    /// True when it is the end.
    fn key(&mut self, key: KeyEvent) -> bool {
        let screen = &mut self.screen;
        screen.message.clear();
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if screen.typing {
            match key.code {
                KeyCode::Enter => screen.typing = false,
                KeyCode::Esc => {
                    screen.typing = false;
                    screen.filter.clear();
                }
                KeyCode::Backspace => drop(screen.filter.pop()),
                KeyCode::Char(c) => screen.filter.push(c),
                _ => {}
            }
            return false;
        }
        if std::mem::take(&mut screen.help) {
            return false;
        }
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('?' | 'h') => screen.help = true,
            KeyCode::Char('/') => screen.typing = true,
            KeyCode::Char('p' | ' ') => screen.paused = !screen.paused,
            KeyCode::Char('s') => self.save(),
            KeyCode::Char('1') => screen.show(Tab::Functions),
            KeyCode::Char('2') => screen.show(Tab::Lines),
            KeyCode::Char('3') => screen.show(Tab::Threads),
            KeyCode::Tab => screen.show(match screen.tab {
                Tab::Functions => Tab::Lines,
                Tab::Lines => Tab::Threads,
                Tab::Threads => Tab::Functions,
            }),
            KeyCode::Up | KeyCode::Char('k') => screen.selected = screen.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => screen.selected += 1,
            KeyCode::PageUp => screen.selected = screen.selected.saturating_sub(10),
            KeyCode::PageDown => screen.selected += 10,
            KeyCode::Home => screen.selected = 0,
            KeyCode::Enter => self.focus(),
            KeyCode::Esc | KeyCode::Backspace if screen.focus.is_some() => screen.focus = None,
            KeyCode::Esc | KeyCode::Backspace => screen.filter.clear(),
            _ => {}
        }
        false
    }

    /// Shows callers and callees of the chosen function.
    fn focus(&mut self) {
        let screen = &mut self.screen;
        let chosen = match (screen.focus, screen.tab) {
            (None, Tab::Lines) => None,
            (None, Tab::Threads) => {
                self.model.threads().get(screen.selected).and_then(|thread| thread.hottest)
            }
            _ => screen.rows(&self.model).get(screen.selected).map(|row| row.id),
        };
        if let Some(function) = chosen {
            (screen.focus, screen.selected) = (Some(function), 0);
            screen.filter.clear();
        }
    }

    /// Writes all that was seen to a file.
    fn save(&mut self) {
        let mut recording = self.recorder.recording().clone();
        recording.about.wall = Nanos(Attached::now().saturating_sub(recording.about.start.0));
        recording.about.end = Some(stackglass_profile::End::Running);
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
        self.screen.message = match stackglass_files::write(&self.output, &recording) {
            Ok(_) => format!("saved to {}", self.output.display()),
            Err(error) => error.to_string(),
        };
    }
}

impl Screen {
    fn show(&mut self, tab: Tab) {
        (self.tab, self.focus, self.selected) = (tab, None, 0);
    }
}
