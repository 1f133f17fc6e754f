//! What is looked up before a process is stopped to copy it, and why it may not be copied.

use super::Mapping;
use super::code::BorrowedCode;
use super::error::FreezeError;
use super::inject::Borrowed;
use super::memory::ProcessMemory;
use super::page_reader::is_watched;
use stackglass_procfs::{ImageKey, Status, maps, process, threads};

/// CAP_SYS_ADMIN as a bit.
const SYS_ADMIN: u64 = 1 << 21;

/// What is looked up before the process stops.
pub(super) struct Lender {
    pid: u32,
    status: Status,
    pub(super) memory: ProcessMemory,
    pub(super) code: BorrowedCode,
    main_stack: Option<Mapping>,
    pub(super) image: Option<ImageKey>,
    can_suspend_seccomp: bool,
}

impl Lender {
    /// # Errors
    /// If the process cannot be copied: nobody may make the call, or others would see the copy.
    pub(super) fn find(pid: u32) -> Result<Lender, FreezeError> {
        Lender::with_code(pid, None)
    }

    /// With code that was found before.
    ///
    /// # Errors
    /// As [`Lender::find`].
    pub(super) fn with_code(pid: u32, code: Option<BorrowedCode>) -> Result<Lender, FreezeError> {
        let gone = || FreezeError::Gone { pid };
        let image = ImageKey::read(pid);
        let living = process::living_thread(pid).ok_or_else(gone)?;
        let main = Status::read(pid).ok_or_else(gone)?;
        let name = main.name;
        // The status of a main thread that has ended lists no features.
        let status = Status { innermost_pid: main.innermost_pid, ..Status::read(living).ok_or_else(gone)? };
        if status.has_shadow_stack {
            return Err(FreezeError::ShadowStack { pid, name });
        }
        let can_suspend_seccomp = can_suspend_seccomp();
        if !can_suspend_seccomp && every_thread_is_confined(pid) {
            return Err(FreezeError::Filtered { pid, name });
        }
        if has_other_namespace_for_children(living) {
            return Err(FreezeError::ChildNamespace { pid, name });
        }
        // Its monitor would be told of the copy, and serve it.
        if is_watched(pid) {
            return Err(FreezeError::Watched { pid, name });
        }
        let mappings = maps::read(living).map_err(FreezeError::cannot_read)?;
        let memory = ProcessMemory::open_writable(living).map_err(FreezeError::cannot_read)?;
        let code = code.or_else(|| BorrowedCode::find(&mappings, &memory));
        let code = code.ok_or_else(|| FreezeError::NoCode { pid, name: name.clone() })?;
        let main_stack = mappings.into_iter().find(|mapping| mapping.path == "[stack]");
        let status = Status { name, ..status };
        Ok(Lender { pid, status, memory, code, main_stack, image, can_suspend_seccomp })
    }

    /// What is borrowed from the process.
    pub(super) fn borrowed(&self) -> Borrowed<'_> {
        Borrowed {
            pid: self.pid,
            name: &self.status.name,
            code: self.code,
            memory: &self.memory,
            main_stack: self.main_stack.clone(),
            can_suspend_seccomp: self.can_suspend_seccomp,
            has_init: self.status.innermost_pid != 1 && process::is_in_initial_pid_namespace(self.pid),
        }
    }
}

/// Whether this process may suspend seccomp for others (`PTRACE_O_SUSPEND_SECCOMP`). In a user namespace, the kernel
/// refuses it nevertheless.
fn can_suspend_seccomp() -> bool {
    let own = Status::own();
    own.capabilities & SYS_ADMIN != 0 && !own.confined
}

/// Whether seccomp confines all threads.
fn every_thread_is_confined(pid: u32) -> bool {
    let statuses = threads::list(pid).into_iter().filter_map(Status::read);
    statuses.filter(|status| !status.has_ended()).all(|status| status.confined)
}

/// Whether children of a thread are in another pid namespace than the thread. That namespace ends with its first process: no other
/// can be created then.
fn has_other_namespace_for_children(tid: u32) -> bool {
    let namespace = |task: &str, name: &str| std::fs::read_link(format!("/proc/{task}/ns/{name}"));
    let task = tid.to_string();
    let Ok(own) = namespace(&task, "pid") else { return false };
    match namespace(&task, "pid_for_children") {
        Ok(of_children) => of_children != own,
        // There is no such file while that namespace is empty, and on kernels before 4.12.
        Err(_) => namespace("self", "pid_for_children").is_ok(),
    }
}
