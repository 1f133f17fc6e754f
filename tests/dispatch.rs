//! The dispatch bit of flame graphs, on a program with known calls.

use stackglass_flame::{Flamegraph, Status};
use std::collections::BTreeMap;
use whole_programs::{Language, Record, host};

/// How each function is called, and whether its callee is chosen at run time.
const TRUTH: [(&str, bool); 7] = [
    ("by_generic", false),
    ("by_name", false),
    ("by_pointer", true),
    ("by_vtable", true),
    ("devirtualised", false),
    ("spin", false),
    ("{closure}", true),
];

/// Their callers.
const CALLERS: [&str; 6] =
    ["call_boxed", "call_direct", "call_generic", "call_pointer", "call_seen", "call_virtual"];

#[test]
fn calls_through_vtables_and_pointers_have_the_bit() {
    let outcome = Record::new(host("dispatch", Language::Rust)).run();
    outcome.program_did("", 0);
    let graph = Flamegraph::new().graph(&outcome.recording()).unwrap().graph.unwrap();
    let parents = graph.parents();
    let name = |number: u32| {
        let func = &graph.frame(&graph.nodes()[number as usize]).func;
        func.rsplit("::").next().unwrap().to_owned()
    };
    // Below the callers, the runtime and printing have other dispatch.
    let mut seen: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for number in 1..graph.nodes().len() as u32 {
        let above =
            std::iter::successors(Some(parents[number as usize]), |n| (*n > 0).then(|| parents[*n as usize]));
        if above.into_iter().any(|caller| CALLERS.contains(&&*name(caller))) {
            // Inlined calls are no calls.
            let node = &graph.nodes()[number as usize];
            if !graph.frame(node).inlined {
                seen.entry(name(number)).or_default().push(node.status.any(Status::DISPATCH));
            }
        }
    }
    let expected: Vec<(&str, bool)> = TRUTH.to_vec();
    let found: Vec<(&str, bool)> = seen
        .iter()
        .map(|(name, bits)| {
            assert!(bits.iter().all(|bit| *bit == bits[0]), "{name} is reached in one way: {seen:?}");
            (&**name, bits[0])
        })
        .collect();
    assert_eq!(found, expected);
}
