//! Snapshots of other programs, and damaged ones.

use stackglass_files::heapsnapshot::read;
use stackglass_profile::heap_graph::{HeapGraph, NodeIndex};
use std::path::Path;

fn read_text(text: &str) -> Result<HeapGraph, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.heapsnapshot");
    std::fs::write(&path, text).unwrap();
    read(&path).map_err(|error| {
        let error = error.to_string();
        assert!(error.starts_with(path.to_str().unwrap()), "{error}");
        error.replace(&path.display().to_string(), "FILE")
    })
}

/// Names and sizes of the nodes, and their edges.
pub fn shown(graph: &HeapGraph) -> Vec<String> {
    let nodes = (0..graph.len() as u32).map(NodeIndex);
    nodes
        .map(|node| {
            let at = node.0 as usize;
            let edges = graph.edges(node).map(|edge| {
                let kind = &*graph.edge_kinds[usize::from(edge.kind)];
                let label = match kind {
                    "element" | "hidden" => edge.name_or_index.to_string(),
                    _ => graph.strings[edge.name_or_index as usize].to_string(),
                };
                format!(" -{kind} {label}-> {}", edge.to.0)
            });
            let (kind, size) = (&graph.node_kinds[usize::from(graph.kinds[at])], graph.self_sizes.get(at));
            format!("{kind} {:?} {size}{}", graph.name(node), edges.collect::<String>())
        })
        .collect()
}

/// As Chrome writes it, with allocation traces; an older one has fewer fields.
pub const V8: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],"trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],"trace_node_fields":["id","function_info_index","count","size","children"],"sample_fields":["timestamp_us","last_assigned_id"],"location_fields":["object_index","script_id","line","column"]},"node_count":3,"edge_count":3,"trace_function_count":1,"extra_native_bytes":-5},
"nodes":[9,0,1,0,2,0,0
,3,1,3,24,1,7,1
,2,2,5,4294967296,0,0,2
],
"edges":[1,1,7
,5,1,14
,2,3,14
],
"trace_function_infos":[0,1,2,3,-1,-1],
"trace_tree":[1,0,0,0,[2,0,1,24,[]]],
"samples":[0,5,1.5e3,9],
"locations":[7,1,2,3
],
"strings":["","Window / \u00e9\ud83d\ude00\n\"","text <\ud800>","name"]}
"#;

#[test]
fn a_snapshot_of_v8() {
    let graph = read_text(V8).unwrap();
    assert_eq!(
        shown(&graph),
        [
            "synthetic \"\" 0 -element 1-> 1 -shortcut Window / é😀\n\"-> 2",
            "object \"Window / é😀\\n\\\"\" 24 -property name-> 2",
            "string \"text <\u{fffd}>\" 4294967296"
        ]
    );
}

#[test]
fn fewer_fields_in_another_order_and_the_root_at_the_end() {
    let text = r#" { "snapshot" : {"node_count":3, "edge_count":2, "root_index":10, "meta":{
        "edge_fields":["to_node","type","name_or_index"], "edge_types":["node",["weak","property"],"x"],
        "node_types":["number","string",["Main.Foo","synthetic"],"number","number"],
        "node_fields":["edge_count","name","type","id","self_size"]}},
        "unknown": {"a":[[[{"b":"]"}]]], "c":null},
        "nodes":[ 0,1,0,2,16, 1,2,0,4,8, 1,0,1,6,0 ], "edges":[0,1,1, 5,1,2],
        "strings":["root","Foo","Bar"] } "#;
    assert_eq!(
        shown(&read_text(text).unwrap()),
        [
            "synthetic \"root\" 0 -property Bar-> 1",
            "Main.Foo \"Bar\" 8 -property Foo-> 2",
            "Main.Foo \"Foo\" 16"
        ]
    );
}

#[test]
fn kinds_of_julia() {
    let kinds: Vec<String> = (0..300).map(|kind| format!("\"T{kind}\"")).collect();
    let text = V8
        .replace("\"hidden\",\"array\",\"string\",", &format!("{},", kinds.join(",")))
        .replace("[9,0,1,0", "[306,0,1,0")
        .replace(",3,1,3,24", ",299,1,3,24");
    let graph = read_text(&text).unwrap();
    assert_eq!(shown(&graph)[1], "T299 \"Window / é😀\\n\\\"\" 24 -property name-> 2");
    assert!(shown(&graph)[0].starts_with("synthetic"));
}

#[test]
fn damaged_snapshots_are_refused_with_the_place() {
    let cases = [
        ("", "FILE is damaged at byte 0: the file ends too early: it is truncated"),
        ("hello", "FILE: no heap snapshot: it does not begin with \"{\""),
        ("{}", "FILE: no heap snapshot, or truncated: there is no \"snapshot\""),
        ("{\"snapshot\":{}}", "\"snapshot\" has no node_count or no edge_count"),
    ];
    for (text, message) in cases {
        let error = read_text(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
    let changes = [
        ("\"node_count\":3", "\"node_count\":4", "\"nodes\" ends after 3 nodes of 4"),
        ("\"node_count\":3", "\"node_count\":2", "\"nodes\" has more than the 2 nodes that are announced"),
        ("\"node_count\":3", "\"node_count\":300000000", "300000000 nodes are announced, but only"),
        ("\"node_count\":3", "\"node_count\":5000000000", "5000000000 nodes: too many"),
        ("\"node_count\":3", "\"node_count\":99999999999999999999", "a number is larger than 64 bits"),
        ("\"edge_count\":3", "\"edge_count\":4", "the nodes have 3 edges, but 4 are announced"),
        ("\"edge_count\":3", "\"edge_count\":2", "the nodes up to 1 have 3 edges of 2"),
        ("\"nodes\":[9,0,1,0,2", "\"nodes\":[9,0,1,0,1", "the nodes have 2 edges, but 3 are announced"),
        (",3,1,3,24", ",15,1,3,24", "node 1 has an unknown kind, 15"),
        (",3,1,3,24", ",3,4,3,24", "string 4 is named here, but there are 4"),
        (",3,1,3,24", ",3,1,3,-24", "expected a number without sign"),
        (",3,1,3,24", ",3,1,3,24.5", "expected a number without fraction"),
        (",3,1,3,24", ",3,1,3,", "expected a number without sign"),
        (",3,1,3,24,", ",3,1,3,24 ", "expected ',', found '1'"),
        ("\"edges\":[1,1,7", "\"edges\":[1,1,8", "edge 0 ends at 8, where no node begins"),
        ("\"edges\":[1,1,7", "\"edges\":[1,1,21", "edge 0 ends at 21, where no node begins"),
        ("\"edges\":[1,1,7", "\"edges\":[7,1,7", "edge 0 has an unknown kind, 7"),
        (",2,3,14", ",2,9,14", "string 9 is named here, but there are 4"),
        (",2,3,14", "", "\"edges\" ends after 2 edges of 3"),
        (",2,3,14", ",2,3,14,2,3,14", "more than the 3 edges"),
        ("\"nodes\":", "\"edges\":[],\"nodes\":", "\"edges\" is before \"nodes\""),
        ("\"snapshot\":", "\"nodes\":[],\"snapshot\":", "\"nodes\" is before \"snapshot\""),
        ("\"strings\":", "\"nodes\":[],\"strings\":", "\"nodes\" occurs twice"),
        ("\"name\"]}", "\"name\"]", "the file ends too early"),
        ("\"name\"]}", "\"name\"]} x", "bytes after the end"),
        ("\"name\"]}", "\"na\\me\"]}", "an unknown escape"),
        ("\"self_size\"", "\"size\"", "no field \"self_size\""),
        ("\"trace_function_count\":1", "\"root_index\":8", "root_index is 8, where no node begins"),
        ("4294967296", "18446744073709551615", "the sizes add up to more than 2^63 bytes"),
    ];
    for (from, to, message) in changes {
        assert!(V8.contains(from), "{from}");
        let error = read_text(&V8.replace(from, to)).unwrap_err();
        assert!(error.contains(message), "{from} -> {to}: {error}");
    }
    // Cut anywhere, it is noticed.
    for end in (0..V8.len() - 2).step_by(5) {
        if let Some(text) = V8.get(..end) {
            read_text(text).unwrap_err();
        }
    }
}

#[test]
fn missing_files_are_named() {
    let error = read(Path::new("/nowhere/x.heapsnapshot")).unwrap_err().to_string();
    assert!(error.starts_with("cannot open /nowhere/x.heapsnapshot: No such file"), "{error}");
}
