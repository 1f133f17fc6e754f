// The stacks of one thread in order of time, as boxes: time from left to right, callees below callers. Pure.

import type { Tree } from "../model.ts";

// By box: when it begins and ends (ns), its depth, its function, and the box of the tree.
export interface Order { begin: Float64Array; end: Float64Array; depth: Int32Array; box: Int32Array; left: number }

// Collects calls from stacks in order of time. Calls shorter than `least` are left out.
export class Calls {
  private readonly begin: number[] = [];
  private readonly end: number[] = [];
  private readonly depth: number[] = [];
  private readonly box: number[] = [];
  private left = 0;
  // What is open, by depth: its box, and since when.
  private readonly open: number[] = [];
  private readonly since: number[] = [];
  private last = -Infinity;

  constructor(private readonly tree: Tree, private readonly least: number) {}

  // A stack that lasts from `begin` to `end`. Of what overlaps the one before, the rest counts.
  push(box: number, begin: number, end: number): void {
    begin = Math.max(begin, this.last);
    if (end <= begin) return;
    const path: number[] = [];
    for (let at = box; at > 0; at = this.tree.parent[at]) path.push(at);
    path.reverse();
    let same = 0;
    // Something else in between ends the calls.
    if (begin - this.last <= this.least) while (same < path.length && this.open[same] === path[same]) same++;
    this.close(same);
    for (let at = same; at < path.length; at++) {
      this.open.push(path[at]);
      this.since.push(begin);
    }
    this.last = end;
  }

  private close(depth: number): void {
    while (this.open.length > depth) {
      const box = this.open.pop()!, since = this.since.pop()!;
      if (this.last - since < this.least) {
        this.left++;
        continue;
      }
      this.begin.push(since);
      this.end.push(this.last);
      this.depth.push(this.open.length);
      this.box.push(box);
    }
  }

  finish(): Order {
    this.close(0);
    return {
      begin: Float64Array.from(this.begin), end: Float64Array.from(this.end), depth: Int32Array.from(this.depth), box: Int32Array.from(this.box),
      left: this.left,
    };
  }
}
