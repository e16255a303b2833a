/* A graph of the page: its edges, which nodes are constant, and the boxes that stand for nodes. */
"use strict";

const MARKS = { "=": "same", "-": "removed", "+": "added", "~": "changed" };

const CONSTANT_OPERATORS = new Set([
  "Constant", "ConstantOfShape", "_arange", "_full", "_ones", "_zeros",
]);

class Graph {
  constructor(data) {
    this.name = data.name;
    this.nodes = data.nodes;
    this.outputs = new Set(data.outputs);
    this.edges = [];
    this.users = this.nodes.map(() => []);
    this.nodes.forEach((node, at) => this.addEdges(node, at));
    for (const edge of this.edges) this.users[edge.from].push(edge);
    this.named = new Map();
    this.nodes.forEach((node, at) => {
      if (!this.named.has(node.name)) this.named.set(node.name, []);
      this.named.get(node.name).push(at);
    });
    this.constant = [];
    for (const node of this.nodes) this.constant.push(this.isConstant(node));
  }

  /* An input that is the same before and after is one edge; otherwise there is one of each. */
  addEdges(node, at) {
    const now = node.inputs || [];
    const was = node.old || now;
    const own = node.status === "-" || node.status === "+" ? node.status : "=";
    now.forEach(([from, output], slot) => {
      const other = was[slot];
      const same = other !== undefined && other[0] === from && other[1] === output;
      this.edges.push({ from, output, to: at, slot, status: same ? own : "+" });
    });
    was.forEach(([from, output], slot) => {
      const other = now[slot];
      if (other === undefined || other[0] !== from || other[1] !== output) {
        this.edges.push({ from, output, to: at, slot, status: "-" });
      }
    });
  }

  /* Weights, and what is computed from constants alone. Nodes come after their inputs. */
  isConstant(node) {
    if (node.op === "") return Boolean(node.weight || node.old_weight) || node.name === "";
    if (node.status !== "=" || node.graphs) return false;
    const inputs = node.inputs || [];
    if (!inputs.length) return CONSTANT_OPERATORS.has(node.op);
    return inputs.every(([from]) => this.constant[from] === true);
  }

  /* The nodes that are not the same, from the inputs down; weights stand by what uses them. */
  changes() {
    const found = [];
    this.nodes.forEach((node, at) => {
      const users = this.users[at];
      const place = this.constant[at] && users.length ? users[0].to - 0.5 : at;
      if (node.status !== "=") found.push([place, at]);
    });
    return found.sort((one, two) => one[0] - two[0]).map(([, at]) => at);
  }

  /* The place of a node among the nodes of its name. */
  numberOf(at) { return this.named.get(this.nodes[at].name).indexOf(at); }

  find(text, most) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const ranked = [[], [], [], []];
    this.nodes.forEach((node, at) => {
      const name = node.name.toLowerCase(), op = node.op.toLowerCase();
      const rank = name === wanted ? 0 : op === wanted ? 1
        : name.startsWith(wanted) ? 2 : name.includes(wanted) || op.includes(wanted) ? 3 : -1;
      if (rank >= 0) ranked[rank].push(at);
    });
    return ranked.flat().slice(0, most);
  }

  /* The boxes that are drawn: one for a node that is not folded, one for each folded block. */
  boxes(folding) {
    const shown = [];
    this.nodes.forEach((node, at) => {
      const hidden = node.name === "" && node.op === "";
      const folded = folding.constants && this.constant[at] && !this.outputs.has(at);
      if (!hidden && !(folded && this.users[at].length)) shown.push(at);
    });
    const blocks = folding.repeats ? repeatedBlocks(this, shown) : [];
    const boxes = [];
    const boxOf = new Map();
    let next = 0;
    for (let i = 0; i < shown.length;) {
      while (next < blocks.length && blocks[next].start < i) next += 1;
      const block = blocks[next];
      const isFolded = block && block.start === i && !folding.open.has(shown[i]);
      const count = isFolded ? block.length : 1;
      const members = shown.slice(i, i + count);
      const box = { nodes: members, block: isFolded ? block : null, at: boxes.length };
      for (const member of members) boxOf.set(member, box);
      boxes.push(box);
      i += count;
    }
    this.assignFolded(boxOf);
    for (const box of boxes) this.describe(box);
    return { boxes, boxOf, edges: this.boxEdges(boxOf) };
  }

  /* A folded constant belongs to the box of the first node that uses it. */
  assignFolded(boxOf) {
    for (let at = this.nodes.length - 1; at >= 0; at -= 1) {
      if (boxOf.has(at)) continue;
      const user = this.users[at].find((edge) => boxOf.has(edge.to));
      if (!user) continue;
      const box = boxOf.get(user.to);
      boxOf.set(at, box);
      (box.folded = box.folded || []).push(at);
    }
  }

  boxEdges(boxOf) {
    const found = new Map();
    for (const edge of this.edges) {
      const from = boxOf.get(edge.from), to = boxOf.get(edge.to);
      if (!from || !to || from === to) continue;
      if ((from.folded || []).includes(edge.from) && this.constant[edge.from]) continue;
      const key = `${from.at} ${to.at}`;
      const known = found.get(key);
      if (!known) found.set(key, { from, to, status: edge.status, edge });
      else if (known.status !== edge.status) known.status = "=";
    }
    return [...found.values()];
  }

  /* The shapes of the folded weights that a node has on a side. */
  weightLine(box, side) {
    const shapes = [];
    for (const at of box.folded || []) {
      const edge = this.users[at].find((each) => each.to === box.nodes[0]);
      const { status, weight, old_weight: old } = this.nodes[at];
      const facts = (side === "before" && old) || weight;
      if (!facts || !stands(status, side) || (edge && !stands(edge.status, side))) continue;
      shapes.unshift(facts.shape.length ? `[${facts.shape.join("×")}]` : "scalar");
    }
    return elided(shapes.join("  "), 38);
  }

  /* What kind of node it is: the operator, or "weight" or "input". */
  static kindOf(node) {
    return node.op || (node.weight || node.old_weight || node.name === "" ? "weight" : "input");
  }

  /* The types of the outputs of a node on a side; where both are shown, those after. */
  typesOf(at, side) {
    const node = this.nodes[at];
    return (side === "before" && node.old_types) || node.types || [];
  }

  describe(box) {
    const members = box.nodes.concat(box.folded || []).map((at) => this.nodes[at]);
    const states = new Set(members.map((node) => node.status));
    const own = this.nodes[box.nodes[0]];
    if (box.block) {
      const names = box.nodes.map((at) => this.nodes[at].op || "input");
      box.title = `Block ${box.block.number} of ${box.block.count}`;
      box.lines = [`${names.length} nodes`, elided([...new Set(names)].join(", "), 34)];
      box.status = states.size === 1 ? own.status : "~";
      return;
    }
    box.title = elided(own.op || "input", 30);
    box.lines = own.name ? [elided(own.name, 34)] : [];
    if (own.line) box.lines.push(elided(own.line, 40));
    box.weights = {
      before: this.weightLine(box, "before"),
      after: this.weightLine(box, "after"),
    };
    box.weights.both = box.weights[own.status === "-" ? "before" : "after"];
    const folded = (box.folded || []).some((at) => this.nodes[at].status !== "=");
    box.status = own.status === "=" && folded ? "~" : own.status;
    box.isInput = own.op === "";
  }
}

/* Whether a node or an edge of this status is part of a side: "before", "after" or "both". */
function stands(status, side) {
  return side === "both" || !(status === "-" && side === "after") && !(status === "+" && side === "before");
}

/* The beginning of a name says less than its end. */
function elided(text, most) {
  return text.length <= most ? text : `${text.slice(0, 8)}…${text.slice(text.length - most + 9)}`;
}
