//! Which threads wait for which others: `stackglass peek` names the owner of each lock, and deadlocks among threads.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Folder, Language, host_with, stackglass};

/// A host whose threads wait. It is killed in the end.
struct Waiting {
    _folder: Folder,
    child: Child,
    /// The numbers that it writes when all threads wait.
    ids: Vec<u32>,
}

impl Waiting {
    fn start_with(name: &str, language: Language, flags: &[&str]) -> Waiting {
        let folder = Folder::new();
        let mut command = Command::new(host_with(name, language, flags));
        let child = command.current_dir(folder.path()).stdin(Stdio::null()).spawn();
        let child = child.expect("the host can be started");
        let begun = Instant::now();
        let ids = loop {
            let ready = std::fs::read_to_string(folder.path().join("ready")).unwrap_or_default();
            if ready.ends_with('\n') {
                break ready.split_whitespace().map(|id| id.parse().expect("an id")).collect();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{name} does not start");
            std::thread::sleep(Duration::from_millis(5));
        };
        Waiting { _folder: folder, child, ids }
    }

    /// What a short peek prints.
    fn peek(&self, flags: &[&str]) -> String {
        let mut command = Command::new(stackglass());
        command.args(["peek", &self.child.id().to_string(), "--duration", "50ms"]).args(flags);
        let output = command.stdin(Stdio::null()).output().expect("the command can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// By the name of the thread that waits: what for, with a time-out, and who has it.
fn waits(peek: &Value) -> BTreeMap<String, (String, bool, String)> {
    let name_of = |tid: &Value| {
        let threads = peek["threads"].as_array().expect("a list");
        let thread = threads.iter().find(|thread| thread["tid"] == *tid).expect("a thread");
        thread["name"].as_str().expect("a name").to_owned()
    };
    let of_wait = |wait: &Value| {
        let holders = wait["holders"].as_array().expect("a list");
        let holder = |holder: &Value| match (&holder["gone"], &holder["pid"]) {
            (Value::Bool(true), _) => "gone".to_owned(),
            (_, Value::Null) => name_of(&holder["tid"]),
            (_, pid) => pid.to_string(),
        };
        let holders: Vec<String> = holders.iter().map(holder).collect();
        let what = wait["for"].as_str().expect("a text").to_owned();
        (name_of(&wait["tid"]), (what, wait["timeout"] == true, holders.join(" ")))
    };
    peek["waits"].as_array().expect("a list").iter().map(of_wait).collect()
}

/// Threads of glibc and locks of files: each wait has its owner, and what only looks like a lock has none.
#[test]
fn owners_of_locks_of_c() {
    let host = Waiting::start_with("locks", Language::C, &[]);
    let json: Value = serde_json::from_str(&host.peek(&["--json"])).expect("it is JSON");
    let found = waits(&json);
    let wait = |what: &str, timeout: bool, holder: &str| (what.to_owned(), timeout, holder.to_owned());
    let child = host.ids[1].to_string();
    let expected = [
        ("left", wait("pthread mutex", false, "right")),
        ("right", wait("pthread mutex", false, "left")),
        ("waiter", wait("pthread mutex", false, "keeper")),
        ("timed", wait("pthread mutex", true, "keeper")),
        ("pi", wait("pthread mutex", false, "keeper")),
        // Its owner may be in another process.
        ("across", wait("pthread mutex", false, "")),
        ("reader", wait("pthread rwlock", false, "keeper")),
        ("after", wait("pthread mutex", false, "gone")),
        ("itself", wait("pthread mutex", false, "itself")),
        ("flocked", wait("file lock", false, &child)),
        ("joins", wait("end of a thread", false, "keeper")),
    ];
    let expected = expected.into_iter().map(|(name, wait)| (name.to_owned(), wait)).collect();
    assert_eq!(found, expected, "{json}");
    let deadlocks = json["deadlocks"].as_array().expect("a list");
    let sizes: Vec<usize> =
        deadlocks.iter().map(|deadlock| deadlock["tids"].as_array().expect("a list").len()).collect();
    assert_eq!(sizes, [2, 1], "{json}");
    assert!(deadlocks.iter().all(|deadlock| deadlock["certain"] == true), "{json}");

    let text = host.peek(&[]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "deadlock: 2 threads wait for each other thread 3 (left)",
        "waits in left at locks.c:",
        "deadlock: a thread waits for itself",
        "waits for the pthread mutex that it holds",
        ", held by thread 2 (keeper)",
        "/locked, taken by process",
        "which has ended, or is in the process that this one was forked from",
    ] {
        assert!(words.contains(sentence), "{sentence}: {text}");
    }
}

/// Locks of Rust do not know their owner: the thread that would give it back if it were unwound has it. A program that aborts instead
/// has no such code. Then the thread with a guard in a variable probably has it.
#[test]
fn owners_of_locks_of_rust() {
    let debug = ["-Copt-level=0", "-Cdebuginfo=2"];
    let wait = |what: &str, holder: &str| (what.to_owned(), false, holder.to_owned());
    let expected = [
        ("waiter", wait("Mutex", "keeper")),
        ("reader", wait("RwLock", "keeper")),
        ("writer", wait("RwLock", "keeper")),
        ("left", wait("Mutex", "right")),
        ("right", wait("Mutex", "left")),
        // Not the thread that waits for the condition variable: it has given this lock back, and keeps the other one.
        ("late", wait("Mutex", "watcher")),
        ("behind", wait("Mutex", "condition")),
    ];
    let expected: BTreeMap<_, _> = expected.into_iter().map(|(name, wait)| (name.to_owned(), wait)).collect();
    for (flags, is_certain, sentences) in [
        (
            &debug[..],
            true,
            [
                "deadlock: 2 threads wait for each other thread",
                ", held by thread 2 (keeper)",
                "in rust_locks::keeper at rust_locks.rs:",
            ],
        ),
        // What is said by a variable may be gone.
        (
            &[&debug[..], &["-Cpanic=abort"]].concat()[..],
            false,
            [
                "possible deadlock: 2 threads wait for each other, unless one of them has dropped its guard",
                ", probably held by thread 2 (keeper)",
                "in rust_locks::keeper at rust_locks.rs:",
            ],
        ),
    ] {
        let host = Waiting::start_with("rust_locks", Language::Rust, flags);
        let json: Value = serde_json::from_str(&host.peek(&["--json"])).expect("it is JSON");
        assert_eq!(waits(&json), expected, "{json}");
        let deadlocks = json["deadlocks"].as_array().expect("a list");
        assert_eq!((deadlocks.len(), &deadlocks[0]["certain"]), (1, &Value::Bool(is_certain)), "{json}");
        let text = host.peek(&[]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in sentences {
            assert!(words.contains(sentence), "{sentence}: {text}");
        }
    }
}

/// Guards that were dropped and moved, in variables, temporaries and memory: the code that would drop what is live tells who has the
/// lock, with types and without any debug information.
#[test]
fn guards_of_rust_that_are_live() {
    let expected = [
        ("gone?", ""),
        ("gone by flag?", ""),
        ("gone before c?", ""),
        ("kept by flag?", "kept by flag"),
        ("moved?", "moved"),
        ("vector?", "vector"),
        ("boxed?", "boxed"),
        ("if let?", "if let"),
        ("matched?", "matched"),
        ("caught?", "caught"),
        ("recursive?", "recursive"),
        ("first", "second"),
        // The other one has dropped its guard, so this is no deadlock.
        ("second", ""),
        ("itself", "itself"),
        ("reader?", "reader reader too"),
        ("writer?", "writer"),
    ];
    let expected: BTreeMap<_, _> = expected.into_iter().collect();
    for flags in [["-Copt-level=0", "-Cdebuginfo=2"], ["-Copt-level=3", "-Cdebuginfo=0"]] {
        let host = Waiting::start_with("rust_guards", Language::Rust, &flags);
        let json: Value = serde_json::from_str(&host.peek(&["--json"])).expect("it is JSON");
        let found = waits(&json);
        let found = found.iter().map(|(name, (_, _, holders))| (name.as_str(), holders.as_str())).collect();
        assert_eq!(expected, found, "{flags:?}: {json}");
        let holders = json["waits"].as_array().expect("a list").iter();
        let holders: Vec<&Value> =
            holders.flat_map(|wait| wait["holders"].as_array().expect("a list")).collect();
        assert!(holders.iter().all(|holder| holder["certain"] == true), "{json}");
        let moved = holders.iter().find(|holder| holder["name"] == "moved").expect("a holder");
        assert_eq!(moved["at"]["function"], "rust_guards::consumer", "{json}");
        let deadlocks = json["deadlocks"].as_array().expect("a list");
        assert!(deadlocks.len() == 1 && deadlocks[0]["certain"] == true, "{json}");
    }
}
