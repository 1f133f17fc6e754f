//! What a page shows: a recording, a heap, the tasks of a process, or several of them.

use super::Flags;
use crate::failure::Failure;
use crate::info;
use crate::info_samples::SampleTotals;
use crate::input::{self, Input};
use crate::source_files;
use crate::view_beside::{self, Alone, SnapshotFile};
use stackglass_heap_report::HeapAnswers;
use stackglass_profile::Recording;
use stackglass_report::numbers::counted;
use stackglass_view::{Beside, Facts, Heap, Packed, Sources, TaskDump, Tasks};
use std::path::Path;

pub(super) struct Contents {
    pub(super) packed: Packed,
    /// What is in it, in words.
    pub(super) shown: String,
}

/// What is read beside the file. A recording that grows is read again and again, and this is not.
pub(super) struct Others {
    heap: Option<SnapshotFile>,
    tasks: Option<(String, TaskDump)>,
    /// The name of an earlier recording, and the recording.
    before: Option<(String, Recording)>,
}

impl Others {
    /// Reads what belongs to a file, and what the flags name.
    pub(super) fn read(path: &Path, flags: &Flags) -> Result<Others, Failure> {
        let tasks = match view_beside::alone(path) {
            Some(Alone::Tasks) => Some(path),
            _ => flags.tasks.as_deref(),
        };
        let earlier = |path: &Path| -> Result<(String, Recording), Failure> {
            Ok((view_beside::name_of(path), input::read_exactly(path)?.into_recording()?))
        };
        Ok(Others {
            heap: view_beside::heap_of(path, flags.heap.as_deref())?,
            tasks: tasks.map(view_beside::tasks_of).transpose()?,
            before: flags.against.as_deref().map(earlier).transpose()?,
        })
    }
}

impl Contents {
    /// Reads a file of any kind.
    pub(super) fn read(path: &Path, flags: &Flags) -> Result<Contents, Failure> {
        match view_beside::alone(path) {
            None => {
                let input = input::read_exactly(path)?;
                Contents::of_recording(path, input, &Others::read(path, flags)?, flags)
            }
            Some(Alone::Heap) if flags.heap.is_some() => {
                let name = path.display();
                let line =
                    format!("{name} is a heap snapshot already: name a recording, or leave out --heap");
                Err(Failure { status: 2, line })
            }
            Some(_) => {
                let title = flags.title.clone().unwrap_or_else(|| path.display().to_string());
                let others = Others::read(path, flags)?;
                Ok(Contents::new(Recording::default(), &title, None, None, Vec::new(), &others, flags))
            }
        }
    }

    /// Takes a recording that was read.
    pub(super) fn of_recording(
        path: &Path,
        input: Input,
        others: &Others,
        flags: &Flags,
    ) -> Result<Contents, Failure> {
        let title = flags.title.clone().unwrap_or_else(|| input.title());
        let recording = input.into_recording()?;
        if let Some((before, earlier)) = &others.before
            && earlier.is_timed() != recording.is_timed()
        {
            let untimed = if recording.is_timed() { before.as_str() } else { title.as_str() };
            let line = format!(
                "{untimed}: its samples have no times, and others have; compare it with `stackglass diff`"
            );
            return Err(Failure { status: 2, line });
        }
        let totals = SampleTotals::from_recording(&recording);
        let shown = match recording.is_timed() {
            true => {
                let threads = recording.threads.len() as u64;
                format!(
                    "{}, {}",
                    counted(threads, "thread", "threads"),
                    counted(totals.on_cpu, "sample", "samples")
                )
            }
            false => format!("{} without times", counted(totals.on_cpu + totals.others, "sample", "samples")),
        };
        let facts = info::facts(path, &recording)?;
        let name = path.to_string_lossy();
        let file = (!input::is_stream(path)).then_some(name.as_ref());
        Ok(Contents::new(recording, &title, file, Some(&facts), vec![shown], others, flags))
    }

    fn new(
        recording: Recording,
        title: &str,
        file: Option<&str>,
        facts: Option<&Facts>,
        mut shown: Vec<String>,
        others: &Others,
        flags: &Flags,
    ) -> Contents {
        let Others { heap, tasks, before } = others;
        let answers = heap.as_ref().map(|heap| HeapAnswers::new(&heap.graph));
        // A served page does not leave this machine.
        let embeds_sources = flags.with_source || flags.output.is_none();
        let read =
            |recording: &Recording, file: &str| source_files::Sources::from_recording(recording).read(file);
        let code = (flags.with_asm || flags.output.is_none())
            .then(|| stackglass_symbols::disassembly(&recording, &stackglass_symbols::Options::default()));
        let beside = Beside {
            file,
            heap: heap
                .as_ref()
                .zip(answers.as_ref())
                .map(|(heap, answers)| Heap { name: &heap.name, answers }),
            tasks: tasks.as_ref().map(|(name, dump)| Tasks { name, dump }),
            sources: embeds_sources.then_some(Sources { read: &read }),
            code: code.as_ref(),
            facts,
            before: before.as_ref().map(|(name, recording)| (name.as_str(), recording)),
        };
        shown.extend(before.as_ref().map(|(name, _)| format!("compared with {name}")));
        shown.extend(heap.as_ref().map(|heap| format!("the heap of {}", heap.name)));
        shown.extend(tasks.as_ref().map(|(name, _)| format!("the tasks of {name}")));
        let packed = Packed::with(recording, title, &beside);
        if flags.with_source {
            shown.push(counted(packed.source_texts() as u64, "source file", "source files"));
        }
        if flags.with_asm {
            shown.push(counted(
                packed.disassembled() as u64,
                "disassembled function",
                "disassembled functions",
            ));
        }
        Contents { packed, shown: shown.join(", ") }
    }
}
