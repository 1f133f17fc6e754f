//! Generated C sources like those of large programs, for compilers to work on. Equal parameters give equal text.
//!
//! Each function has loops, a switch, arithmetic on a structure and calls of earlier functions, so that every pass of a
//! compiler has work. Ten kilobytes of declarations precede them, as with headers.

use std::fmt::Write;

/// One file with `functions` functions, whose names begin with `name`. The last one, `NAME_all`, calls some of them.
pub fn source(name: &str, functions: usize) -> String {
    let mut text = String::from(HEAD);
    for i in 0..functions {
        declarations(&mut text, name, i);
        function(&mut text, name, i);
    }
    let called: Vec<String> = (0..functions).step_by(17).map(|i| format!("{name}_{i}(b, n)")).collect();
    let _ = writeln!(
        text,
        "long {name}_all(struct block *b, int n)\n{{\n\treturn {};\n}}",
        called.join("\n\t\t+ ")
    );
    text
}

/// A file with a `main` that calls `NAME_all` for each name.
pub fn main_of(names: &[String]) -> String {
    let mut text = String::from(HEAD);
    text.extend(names.iter().map(|name| format!("long {name}_all(struct block *b, int n);\n")));
    let calls: Vec<String> = names.iter().map(|name| format!("{name}_all(&b, 1)")).collect();
    let _ = writeln!(
        text,
        "int main(void)\n{{\n\tstruct block b = {{0}};\n\treturn ({}) == 42;\n}}",
        calls.join(" + ")
    );
    text
}

/// Structures, each with a function that takes it, before each function.
const DECLARATIONS: usize = 60;

const HEAD: &str = "\
#include <stddef.h>
#include <string.h>
struct block { long sums[16]; unsigned flags; double weight; struct block *next; char name[24]; };
";

fn declarations(text: &mut String, name: &str, i: usize) {
    for k in 0..DECLARATIONS {
        let _ = writeln!(
            text,
            "struct {name}_{i}_part_{k} {{ unsigned long first, second[{}]; const char *label; }};\n\
             extern int {name}_{i}_use_{k}(struct {name}_{i}_part_{k} *part, const void *from, size_t bytes);",
            k + 2
        );
    }
}

fn function(text: &mut String, name: &str, i: usize) {
    // Different constants and callees, so that no two functions are equal.
    let (a, b, c) = (i % 13 + 2, i % 7 + 3, i * 31 % 1009);
    let _ = writeln!(text, "long {name}_{i}(struct block *b, int n)\n{{\n\tlong sum = {c}, carry = n;");
    let _ = writeln!(
        text,
        "\tfor (int k = 0; k < n + {a}; k++) {{\n\t\tb->sums[k & 15] += (sum ^ (carry << {b})) % {};\n\
         \t\tif (b->flags & (1u << (k % 31)))\n\t\t\tsum += b->sums[(k + {a}) & 15] * {b};\n\
         \t\telse\n\t\t\tcarry -= sum / (k + {a});\n\t}}",
        c + 2
    );
    let _ = writeln!(text, "\tswitch ((sum + carry) & 7) {{");
    for case in 0..6 {
        let _ = writeln!(
            text,
            "\tcase {case}:\n\t\tb->weight = b->weight * {b}.{case} + sum;\n\t\tsum += (long)b->weight % {};\n\t\tbreak;",
            c + case + 3
        );
    }
    let _ = writeln!(text, "\tdefault:\n\t\tmemset(b->name, {}, sizeof b->name);\n\t}}", i % 120);
    let _ = writeln!(
        text,
        "\twhile (b->next && carry > {c}) {{\n\t\tb = b->next;\n\t\tcarry -= b->sums[{}];\n\t}}",
        i % 16
    );
    for back in [1, 5, 40].into_iter().filter(|back| *back <= i) {
        let _ = writeln!(text, "\tif (sum > {})\n\t\tsum += {name}_{}(b, n - {back});", c * back, i - back);
    }
    let _ = writeln!(text, "\treturn sum ^ carry;\n}}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_make_the_same_text() {
        let text = source("part", 50);
        assert_eq!(text, source("part", 50));
        assert!(text.contains("long part_49(") && text.contains("long part_all("));
        assert!(main_of(&["part".into()]).contains("part_all(&b, 1)"));
    }
}
