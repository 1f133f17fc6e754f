// Colours of source text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module, random } from "./columns.mjs";

const { Tokens } = await module("kernel/tokens.ts");

// Tokens that are not plain, of all lines: the first letters of their kinds, and their texts.
const of = (text, path) => {
  const lines = text.split("\n"), tokens = new Tokens(lines, path);
  return lines.map((_, i) => tokens.line(i).filter(({ kind }) => kind).map(({ kind, text }) => `${kind[0]}:${text}`));
};

test("Rust: comments nest, strings go over lines, lifetimes are no characters", () => {
  assert.deepEqual(of("fn a<'a>(x: &'a str) -> char { 'x' } // end\n/* a /* b */\nstill */ let y = 1_000u64 + 0x1f;", "a.rs"), [
    ["k:fn", "s:'x'", "c:// end"], ["c:/* a /* b */"], ["c:still */", "k:let", "n:1_000u64", "n:0x1f"],
  ]);
  assert.deepEqual(of('let s = "a \\" // no\nmore" ; r#"raw " \\"# x; r"\\" y', "a.rs"), [
    ["k:let", 's:"a \\" // no'], ['s:more"', 's:r#"raw " \\"#', 's:r"\\"'],
  ]);
});

test("languages like C: comments do not nest, strings end with their lines, directives", () => {
  assert.deepEqual(of('#include <a>\n/* a /* b */ int x = \'\\n\';\nchar *s = "open\nreturn 1.5f;', "a.c"), [
    ["k:#include"], ["c:/* a /* b */", "k:int", "s:'\\n'"], ["k:char", 's:"open'], ["k:return", "n:1.5f"],
  ]);
  assert.deepEqual(of("x := `raw\n// in it` // out", "a.go"), [["s:`raw"], ["s:// in it`", "c:// out"]]);
});

test("other files are plain", () => {
  assert.deepEqual(new Tokens(['"a" // b'], "a.txt").line(0), [{ kind: "", text: '"a" // b' }]);
});

test("nothing is lost, whatever the text and the order in which lines are asked for", () => {
  const signs = ["/*", "*/", "//", '"', "'", "\\", "r#\"", "\"#", "`", "a", "1", " ", "#", "é", "\n"];
  for (let seed = 1; seed <= 200; seed++) {
    const below = random(seed);
    const lines = Array.from({ length: 60 }, () => signs[below(signs.length)]).join("").split("\n");
    for (const path of ["a.rs", "a.cpp"]) {
      const tokens = new Tokens(lines, path), again = new Tokens(lines, path);
      const backwards = [...lines.keys()].reverse().map((i) => again.line(i)).reverse();
      lines.forEach((line, i) => {
        assert.equal(tokens.line(i).map(({ text }) => text).join(""), line);
        assert.deepEqual(backwards[i], tokens.line(i));
      });
    }
  }
});
