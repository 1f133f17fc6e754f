// How sure sums of sampled allocations are (crates/report/src/queries/allocations/mod.rs). Pure.

// How the allocations of a process were recorded: all of them, or the parameter of a kind of sampling.
export type Sampling = "every" | { rate: number } | { scaledRate: number } | { stacks: number } | { bytes: number };

// What matters of a group.
export interface Sampled { process: number; thread: number; size: number; count: number; bytes: number }

// The variance of bytes that are recorded with a probability.
const ofRate = (count: number, bytes: number, rate: number) => (count > 0 ? ((bytes * bytes) / count) * ((1 - rate) / Math.max(rate, Number.MIN_VALUE)) : 0);

export class Errors {
  private readonly samplings: Map<number, Sampling>;

  constructor(processes: [number, Sampling][]) {
    this.samplings = new Map(processes);
  }

  // Of so many blocks of a group, those that were recorded.
  recorded(process: number, blocks: number, count: number, bytes: number): number {
    const of = this.samplings.get(process) ?? "every";
    if (of === "every" || "rate" in of) return blocks;
    const part = "bytes" in of ? (blocks * (bytes / Math.max(count, 1))) / Math.max(of.bytes, 1) : blocks * ("stacks" in of ? of.stacks : of.scaledRate);
    return Math.max(1, Math.min(Math.round(part), Math.max(blocks, 1)));
  }

  // The relative standard errors of the bytes of rows, and last of their sum. `row`: by group.
  ofRows(groups: Sampled[], row: number[], rows: number, bytes: Float64Array): Float64Array {
    const stratum = ({ process, thread, size }: Sampled) => `${process} ${thread} ${size}`;
    // Exact numbers, where only stacks were sampled.
    const strata = new Map<string, number>();
    const independent = new Float64Array(rows + 1);
    const shares = Array.from({ length: rows + 1 }, () => new Map<string, { count: number; bytes: number; rate: number }>());
    groups.forEach((group, i) => {
      const of = this.samplings.get(group.process) ?? "every";
      if (of === "every" || "rate" in of) return;
      if ("stacks" in of) strata.set(stratum(group), (strata.get(stratum(group)) ?? 0) + group.count);
      for (const at of [row[i], rows]) {
        if ("scaledRate" in of) independent[at] += ofRate(group.count, group.bytes, of.scaledRate);
        else if ("bytes" in of) independent[at] += group.bytes * Math.max(of.bytes, 1);
        else {
          const share = shares[at].get(stratum(group)) ?? { count: 0, bytes: 0, rate: of.stacks };
          shares[at].set(stratum(group), { ...share, count: share.count + group.count, bytes: share.bytes + group.bytes });
        }
      }
    });
    return independent.map((variance, at) => {
      for (const [key, { count, bytes, rate }] of shares[at]) {
        variance += ofRate(count, bytes, rate) * Math.max(1 - count / Math.max(strata.get(key) ?? 0, 1), 0);
      }
      return bytes[at] === 0 ? 0 : Math.sqrt(variance) / bytes[at];
    });
  }
}
