//! `annotate` of a recording with samples and allocations: both beside each source line.

use crate::made_up::allocating::allocating;
use stackglass_profile::{AllocationSampling, Recording};
use stackglass_report::Annotate;
use stackglass_report::annotate::SourceFile;

fn annotated(recording: &Recording) -> String {
    let mut source = |file: &str| {
        let found = ["load.rs", "main.rs", "tree.rs"].iter().any(|name| file.ends_with(name));
        let text: String = (1..=70).map(|line| format!("    line_{line}();\n")).collect();
        SourceFile { text: found.then_some(text), ..SourceFile::default() }
    };
    let mut out = Vec::new();
    let annotate = Annotate::new().context(0);
    assert!(annotate.write(recording, &mut source, &mut out).unwrap().any);
    String::from_utf8(out).unwrap()
}

#[test]
fn bytes_stand_beside_times() {
    let mut recording = allocating(AllocationSampling::Every);
    let text = annotated(&recording);
    let lines = |file: &str| -> Vec<String> {
        let of_file =
            text.lines().skip_while(|line| !line.contains(file)).take_while(|line| !line.is_empty());
        of_file.map(str::to_owned).collect()
    };
    assert_eq!(
        lines("main.rs"),
        [
            "@demo/src/main.rs  100 % (1.50 s), 100 % its own",
            "    %    ms  own ms  samples  bytes  line  source",
            "                                        ⋮  11 lines",
            "100.0  1500    1500     1500           12  line_12();",
            "                                        ⋮  58 lines",
        ],
        "{text}"
    );
    assert_eq!(
        lines("load.rs"),
        [
            "@demo/src/load.rs  0.0 % (0 µs), 0.0 % its own, 12.4 MB allocated",
            "    %    ms  own ms  samples    bytes  line  source",
            "                                          ⋮  30 lines",
            "                              9.00 MB    31  line_31();",
            "                                          ⋮  16 lines",
            "                              3.36 MB    48  line_48();",
            "                                          ⋮  22 lines",
        ],
        "{text}"
    );
    assert!(
        text.contains("2 source files not found here, with 0.0 % of CPU time and 71 % of the bytes:"),
        "{text}"
    );
    recording.allocations = Default::default();
    let text = annotated(&recording);
    assert!(!text.contains("bytes") && !text.contains("load.rs"), "{text}");
    assert!(text.contains("    %    ms  own ms  samples  line  source"), "{text}");
}

#[test]
fn allocations_alone_are_shown_as_well() {
    let mut recording = allocating(AllocationSampling::Every);
    recording.samples.clear();
    let text = annotated(&recording);
    assert!(text.contains("9.00 MB    31  line_31();"), "{text}");
}
