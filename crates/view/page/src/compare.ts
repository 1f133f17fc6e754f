// Shares, their errors, and differences of two ranges. Pure.

// Half the width of the interval that holds 95 of 100 shares, if each sample is drawn on its own.
export function shareError(share: number, samples: number): number {
  return samples > 0 ? 1.96 * Math.sqrt(Math.max(share * (1 - share), 0) / samples) : 1;
}

export interface Difference { before: number; after: number; delta: number; error: number; noise: boolean }

// The difference of shares. A share within its error is noise.
export function difference(part: number, whole: number, samples: number, otherPart: number, otherWhole: number, otherSamples: number): Difference {
  const after = whole > 0 ? part / whole : 0, before = otherWhole > 0 ? otherPart / otherWhole : 0;
  const error = Math.hypot(shareError(after, samples), shareError(before, otherSamples));
  const delta = after - before;
  return { before, after, delta, error, noise: Math.abs(delta) <= error };
}

// Less is blue, more is red, noise is grey: the ends of a scale that colour-blind people tell apart. Dark text is read on all of it.
export function differenceColor({ delta, noise }: Difference): string {
  if (noise) return "#d9d9d9";
  const strength = Math.min(1, Math.sqrt(Math.abs(delta) / 0.25));
  const [near, far] = delta > 0 ? [[253, 219, 199], [239, 128, 98]] : [[209, 229, 240], [103, 169, 207]];
  return `rgb(${near.map((value, i) => Math.round(value + (far[i] - value) * strength)).join(" ")})`;
}
