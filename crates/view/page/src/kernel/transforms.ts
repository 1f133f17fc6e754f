// Transforms of the tree of calls. Pure: each takes a tree, and tells where the boxes of it are in a new one.
//
// A box stands for a stack, so a transform says for each box two things: where its own time goes, and below which box its callees come.
// Callers come before callees in both trees.

import type { Tree } from "../model.ts";

// `of`: by function, whether it is meant. Paths have the functions that are meant at each depth.
export type Transform =
  | { kind: "focus" | "focusSelf" | "drop" | "merge" | "mergeCallee" | "collapseSubtree" | "collapseRecursion" | "collapseDirect" | "with"; of: Uint8Array }
  | { kind: "focusPath" | "mergePath" | "focusCallers"; path: number[][] }
  | { kind: "collapseInto"; of: Uint8Array; as: number };

// A tree, and for each box of the recording its box there, or -1.
export interface Shape { tree: Tree; map: Int32Array }

// What is left of the time: nothing, and nothing yet.
const GONE = -1, BEFORE = -2;

export function unchanged(tree: Tree): Shape {
  return { tree, map: Int32Array.from(tree.parent, (_, box) => box) };
}

export function transformed(tree: Tree, transforms: Transform[]): Shape {
  return transforms.reduce((shape, transform) => {
    const { tree, to } = apply(shape.tree, transform);
    return { tree, map: shape.map.map((box) => (box < 0 ? GONE : to[box])) };
  }, unchanged(tree));
}

// Boxes of the new tree, each once.
class Grown {
  readonly parent = [-1];
  readonly func = [0];
  readonly depth = [0];
  private readonly known = new Map<number, number>();

  child(above: number, func: number): number {
    const key = above * 0x2000000 + func;
    let box = this.known.get(key);
    if (box === undefined) {
      box = this.parent.length;
      this.known.set(key, box);
      this.parent.push(above);
      this.func.push(func);
      this.depth.push(this.depth[above] + 1);
    }
    return box;
  }

  tree(): Tree {
    return { parent: Int32Array.from(this.parent), func: Int32Array.from(this.func), depth: Int32Array.from(this.depth) };
  }
}

function apply(old: Tree, transform: Transform): { tree: Tree; to: Int32Array } {
  const grown = new Grown();
  const { parent, func } = old;
  // Where the own time of a box goes, and below which box its callees come.
  const to = new Int32Array(parent.length), under = new Int32Array(parent.length);
  const place = placing(old, transform, grown, to, under);
  for (let box = 1; box < parent.length; box++) {
    if (under[parent[box]] === GONE) to[box] = under[box] = GONE;
    else place(box, func[box], parent[box]);
  }
  for (let box = 0; box < to.length; box++) if (to[box] < 0) to[box] = GONE;
  return { tree: grown.tree(), to };
}

type Place = (box: number, func: number, above: number) => void;

function placing(old: Tree, transform: Transform, grown: Grown, to: Int32Array, under: Int32Array): Place {
  const { parent, func, depth } = old;
  const keep = (box: number, at: number) => { to[box] = under[box] = at; };
  const child = (box: number) => grown.child(under[parent[box]], func[box]);
  switch (transform.kind) {
    case "focus": {
      const { of } = transform;
      keep(0, BEFORE);
      return (box, func, above) => keep(box, under[above] >= 0 ? child(box) : of[func] ? grown.child(0, func) : BEFORE);
    }
    case "focusPath": {
      const on = along(old, transform.path), length = transform.path.length;
      keep(0, BEFORE);
      return (box, func, above) => {
        if (under[above] >= 0) keep(box, child(box));
        else if (!on(box)) keep(box, GONE);
        else keep(box, depth[box] === length ? grown.child(0, func) : BEFORE);
      };
    }
    case "focusCallers": {
      // The path starts with the innermost function. What it is called by becomes the end of the stack.
      const { path } = transform;
      to[0] = GONE;
      return (box) => {
        under[box] = child(box);
        let at = box;
        for (let i = 0; ; at = parent[at]) {
          if (at <= 0 || !path[i].includes(func[at])) { to[box] = GONE; return; }
          if (++i === path.length) break;
        }
        to[box] = under[at];
      };
    }
    case "focusSelf": {
      const { of } = transform;
      to[0] = GONE;
      return (box, func) => {
        under[box] = child(box);
        to[box] = of[func] ? under[box] : GONE;
      };
    }
    case "with": {
      const { of } = transform;
      const has = new Uint8Array(parent.length);
      to[0] = GONE;
      return (box, func, above) => {
        has[box] = has[above] || of[func] ? 1 : 0;
        under[box] = child(box);
        to[box] = has[box] ? under[box] : GONE;
      };
    }
    case "drop": {
      const { of } = transform;
      return (box, func) => keep(box, of[func] ? GONE : child(box));
    }
    case "merge": {
      const { of } = transform;
      return (box, func, above) => keep(box, of[func] ? under[above] : child(box));
    }
    case "mergePath": {
      const on = along(old, transform.path), length = transform.path.length;
      return (box, _, above) => keep(box, on(box) && depth[box] === length ? under[above] : child(box));
    }
    case "mergeCallee": {
      // Time of the function itself has no callee to go to.
      const { of } = transform;
      return (box, func, above) => {
        to[box] = child(box);
        under[box] = of[func] ? under[above] : to[box];
      };
    }
    case "collapseSubtree": {
      const { of } = transform;
      const inside = new Uint8Array(parent.length);
      return (box, func, above) => {
        keep(box, inside[above] ? under[above] : child(box));
        inside[box] = inside[above] || of[func] ? 1 : 0;
      };
    }
    case "collapseRecursion": {
      // The outermost call has what lies below the innermost one; the functions in between are left out there.
      const { of } = transform;
      const first = new Int32Array(parent.length);
      return (box, func, above) => {
        keep(box, of[func] && first[above] ? first[above] : child(box));
        first[box] = of[func] ? under[box] : first[above];
      };
    }
    case "collapseDirect": {
      const { of } = transform;
      return (box, called, above) => keep(box, of[called] && above !== 0 && func[above] === called ? under[above] : child(box));
    }
    case "collapseInto": {
      const { of, as } = transform;
      return (box, called, above) => {
        if (!of[called]) keep(box, child(box));
        else keep(box, above !== 0 && of[func[above]] ? under[above] : grown.child(under[above], as));
      };
    }
  }
}

// Whether a box lies on a path that starts at the root, as far as the path goes.
function along({ parent, func, depth }: Tree, path: number[][]): (box: number) => boolean {
  const is = new Uint8Array(parent.length);
  is[0] = 1;
  return (box) => {
    is[box] = is[parent[box]] && depth[box] <= path.length && path[depth[box] - 1].includes(func[box]) ? 1 : 0;
    return is[box] === 1;
  };
}
