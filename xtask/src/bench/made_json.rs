//! Generated JSON like the answer of a service: a list of small objects, the same in every run.

use std::fmt::Write;

/// A list of `objects` objects, each with about 210 bytes.
pub fn list(objects: usize) -> String {
    let mut state = 0x5EED_u64;
    // From 0 to 1.
    let mut fraction = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut text = String::from("[");
    for i in 0..objects {
        let comma = if i == 0 { "" } else { ", " };
        let tags: Vec<String> = (0..5).map(|_| format!("\"{}\"", fraction())).collect();
        let (tags, x, ok) = (tags.join(", "), fraction(), fraction() < 0.5);
        let _ = write!(
            text,
            "{comma}{{\"id\": {i}, \"name\": \"user{i}\", \"tags\": [{tags}], \"pos\": {{\"x\": {x}, \"y\": {i}}}, \
             \"ok\": {ok}}}"
        );
    }
    text + "]\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_json_and_always_the_same() {
        let text = list(100);
        assert_eq!(text, list(100));
        let list: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(list.as_array().map(Vec::len), Some(100));
        assert_eq!(list[7]["tags"].as_array().map(Vec::len), Some(5));
    }
}
