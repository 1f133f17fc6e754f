//! Which samples a tree of calls counts.

use crate::made_up;
use stackglass_profile::{Nanos, State};
use stackglass_report::CallTrees;
use stackglass_report::call_tree::{Options, StateFilter};

#[test]
fn waiting_for_a_processor_is_no_time_on_it() {
    let mut maker = made_up::Maker::new(&["demo"]);
    let process = maker.process("/bin/demo", &["demo"]);
    let thread = maker.thread(process, "demo");
    for (state, millis) in [(State::Awake, 30), (State::Waiting, 20), (State::Asleep, 7), (State::Task, 5)] {
        let stack = maker.stack("demo! main main.rs:1");
        maker.raw_sample(thread, stack, state, Nanos(millis * 1_000_000), 1, None);
    }
    let trees = CallTrees::new(&maker.recording).unwrap();
    for (moments, expected) in [
        (StateFilter::All, 62),
        (StateFilter::Awake, 35),
        (StateFilter::Asleep, 7),
        (StateFilter::NotOnCpu, 27),
    ] {
        let tree = trees.tree(&Options { moments, ..Options::default() }).unwrap();
        assert_eq!(tree.count(tree.children(0)[0]), expected, "{moments:?}");
        let counts: u64 = trees.counts(moments).iter().map(|counted| counted.count).sum();
        assert_eq!(counts, expected, "{moments:?}");
    }
}
