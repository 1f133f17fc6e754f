// Comparison of two profiles: the changes of boxes, in any graph that has both sides. The rule is that of difference.rs.
//
// Side `a` is now, side `b` is before, in samples of now.

// A change of more than this many standard errors is beyond the noise, and the share of all samples that the darkest shade
// stands for.
const BEYOND = 3, DARKEST = 0.1;

function changeOf(graph, node) {
  const now = graph.a[node], before = graph.b[node], change = now - before;
  const error = Math.sqrt(Math.max(1, now + before)) * data.difference.spread;
  return { now, before, change, error, isBeyond: Math.abs(change) > BEYOND * error };
}

// The number of the swatch of a box.
function changeSwatch(graph, node) {
  const { swatches } = data.difference, shades = swatches.length / 3, { change, isBeyond } = changeOf(graph, node);
  if (!isBeyond) return swatches[0];
  const share = Math.abs(change) / Math.max(1, graph.a[0], graph.b[0]) / DARKEST;
  return swatches[shades * (change > 0 ? 2 : 1) + Math.min(shades - 1, Math.floor(share * shades))];
}

function describeChange(graph, node) {
  const { now, before, change, error, isBeyond } = changeOf(graph, node);
  const signed = (number) => `${number < 0 ? "−" : "+"}${formatNumber(Math.abs(number))}`;
  let percent = "new";
  if (before > 0) percent = now > 0 ? `${change < 0 ? "−" : "+"}${formatPercent(Math.abs(change), before)}` : "gone";
  return `before ${formatNumber(before)}, now ${formatNumber(now)}: ${signed(change)} ± ${formatNumber(error)} (${percent}), ${isBeyond ? "beyond" : "within"} the noise`;
}
