//! A text of nested values becomes a tree, a copy, and a text again: what programs that read JSON allocate.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, Shuffle};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Length of the text, in bytes.
const TEXT: usize = 400_000;
/// Levels of nesting.
const DEPTH: u32 = 6;

#[derive(Clone)]
enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

/// Reads the text that [`invent`] writes; it expects no errors.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn next(&self) -> u8 {
        self.text.as_bytes()[self.at]
    }

    fn value(&mut self) -> Value {
        match self.next() {
            b'{' => self.object(),
            b'[' => self.list(),
            b'"' => Value::Text(self.text()),
            b't' => self.word(4, Value::Bool(true)),
            b'f' => self.word(5, Value::Bool(false)),
            b'n' => self.word(4, Value::Null),
            _ => self.number(),
        }
    }

    fn word(&mut self, length: usize, value: Value) -> Value {
        self.at += length;
        value
    }

    fn number(&mut self) -> Value {
        let begin = self.at;
        while matches!(self.next(), b'0'..=b'9' | b'.') {
            self.at += 1;
        }
        Value::Number(self.text[begin..self.at].parse().expect("the text has numbers"))
    }

    fn text(&mut self) -> String {
        let begin = self.at + 1;
        let length = self.text[begin..].find('"').expect("a quote ends the text");
        self.at = begin + length + 1;
        self.text[begin..begin + length].to_owned()
    }

    fn list(&mut self) -> Value {
        let mut list = Vec::new();
        // A bracket or a comma precedes each value.
        while self.next() != b']' {
            self.at += 1;
            list.push(self.value());
        }
        self.at += 1;
        Value::List(list)
    }

    fn object(&mut self) -> Value {
        let mut object = BTreeMap::new();
        while self.next() != b'}' {
            self.at += 1;
            let key = self.text();
            self.at += 1;
            object.insert(key, self.value());
        }
        self.at += 1;
        Value::Object(object)
    }
}

/// Appends a random value.
fn invent(order: &mut Shuffle, depth: u32, text: &mut String) {
    let kind = if depth == 0 { order.below(3) } else { 3 + order.below(2) };
    let comma = |i: u64| if i == 0 { "" } else { "," };
    match kind {
        0 => text.push_str(&(order.below(100_000) as f64 / 7.0).to_string()),
        1 => text.push_str(&format!("\"text{}\"", order.below(100_000))),
        2 => text.push_str(["true", "false", "null"][order.below(3) as usize]),
        3 => {
            text.push('[');
            for i in 0..2 + order.below(6) {
                text.push_str(comma(i));
                invent(order, depth - 1, text);
            }
            text.push(']');
        }
        _ => {
            text.push('{');
            for i in 0..2 + order.below(6) {
                write!(text, "{}\"key{}\":", comma(i), order.below(1000)).expect("a string takes all");
                invent(order, depth - 1, text);
            }
            text.push('}');
        }
    }
}

fn show(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::Text(value) => {
            text.push('"');
            text.push_str(value);
            text.push('"');
        }
        Value::List(list) => {
            text.push('[');
            for value in list {
                show(value, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(object) => {
            text.push('{');
            for (key, value) in object {
                text.push_str(key);
                text.push(':');
                show(value, text);
                text.push(',');
            }
            text.push('}');
        }
    }
}

/// Reads, copies and writes the text `--work` times.
pub fn run(options: &Options, report: &mut Report) {
    let (mut limit, mut order) = (Limit::from_options(options), Shuffle::new(options.seed));
    let mut text = String::from("[");
    while text.len() < TEXT {
        if text.len() > 1 {
            text.push(',');
        }
        invent(&mut order, DEPTH, &mut text);
    }
    text.push(']');
    let mut written = 0;
    while limit.go_on() {
        let copy = Parser { text: &text, at: 0 }.value().clone();
        let mut shown = String::new();
        show(&copy, &mut shown);
        written += shown.len();
    }
    report.number("written", written);
}
