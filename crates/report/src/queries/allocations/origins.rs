//! Where allocations come from: the rows of tables to which they belong, and the stacks that views show of them.

use super::AllocationKey;
use super::allocator_frames::Outside;
use super::site::Sites;
use foldhash::HashMap;
use stackglass_profile::frame::file_name;
use stackglass_profile::symbols::is_known_type;
use stackglass_profile::{
    AllocationGroup, ProcessIndex, Recording, SizeClass, SliceKey, StackId, ThreadNumber, UNKNOWN_TYPE,
};

/// What rows and stacks depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AllocationSource {
    /// The stack of the allocation.
    pub stack: StackId,
    /// The allocating thread, 0 if it is unknown.
    pub thread: ThreadNumber,
    /// The process of that thread.
    pub process: ProcessIndex,
    /// Class of the requested sizes.
    pub size_class: SizeClass,
}

impl From<&AllocationGroup> for AllocationSource {
    fn from(group: &AllocationGroup) -> AllocationSource {
        let AllocationGroup { stack, thread, process, size_class, .. } = *group;
        AllocationSource { stack, thread, process, size_class }
    }
}

impl From<&SliceKey> for AllocationSource {
    fn from(key: &SliceKey) -> AllocationSource {
        let SliceKey { stack, thread, process, size_class, .. } = *key;
        AllocationSource { stack, thread, process, size_class }
    }
}

/// Where an allocation comes from. Names are numbers of [`AllocationOrigins::names`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocationOrigin {
    /// The stack that views show: without the frames of an allocator that the program itself provides.
    pub shown: StackId,
    /// The name of the row to which it belongs, in the order of [`AllocationKey::ALL`].
    pub rows: [u32; AllocationKey::ALL.len()],
    /// The function of the row by [`AllocationKey::Line`].
    pub line_function: u32,
    /// The number of its site.
    pub site: u32,
    /// Whether its type is known.
    pub has_type: bool,
}

/// Where the allocations of a recording come from, as tables of allocations and views of stacks show it.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::allocation_queries::AllocationOrigins;
///
/// let origins = AllocationOrigins::new(&mut Recording::default(), &[]);
/// assert!(origins.list.is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllocationOrigins {
    /// One for each source.
    pub list: Vec<AllocationOrigin>,
    /// Names of rows and functions, never cut. They are untrusted text.
    pub names: Vec<String>,
}

impl AllocationOrigins {
    /// Those of these sources. Stacks that are shown become stacks of the recording.
    pub fn new(recording: &mut Recording, sources: &[AllocationSource]) -> AllocationOrigins {
        let mut outside = Outside::from_recording(recording);
        let shown: Vec<StackId> =
            sources.iter().map(|source| outside.stack(recording, source.stack)).collect();
        let mut sites = Sites::new(recording);
        let mut rows = RowNames::new(recording, &mut sites);
        let mut numbers: HashMap<String, u32> = HashMap::default();
        let mut number = |name: String| {
            let next = numbers.len() as u32;
            *numbers.entry(name).or_insert(next)
        };
        let origin = |(source, shown): (&AllocationSource, StackId)| AllocationOrigin {
            shown,
            rows: std::array::from_fn(|by| number(rows.of(AllocationKey::ALL[by], source).0)),
            line_function: number(rows.line_function(source.stack)),
            site: rows.site(source.stack),
            has_type: has_type(recording, source.stack),
        };
        let list = sources.iter().zip(shown).map(origin).collect();
        let mut names: Vec<(String, u32)> = numbers.into_iter().collect();
        names.sort_by_key(|(_, number)| *number);
        AllocationOrigins { list, names: names.into_iter().map(|(name, _)| name).collect() }
    }
}

/// Whether the type of the blocks of a stack is known.
pub(super) fn has_type(recording: &Recording, stack: StackId) -> bool {
    recording.symbols.allocated_type(stack).is_some_and(|name| is_known_type(name))
}

/// Names of the rows to which allocations belong.
pub(super) struct RowNames<'r, 's, 'a> {
    recording: &'r Recording,
    sites: &'s mut Sites<'a>,
    /// How many threads have a label.
    labels: Option<HashMap<String, u32>>,
}

impl<'r, 's, 'a> RowNames<'r, 's, 'a> {
    pub(super) fn new(recording: &'r Recording, sites: &'s mut Sites<'a>) -> RowNames<'r, 's, 'a> {
        RowNames { recording, sites, labels: None }
    }

    /// The name of the row of allocations, and the number of the site or line that the row is about.
    pub(super) fn of(&mut self, by: AllocationKey, source: &AllocationSource) -> (String, u32) {
        let of_stack = self.sites.of(source.stack);
        let number = if by == AllocationKey::Line { of_stack.own } else { of_stack.site };
        let site = &self.sites.list[number as usize];
        let name = match by {
            AllocationKey::Type => self
                .recording
                .symbols
                .allocated_type(source.stack)
                .map_or(UNKNOWN_TYPE, |name| name)
                .to_owned(),
            AllocationKey::Site | AllocationKey::Line => site.location(),
            AllocationKey::Function => site.func.to_string(),
            AllocationKey::Crate => match &*site.krate {
                "" => "[unknown]".to_owned(),
                krate => krate.to_owned(),
            },
            AllocationKey::Thread => self.thread(source.thread),
            AllocationKey::Process => process_name(self.recording, source.process),
            AllocationKey::Size => {
                let sizes = source.size_class.sizes();
                match sizes.start() == sizes.end() {
                    true => sizes.start().to_string(),
                    false => format!("{}-{}", sizes.start(), sizes.end()),
                }
            }
        };
        (name, number)
    }

    /// The number of the site of a stack.
    pub(super) fn site(&mut self, stack: StackId) -> u32 {
        self.sites.of(stack).site
    }

    fn line_function(&mut self, stack: StackId) -> String {
        let own = self.sites.of(stack).own;
        self.sites.list[own as usize].func.to_string()
    }

    /// A thread by its label. Threads with the same label are distinguished by their numbers.
    fn thread(&mut self, number: ThreadNumber) -> String {
        let recording = self.recording;
        let labels = self.labels.get_or_insert_with(|| {
            let mut labels: HashMap<String, u32> = HashMap::default();
            for number in 1..=recording.threads.len() as u32 {
                *labels.entry(recording.thread_label(number.into())).or_default() += 1;
            }
            labels
        });
        let label = recording.thread_label(number);
        match labels.get(&label) {
            Some(2..) => format!("{label} ({})", number.0),
            _ => label,
        }
    }
}

/// A process by its program and number: `server (1234)`.
pub(crate) fn process_name(recording: &Recording, process: ProcessIndex) -> String {
    match recording.processes.get(process.0 as usize) {
        Some(process) => format!("{} ({})", file_name(&process.exe), process.pid),
        None => "[unknown]".to_owned(),
    }
}
