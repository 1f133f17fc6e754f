// What the page has of a graph of the worker. What is asked for and not here yet is fetched, and `version` tells when it has come.

import { signal } from "@preact/signals";
import type { Growth, Piece } from "./kernel/pieces.ts";
import { Nodes, type Direction } from "./nodes.ts";
import type { Counting } from "./recording.ts";

export class Mirror extends Nodes {
  readonly version = signal(0);
  // The smallest share of the whole that is fetched without being asked for.
  least: number;
  private readonly inner: number[] = [];
  private readonly known: (number[] | undefined)[] = [];
  private missing = new Set<number>();
  private readonly asked = new Set<number>();
  private fetching: Promise<void> | null = null;

  constructor(readonly counted: Counting, direction: Direction, start: number | null, piece: Piece, least: number, private readonly fetch: (growth: Growth) => Promise<Piece | null>) {
    super(counted, direction, start);
    this.least = least;
    this.add(piece);
  }

  // Those that are here.
  children(node: number): number[] {
    const known = this.known[node];
    if (known) return known;
    if (this.inner[node] === 0) return [];
    // Who reads this is told when they have come.
    void this.version.value;
    this.want(node);
    return [];
  }

  isInner(node: number): boolean {
    return this.inner[node] === 1;
  }

  has(node: number): boolean {
    return this.known[node] !== undefined || this.inner[node] === 0;
  }

  // Once all that was asked for has come: whether that was anything.
  async settled(): Promise<boolean> {
    if (!this.fetching) return false;
    await this.fetching;
    return true;
  }

  // Fetches all below a node, up to so many nodes.
  async all(node: number, most: number): Promise<void> {
    const piece = await this.fetch({ below: [node], least: 0, most });
    if (piece) this.come(piece);
  }

  private want(node: number): void {
    if (this.asked.has(node)) return;
    this.asked.add(node);
    this.missing.add(node);
    this.fetching ??= Promise.resolve().then(() => this.fetchMissing());
  }

  private async fetchMissing(): Promise<void> {
    // What is asked for meanwhile comes with the next piece.
    while (this.missing.size) {
      const below = [...this.missing];
      this.missing = new Set();
      const piece = await this.fetch({ below, least: this.least, most: Infinity });
      if (piece) this.come(piece);
    }
    this.fetching = null;
  }

  private come(piece: Piece): void {
    this.add(piece);
    this.version.value++;
  }

  private add(piece: Piece): void {
    const { from, func, parent } = piece;
    for (let i = 0; i < func.length; i++) {
      const node = from + i;
      if (node > 0) {
        this.func[node] = func[i];
        this.parent[node] = parent[i];
        this.depth[node] = this.depth[parent[i]] + 1;
      }
      this.inner[node] = piece.inner[i];
      this.total[node] = piece.total[i];
      this.own[node] = piece.own[i];
      this.hits[node] = piece.hits[i];
      this.otherTotal[node] = piece.otherTotal[i];
      this.otherOwn[node] = piece.otherOwn[i];
      this.otherHits[node] = piece.otherHits[i];
    }
    let at = 0;
    piece.grown.forEach((node, i) => {
      this.known[node] = [...piece.lists.subarray(at, at + piece.counts[i])];
      at += piece.counts[i];
    });
  }
}
