//! What the tasks of a group wait for, below their stack: each lock and channel with the tasks that have it.

use super::TasksText;
use super::groups::TaskGroup;
use super::json::target_text;
use super::lines::{INDENT, NAMED, note};
use super::text::holders_text;
use crate::text::columns::wrap;
use crate::text::numbers::grouped;
use crate::text::style::{Line, Paint};
use stackglass_profile::task_dump::{SharedKind, TaskDump, TaskState, WaitTarget};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

/// What the tasks of a group wait for, and what holds it.
pub(super) fn write(
    text: &TasksText,
    dump: &TaskDump,
    group: &TaskGroup<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut targets: Vec<(WaitTarget, usize)> = Vec::new();
    let mut seen = HashMap::new();
    // Several branches of a task may wait for the same.
    let of_task = |task: &usize| dump.tasks[*task].waits.iter().copied().collect::<BTreeSet<_>>();
    for target in group.tasks.iter().flat_map(of_task) {
        let at = *seen.entry(target).or_insert_with(|| {
            targets.push((target, 0));
            targets.len() - 1
        });
        targets[at].1 += 1;
    }
    targets.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let lock_of = |address: u64| dump.locks.iter().find(|lock| lock.address == address);
    let is_shown = |target: &WaitTarget| match target {
        WaitTarget::Task(_) => true,
        // Servers have a notification at which all connections wait for the end.
        WaitTarget::Shared { kind: SharedKind::Notify | SharedKind::Oneshot, address } => {
            text.everything
                || lock_of(*address).is_some_and(|lock| {
                    let is_alone = lock.kind == SharedKind::Notify && lock.ends == Some(0);
                    !lock.holders.is_empty() || is_alone
                })
        }
        WaitTarget::Shared { .. } => true,
    };
    let most = if text.everything { usize::MAX } else { NAMED };
    let (shown, hidden): (Vec<_>, Vec<_>) = targets.iter().partition(|(target, _)| is_shown(target));
    for (target, count) in shown.iter().take(most) {
        let lock = match target {
            WaitTarget::Shared { address, .. } => lock_of(*address),
            WaitTarget::Task(_) => None,
        };
        let held = lock.map(|lock| holders_text(dump, lock)).unwrap_or_default();
        let all = lock.map_or(0, |lock| lock.waiters.len());
        let waiters = match all {
            _ if lock.is_none() || all == *count => String::new(),
            _ => format!(" ({} of its {} waiters)", grouped(*count as u64), grouped(all as u64)),
        };
        let of_target = |task: &&usize| dump.tasks[**task].waits.contains(target);
        let subject = match group.tasks.len() {
            all if all == *count => "waits".to_owned(),
            _ if *count == 1 => {
                let id = group.tasks.iter().find(of_target).map(|task| dump.tasks[*task].id);
                format!("task {} waits", id.unwrap_or_default())
            }
            all => format!("{} of {} tasks wait", grouped(*count as u64), grouped(all as u64)),
        };
        write_wait(text, &format!("{subject} for {}{held}{waiters}", target_text(*target)), out)?;
    }
    if shown.len() > most {
        let more = shown.len() - most;
        note(text, &format!("… and for {more} more: {} them", text.rest), out)?;
    }
    // The request that no task can answer is likely the one in question.
    let lost = hidden.iter().filter(|(target, _)| {
        matches!(target, WaitTarget::Shared { kind: SharedKind::Oneshot, .. })
            && group.state == TaskState::Waiting
    });
    match &lost.collect::<Vec<_>>()[..] {
        [] => Ok(()),
        [(target, _)] if group.tasks.len() == 1 => {
            let sentence =
                format!("waits for {}, whose sender is in no task that is read", target_text(*target));
            write_wait(text, &sentence, out)
        }
        lost => {
            let (count, all) = (lost.len() as u64, group.tasks.len() as u64);
            let channels = if count == 1 {
                "a oneshot channel whose sender is"
            } else {
                "oneshot channels whose senders are"
            };
            let verb = if count == 1 { "waits" } else { "wait" };
            let sentence = format!(
                "{} of {} tasks {verb} for {channels} in no task that is read",
                grouped(count),
                grouped(all)
            );
            write_wait(text, &sentence, out)
        }
    }
}

/// What tasks wait for, in bold below their stack.
fn write_wait(text: &TasksText, sentence: &str, out: &mut dyn Write) -> io::Result<()> {
    let room = text.cols.saturating_sub(INDENT + 2);
    for (number, part) in wrap(sentence, room).into_iter().enumerate() {
        let indent = if number == 0 { INDENT } else { INDENT + 2 };
        Line::from_text(Paint::Bold, format!("{:indent$}{part}", "")).write(text.style, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::task_dump::{DumpedTask, Holder, Lock};

    /// Requests that wait for one channel each. Of some, a task has the sender.
    fn requests(held: &[bool]) -> String {
        let kind = SharedKind::Oneshot;
        let mut dump = TaskDump::default();
        for (index, is_held) in held.iter().enumerate() {
            let address = 0x1000 + index as u64;
            let (waits, name) = (vec![WaitTarget::Shared { kind, address }], "app::ask".into());
            dump.tasks.push(DumpedTask { id: 10 + index as u64, name, waits, ..DumpedTask::default() });
            let holder = Holder { task: held.len(), is_certain: true, ..Holder::default() };
            let holders = if *is_held { vec![holder] } else { Vec::new() };
            dump.locks.push(Lock { kind, address, holders, waiters: vec![index], arrived: None, ends: None });
        }
        dump.tasks.push(DumpedTask { id: 5, name: "app::answer".into(), ..DumpedTask::default() });
        let mut out = Vec::new();
        TasksText::new().cols(120).groups(&dump, &mut out).expect("memory can be written");
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn each_wait_says_which_tasks_it_is_of() {
        let text = requests(&[true, false]);
        assert!(
            text.contains("task 10 waits for oneshot channel 0x1000, whose sender is in task 5"),
            "{text}"
        );
        let lost = "1 of 2 tasks waits for a oneshot channel whose sender is in no task that is read";
        assert!(text.contains(lost), "{text}");
    }

    #[test]
    fn requests_that_no_task_answers_are_counted_apart() {
        let text = requests(&[true, true, true, true, true, false, false]);
        assert!(text.contains("… and for 1 more"), "{text}");
        let lost = "2 of 7 tasks wait for oneshot channels whose senders are in no task that is read";
        assert!(text.contains(lost), "{text}");
    }

    #[test]
    fn one_request_without_an_answer_is_named() {
        let text = requests(&[false]);
        let lost = "waits for oneshot channel 0x1000, whose sender is in no task that is read";
        assert!(text.contains(lost), "{text}");
    }
}
