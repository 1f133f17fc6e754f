//! The rights of a sampler inside a program, as the recording states them.

use stackglass_profile::Process;
use stackglass_wire::ImageFlags;

/// What the system may grant to a sampler, and the label of each case. The labels are counters with the value 1.
const GRANTS: [(u32, &str, &str); 5] = [
    (
        ImageFlags::SLEEP_LOOK,
        "sampler: reads in /proc/self/task where threads sleep",
        "sampler: does not know where threads sleep (/proc/self/task cannot be read)",
    ),
    (
        ImageFlags::VM_READ,
        "sampler: reads stacks with process_vm_readv",
        "sampler: reads stacks without process_vm_readv (it is forbidden)",
    ),
    (
        ImageFlags::MAP_QUERY,
        "sampler: asks the kernel for mappings (PROCMAP_QUERY)",
        "sampler: reads mappings from /proc/self/maps",
    ),
    (
        ImageFlags::TIMERS,
        "sampler: has timers of running threads, which interrupt no system call",
        "sampler: signals running threads wherever they are",
    ),
    (
        ImageFlags::REALTIME,
        "sampler: has real-time priority (SCHED_RR)",
        "sampler: has ordinary priority (SCHED_RR was not granted)",
    ),
];

/// Notes which of them `image`, the flags of a process image, has.
pub(crate) fn note(process: &mut Process, image: u32) {
    for (bit, granted, refused) in GRANTS {
        let (label, other) = if image & bit != 0 { (granted, refused) } else { (refused, granted) };
        process.counters.remove(other);
        process.counters.insert(label.to_string(), 1);
    }
}
