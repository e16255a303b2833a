/* Places of boxes. A graph is cut where few edges cross, and dagre lays out one piece at a time, so
   that large graphs are drawn while the rest of them is still being laid out. */
"use strict";

const SMALLEST_PIECE = 25;
const LARGEST_PIECE = 90;
const GAP = 46;
const TITLE_FONT = "600 13px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const LINE_FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

const ruler = document.createElement("canvas").getContext("2d");

function measure(box) {
  ruler.font = TITLE_FONT;
  let width = ruler.measureText(box.title).width;
  ruler.font = LINE_FONT;
  const sides = ["before", "after"].map((side) => linesOf(box, side));
  for (const line of sides.flat()) width = Math.max(width, ruler.measureText(line).width);
  box.width = Math.ceil(Math.max(70, width + 22));
  box.height = 24 + 14 * Math.max(...sides.map((lines) => lines.length));
}

/* The lines of a box on a side; the last one is that of the weights. */
function linesOf(box, side) {
  const weights = box.weights ? box.weights[side] : "";
  return weights ? [...box.lines, weights] : box.lines;
}

class Layout {
  constructor(graph, folding) {
    Object.assign(this, graph.boxes(folding));
    this.boxes.forEach(measure);
    this.pieces = [];
    this.cuts = cutPlaces(this.boxes.length, this.edges);
    this.done = 0; // boxes that have a place
    this.height = 0;
    this.left = 0;
    this.right = 1;
    this.known = new Map();
    this.into = this.boxes.map(() => []);
    for (const edge of this.edges) this.into[edge.to.at].push(edge);
  }

  get complete() { return this.done === this.boxes.length; }

  /* Lay out the next piece. */
  next() {
    const start = this.done;
    const end = this.cuts[this.pieces.length];
    const boxes = this.boxes.slice(start, end);
    const inner = [];
    for (const box of boxes) {
      for (const edge of this.into[box.at]) {
        if (edge.from.at >= start && edge.from.at < end) inner.push(edge);
      }
    }
    const laid = this.placed(boxes, inner, start);
    const shift = this.shift(boxes, laid);
    const top = this.height;
    boxes.forEach((box, i) => {
      box.x = laid.places[i].x + shift;
      box.y = laid.places[i].y + top;
    });
    const left = Math.min(...boxes.map((box) => box.x - box.width / 2));
    const right = Math.max(...boxes.map((box) => box.x + box.width / 2));
    this.left = Math.min(this.left, left);
    this.right = Math.max(this.right, right);
    inner.forEach((edge, i) => {
      edge.points = laid.points[i].map((p) => ({ x: p.x + shift, y: p.y + top }));
    });
    this.pieces.push({ start, end, top, bottom: top + laid.height, left, right });
    this.height = top + laid.height + GAP;
    this.done = end;
  }

  /* Pieces of one form, such as repeated blocks, are laid out once. */
  placed(boxes, inner, start) {
    const key = JSON.stringify([
      boxes.map((box) => [box.width, box.height]),
      inner.map((edge) => [edge.from.at - start, edge.to.at - start]),
    ]);
    if (!this.known.has(key)) {
      const graph = new dagre.graphlib.Graph();
      graph.setGraph({ ranksep: 34, nodesep: 22, edgesep: 14 });
      boxes.forEach((box, i) => graph.setNode(i, { width: box.width, height: box.height }));
      for (const edge of inner) graph.setEdge(edge.from.at - start, edge.to.at - start, {});
      dagre.layout(graph);
      this.known.set(key, {
        places: boxes.map((box, i) => graph.node(i)),
        points: inner.map((e) => graph.edge(e.from.at - start, e.to.at - start).points),
        height: graph.graph().height,
        width: graph.graph().width,
      });
    }
    return this.known.get(key);
  }

  /* The edges that come from earlier pieces are to be upright: the shift is the median of theirs. */
  shift(boxes, laid) {
    const wanted = [];
    boxes.forEach((box, i) => {
      for (const edge of this.into[box.at]) {
        if (edge.from.at < boxes[0].at) wanted.push(edge.from.x - laid.places[i].x);
      }
    });
    if (!wanted.length) return -laid.width / 2;
    return wanted.sort((a, b) => a - b)[wanted.length >> 1];
  }

  upTo(box) {
    while (this.done <= box.at) this.next();
  }
}

/* The ends of pieces: where the fewest values pass from before to after, pieces of fair size. */
function cutPlaces(count, edges) {
  const farthest = new Array(count).fill(-1);
  for (const edge of edges) {
    const low = Math.min(edge.from.at, edge.to.at), high = Math.max(edge.from.at, edge.to.at);
    farthest[low] = Math.max(farthest[low], high);
  }
  const crossing = new Array(count + 2).fill(0);
  farthest.forEach((high, low) => {
    if (high > low) { crossing[low + 1] += 1; crossing[high + 1] -= 1; }
  });
  for (let i = 1; i <= count; i += 1) crossing[i] += crossing[i - 1];
  const cuts = [];
  let start = 0;
  while (count - start > LARGEST_PIECE) {
    let best = start + SMALLEST_PIECE;
    for (let i = best; i <= start + LARGEST_PIECE; i += 1) {
      if (crossing[i] <= crossing[best]) best = i;
    }
    cuts.push(best);
    start = best;
  }
  if (count) cuts.push(count);
  return cuts;
}
