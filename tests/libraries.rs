//! Libraries that are opened and closed.

use whole_programs::{Language, Record, host, host_with};

#[test]
fn opened_and_closed_under_load() {
    let plugin = host_with("plugin", Language::C, &["-shared", "-fPIC"]);
    let outcome = Record::new(host("loader", Language::C)).args([&plugin]).run();
    outcome.program_did("opened 200 times, 0 failed\n", 0);
    let seen = outcome.seen("loader");
    assert!(seen.functions.get("steady_work").is_some_and(|ns| *ns > 800_000_000), "{seen:#?}");
    // A library that is open for half a millisecond may be missed; the long ones must be found.
    assert!(seen.functions.get("plugin_work").is_some_and(|ns| *ns > 300_000_000), "{seen:#?}");
    assert!(seen.whole as f64 > 0.9 * seen.hits as f64, "{seen:#?}");
}

#[test]
fn a_preloaded_library_of_the_user_is_kept() {
    let plugin = host_with("plugin", Language::C, &["-shared", "-fPIC"]);
    let outcome = Record::new("sh").args(["-c", "echo $LD_PRELOAD"]).variable("LD_PRELOAD", &plugin).run();
    assert_eq!(outcome.code(), 0);
    assert!(outcome.stdout.contains(&plugin.display().to_string()), "{}", outcome.stdout);
}
