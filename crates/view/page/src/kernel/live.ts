// Bytes that are alive at the end of each slice of time. Pure.

export interface Live { end: Float64Array; bytes: Float64Array }

export function largest({ end, bytes }: Live): { most: number; at: number } {
  let most = 0, at = 0;
  bytes.forEach((value, slice) => {
    if (value <= most) return;
    most = value;
    at = end[slice];
  });
  return { most, at };
}

// What was last known of a moment, and when; null before and after all slices.
export function aliveAt({ end, bytes }: Live, clock: number): { end: number; bytes: number } | null {
  const next = end.findIndex((end) => end > clock);
  return next > 0 ? { end: end[next - 1], bytes: bytes[next - 1] } : null;
}
