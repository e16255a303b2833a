/* Repeated blocks: runs of nodes that follow one another several times in the order of a graph. */
"use strict";

const LONGEST_BLOCK = 400;
const FEWEST_NODES = 4;

/* A run of equal nodes with a period, of which the shortest that covers the most is folded. */
function repeatedBlocks(graph, shown) {
  const place = new Map(shown.map((at, i) => [at, i]));
  const codes = new Map();
  const words = shown.map((at, i) => {
    const node = graph.nodes[at];
    // How far back the inputs stand tells branches from chains.
    const back = (node.inputs || []).map(([from]) => place.has(from) ? i - place.get(from) : "c");
    const near = back.map((distance) => distance > LONGEST_BLOCK ? "f" : distance);
    const text = node.status === "=" ? `${node.op} ${near.join(",")}` : `changed ${at}`;
    if (!codes.has(text)) codes.set(text, codes.size);
    return codes.get(text);
  });
  const found = [];
  const pending = [[0, words.length]];
  while (pending.length) {
    const [from, to] = pending.pop();
    const best = bestRun(words, from, to);
    if (!best) continue;
    for (let i = 0; i < best.count; i += 1) {
      const start = best.start + i * best.length;
      found.push({ start, length: best.length, number: i + 1, count: best.count });
    }
    pending.push([from, best.start], [best.start + best.count * best.length, to]);
  }
  return found.sort((one, two) => one.start - two.start);
}

function bestRun(words, from, to) {
  let best = null;
  for (let length = FEWEST_NODES; length <= Math.min(LONGEST_BLOCK, (to - from) >> 1); length += 1) {
    let same = 0;
    for (let i = from; i + length <= to; i += 1) {
      if (i + length < to && words[i] === words[i + length]) { same += 1; continue; }
      const count = Math.floor(same / length) + 1;
      const covered = count * length;
      if (count > 1 && (!best || covered > best.covered)) {
        best = { start: i - same, length, count, covered };
      }
      same = 0;
    }
  }
  return best;
}
