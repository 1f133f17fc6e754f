// Where the boxes of a flame graph lie. Pure.

import type { Nodes } from "./nodes.ts";

export interface Box { node: number; x: number; width: number; row: number }

// Boxes narrower than this are not drawn, nor what is in them.
const NARROWEST = 0.6;

// The nodes above the zoomed one over the whole width, then its branch. `rank`: places of functions in the order of names, or null for the
// order of sizes.
export function layout(graph: Nodes, zoomed: number, width: number, rank: Int32Array | null): Box[] {
  const boxes: Box[] = [];
  for (let node = zoomed; node >= 0; node = graph.parent[node]) boxes.push({ node, x: 0, width, row: graph.depth[node] });
  boxes.reverse();
  const whole = graph.value(zoomed);
  if (whole <= 0) return boxes.slice(0, 1);
  const scale = width / whole;
  const open: Box[] = [boxes[boxes.length - 1]];
  for (let above = open.pop(); above; above = open.pop()) {
    let x = above.x;
    let children = graph.children(above.node);
    if (rank && children.length > 1) children = children.slice().sort((a, b) => rank[graph.func[a]] - rank[graph.func[b]]);
    for (const node of children) {
      const size = graph.value(node) * scale;
      if (size >= NARROWEST) {
        const child = { node, x, width: size, row: above.row + 1 };
        boxes.push(child);
        open.push(child);
      }
      x += size;
    }
  }
  return boxes;
}

// The last part of a path says the most.
export function shortened(name: string, room: number): string {
  if (name.length <= room) return name;
  const last = name.slice(name.includes("::") ? name.lastIndexOf("::") + 2 : 0);
  return last.length <= room ? last : `${last.slice(0, Math.max(room - 1, 1))}…`;
}
