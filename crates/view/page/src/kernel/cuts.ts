// How much of a place in the tree of calls has incomplete stacks, and why. Pure.

import type { Place, Tree } from "../model.ts";

// By box: whether its stacks pass through the place.
export function boxesAt({ parent, func }: Tree, { func: wanted, way, direction }: Place): Uint8Array {
  const result = new Uint8Array(parent.length);
  if (way && direction === "up") {
    // The way begins with the function that runs.
    for (let box = 1; box < parent.length; box++) {
      let at = box, met = 0;
      while (at > 0 && met < way.length && func[at] === way[met]) {
        at = parent[at];
        met++;
      }
      result[box] = met === way.length ? 1 : 0;
    }
    return result;
  }
  // How many functions of the way lead to a box.
  const met = new Int32Array(parent.length);
  for (let box = 1; box < parent.length; box++) {
    const above = parent[box];
    const onWay = way !== null && (above === 0 || met[above] > 0) && func[box] === way[met[above]];
    met[box] = onWay ? met[above] + 1 : 0;
    result[box] = result[above] || (way ? met[box] === way.length : func[box] === wanted) ? 1 : 0;
  }
  return result;
}
