/* The columns beside the graph: tables and lists at the left, the selected node at the right. */
"use strict";

const MOST_LISTED = 400;

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function heading(text) { return element("h2", { textContent: text }); }

/* A text that may be broken after separators, not inside of words. */
function breakable(text) {
  const made = document.createDocumentFragment();
  for (const part of String(text).split(/(?<=[/._:,;={(-])(?![/._:,;={(-])/)) {
    if (made.childNodes.length) made.append(element("wbr", {}));
    made.append(part);
  }
  return made;
}

/* A number with separators of thousands; small ones with three digits. */
function spelled(value) {
  const size = Math.abs(value);
  if (size === 0 || size >= 0.01) return value.toLocaleString("en");
  return size < 1e-4 ? value.toExponential(2) : value.toPrecision(3);
}

/* A table of pairs or rows; cells that are numbers stand at the right. A wide one scrolls. */
function tableOf(rows, columns) {
  const table = element("table", {});
  const cell = (value, name) => {
    const isNumber = typeof value === "number";
    const made = element(name, { className: columns && isNumber ? "number" : "" });
    made.append(isNumber ? spelled(value) : value instanceof Node ? value : breakable(value));
    return made;
  };
  if (columns) {
    const numbers = columns.map((_, i) => rows.length && rows.every((row) => typeof row[i] === "number"));
    table.append(element("tr", {}, ...columns.map((text, i) =>
      element("th", { textContent: text, className: numbers[i] ? "number" : "" }))));
  }
  for (const row of rows) {
    table.append(element("tr", {}, ...row.map((value, i) => cell(value, !columns && i === 0 ? "th" : "td"))));
  }
  return element("div", { className: "table" }, table);
}

/* An item of a list that leads to a node. `gone`: struck through. */
function nodeItem(graph, at, actions, { detail, slot, gone } = {}) {
  const node = graph.nodes[at];
  const link = element("a", { href: actions.addressOf(graph, at), tabIndex: -1, className: gone ? "was" : "" });
  link.append(breakable(node.name || "(no name)"));
  const item = element("li", { className: MARKS[node.status], tabIndex: 0,
    title: (node.changes || []).map(textOfChange).join("\n") },
    slot === undefined ? null : element("span", { className: "slot", textContent: slot }),
    node.status === "=" ? null : element("span", { className: "mark", textContent: node.status }),
    link, element("span", { className: "op", textContent: detail ?? Graph.kindOf(node) }));
  item.dataset.at = at;
  item.onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    actions.choose(at);
  };
  item.onkeydown = (event) => {
    if (event.key === "Enter") { actions.choose(at); event.stopPropagation(); }
  };
  return item;
}

function textOfChange([what, was, now]) { return was === undefined ? what : `${what}${was} -> ${now}`; }

/* What is found at any time, in a section of its own that is filled anew. */
function fillFound(place, state, actions) {
  const found = state.found;
  place.hidden = found === null;
  if (found === null) { place.replaceChildren(); return; }
  place.replaceChildren(
    heading(found.length === MOST_LISTED ? `The first ${MOST_LISTED} found` : `${found.length} found`),
    element("ol", {}, ...found.map((at) => nodeItem(state.graph, at, actions))));
}

/* The left column: what was found, the summary, tables, the changes, and graphs. */
function fillLeft(place, state, actions) {
  const sections = [element("section", { id: "found", hidden: true })];
  const add = (title, id, ...content) => {
    sections.push(element("section", { id }, heading(title), ...content));
  };
  if (page.facts && page.facts.length) add(page.compares ? "Summary" : "Model", "facts", tableOf(page.facts));
  for (const table of page.tables || []) add(table.title, "", ...foldedTable(table));
  if (page.compares || page.noted) addChanges(add, state, actions);
  if (state.graphs.length > 1) {
    const items = state.graphs.map((other, i) => {
      const path = other.name.split(" / ");
      const item = element("li", { tabIndex: 0, title: other.name });
      const name = element("span", {});
      name.append(breakable(path[path.length - 1]));
      item.append(name, element("span", { className: "op", textContent: `${other.nodes.length} nodes` }));
      item.style.marginLeft = `${10 * Math.min(path.length - 1, 6)}px`;
      item.setAttribute("aria-current", other === state.graph);
      item.onclick = () => actions.open(i);
      item.onkeydown = (event) => { if (event.key === "Enter") actions.open(i); };
      return item;
    });
    add(`Graphs: ${state.graphs.length}`, "graphs", element("ul", {}, ...items));
  }
  place.replaceChildren(...sections);
  fillFound(at("found"), state, actions);
  if (page.compares || page.noted) fillGroups(at("groups"), state, actions);
}

/* A table without the rows that say that nothing changed; those are folded. */
function foldedTable({ rows, columns }) {
  const [first, second] = columns.slice(1);
  const idle = (row) => first === "changed" ? row[1] === 0 : second === "after" && row[1] === row[2];
  const rest = rows.filter((row) => idle(row) && row[0] !== "total");
  if (rest.length < 4) return [tableOf(rows, columns)];
  return [tableOf(rows.filter((row) => !rest.includes(row)), columns),
    element("details", {}, element("summary", { textContent: `${rest.length} without a change` }), tableOf(rest, columns))];
}

/* The numbers of changes, and the filter of their list. */
function addChanges(add, state, actions) {
  const { graph, filter } = state;
  const kinds = { operators: { "-": 0, "+": 0, "~": 0 }, weights: { "-": 0, "+": 0, "~": 0 }, inputs: { "-": 0, "+": 0, "~": 0 } };
  for (const at of graph.changes()) {
    const node = graph.nodes[at];
    kinds[node.op ? "operators" : `${Graph.kindOf(node)}s`][node.status] += 1;
  }
  const rows = Object.entries(kinds).filter(([, count]) => count["-"] + count["+"] + count["~"])
    .map(([kind, count]) => [kind, count["-"], count["+"], count["~"]]);
  const words = element("input", { type: "search", id: "filter", value: filter.text, placeholder: "name, operator, rule or pass" });
  words.setAttribute("aria-label", "Filter the changes");
  words.oninput = () => actions.narrow({ text: words.value });
  const content = [];
  if (page.compares && rows.length) content.push(tableOf(rows, ["", "removed", "added", "changed"]));
  content.push(words);
  if (page.compares) {
    const status = element("select", { id: "status" }, ...[["", "all"], ["-", "removed"], ["+", "added"], ["~", "changed"]]
      .map(([value, textContent]) => element("option", { value, textContent, selected: filter.status === value })));
    status.setAttribute("aria-label", "Status");
    status.onchange = () => actions.narrow({ status: status.value });
    const weights = element("input", { type: "checkbox", id: "weights", checked: filter.weights });
    weights.onchange = () => actions.narrow({ weights: weights.checked });
    content.push(element("div", { className: "row" }, status,
      element("label", {}, weights, " added and removed weights")));
  }
  add(page.noted ? `Different values: ${state.changes.length}` : "Changes", "changes", ...content,
    element("div", { id: "groups" }));
}

/* The changes that the filter leaves, by the rule or pass that made them. */
function fillGroups(place, state, actions) {
  const groups = new Map();
  for (const at of state.changes) {
    const node = state.graph.nodes[at];
    const name = node.cause || (page.noted ? "different" : MARKS[node.status]);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(at);
  }
  const sorted = [...groups].sort((one, two) => two[1].length - one[1].length);
  const most = Math.max(20, Math.floor(MOST_LISTED / Math.max(sorted.length, 1)));
  const parts = sorted.map(([name, members]) => {
    const rest = members.length - most;
    return element("details", { open: true },
      element("summary", {}, breakable(name), element("span", { className: "count", textContent: members.length.toLocaleString("en") })),
      element("ol", {}, ...members.slice(0, most).map((at) => nodeItem(state.graph, at, actions))),
      rest > 0 ? element("div", { className: "more", textContent: `and ${rest.toLocaleString("en")} more; filter, or step with n` }) : null);
  });
  if (!parts.length) parts.push(element("p", { className: "faint", textContent: "none" }));
  place.replaceChildren(...parts);
}

function markCurrent(place, at) {
  const scrolls = place.scrollHeight > place.clientHeight; // where it is narrow, the whole page does
  for (const item of place.querySelectorAll("li[data-at]")) {
    const own = Number(item.dataset.at) === at;
    item.setAttribute("aria-current", own);
    if (own && scrolls) item.scrollIntoView({ block: "nearest" });
  }
}

/* The right column: all about the selected node, on the side that was clicked on. */
function fillRight(place, state, actions) {
  const { graph, side } = state;
  if (state.selected === null) {
    place.replaceChildren(element("p", { className: "faint",
      textContent: "Click on a node for its attributes, shapes and weights. Keys: ?" }));
    return;
  }
  const at = state.selected;
  const node = graph.nodes[at];
  const box = state.layout.boxOf.get(at);
  const title = element("h3", {}, element("a", { href: actions.addressOf(graph, at), title: "The address of this node" }, breakable(node.name || "(no name)")));
  const parts = [title,
    element("div", {},
      element("span", { className: "code", textContent: Graph.kindOf(node) }), " ",
      node.status === "=" ? null : element("span", { className: `status ${MARKS[node.status]}`, textContent: MARKS[node.status] }),
      node.cause ? element("span", { className: "faint" }, " by ", breakable(node.cause)) : null,
      side === "both" ? null : element("span", { className: "faint", textContent: `, shown as it is ${side}` })),
  ];
  if (node.origin) parts.push(element("div", { className: "faint" }, "stands for ", breakable(node.origin.join(", "))));
  if (box && box.block) {
    const button = element("button", { textContent: `Unfold block ${box.block.number} of ${box.block.count}` });
    button.onclick = () => actions.unfold(box);
    parts.push(element("p", {}, button));
  }
  if (node.changes) {
    parts.push(heading(page.noted ? "What differs" : "What changed"), ...node.changes.map(([what, was, now]) =>
      element("div", { className: "change" }, breakable(what),
        was === undefined ? null : element("div", { className: "was" }, breakable(was || "nothing")),
        now === undefined ? null : element("div", { className: "now" }, breakable(now || "nothing")))));
  }
  if (node.attrs) parts.push(heading("Attributes"), tableOf(Object.entries(node.attrs)));
  parts.push(...shapesOf(node, side));
  parts.push(...edgesOf(graph, at, side, actions));
  for (const [facts, title] of [[node.old_weight, "Weight before"], [node.weight, node.old_weight ? "Weight after" : "Weight"]]) {
    if (facts) parts.push(heading(title), ...weightView(facts));
  }
  for (const [from] of inputsOf(node, side)) {
    const input = graph.nodes[from];
    if (graph.constant[from] && input.weight) parts.push(heading(`Weight ${input.name}`), ...weightView(input.weight));
  }
  for (const other of node.graphs || []) {
    const button = element("button", {}, "Open ", breakable(state.graphs[other].name));
    button.onclick = () => actions.open(other);
    parts.push(element("p", {}, button));
  }
  place.replaceChildren(...parts);
  place.scrollTop = 0;
}

function inputsOf(node, side) { return (side === "before" && node.old) || node.inputs || []; }

function shapesOf(node, side) {
  const line = (texts, className) => texts.map((text, i) => text && element("div", { className: "code" },
    texts.length > 1 ? `${i}: ` : null, element("span", { className, textContent: text }))).filter(Boolean);
  const now = line(node.types || [], "");
  if (!node.old_types) return now.length ? [heading("Shapes"), ...now] : [];
  const was = line(node.old_types, side === "both" ? "was" : "");
  return [heading("Shapes"), ...(side === "after" ? [] : was), ...(side === "before" ? [] : now)];
}

function edgesOf(graph, at, side, actions) {
  const node = graph.nodes[at];
  const parts = [];
  const list = (title, id, edges, where, gone) => {
    const known = edges.filter(([, [from]]) => graph.nodes[from].name || graph.nodes[from].op);
    if (!known.length) return;
    parts.push(heading(title), element("ol", { id }, ...known.map(([slot, [from, output]]) => nodeItem(graph, from, actions, {
      slot, gone, detail: `${output ? `:${output} ` : ""}${graph.typesOf(from, where)[output] || Graph.kindOf(graph.nodes[from])}`,
    }))));
  };
  const own = side === "both" && node.status === "-" ? "before" : side;
  const inputs = [...inputsOf(node, own).entries()];
  if (side === "both" && node.old) {
    const other = (slot) => String(node.old[slot]) !== String((node.inputs || [])[slot]);
    list("Inputs before", "inputs-before", [...node.old.entries()].filter(([slot]) => other(slot)), "before", true);
  }
  list("Inputs", "inputs", inputs, own, false);
  const users = new Map();
  for (const edge of graph.users[at]) {
    if (stands(edge.status, own) && stands(graph.nodes[edge.to].status, own)) {
      users.set(edge.to, (users.get(edge.to) ?? true) && edge.status === "-" && node.status !== "-");
    }
  }
  if (users.size) {
    parts.push(heading("Used by"), element("ol", {}, ...[...users].slice(0, 50).map(([to, gone]) => nodeItem(graph, to, actions, { gone }))));
    if (users.size > 50) parts.push(element("div", { className: "more", textContent: `and ${users.size - 50} more` }));
  }
  if (graph.outputs.has(at)) parts.push(element("div", { className: "faint", textContent: "an output of the graph" }));
  return parts;
}

/* What colours and forms mean. */
function fillLegend(place) {
  const known = [["input", "input"], ["operator", "operator"], ["block", "repeated block"]];
  if (page.compares) known.push(["removed", "removed"], ["added", "added"], ["changed", "changed"]);
  if (page.noted) known.push(["changed", "other values"]);
  place.replaceChildren(...known.map(([kind, text]) =>
    element("li", {}, element("span", { className: `swatch ${kind}` }), text)));
}

function weightView(facts) {
  const shape = facts.shape.length ? facts.shape.join(" × ") : "scalar";
  const rows = [["type", facts.type], ["shape", shape], ["bytes", facts.bytes]];
  if (facts.values) rows.push(["values", facts.values.join(", ")]);
  else if (facts.mean !== undefined) {
    rows.push(["least, most", `${facts.least}, ${facts.most}`],
      ["mean, deviation", `${facts.mean}, ${facts.deviation}`], ["zeros", `${(100 * facts.zeros).toFixed(1)} %`]);
  }
  if (facts.nan) rows.push(["NaN", facts.nan]);
  if (facts.infinite) rows.push(["infinite", facts.infinite]);
  if (facts.sample) rows.push(["of a sample of", facts.sample]);
  const parts = [tableOf(rows)];
  if (facts.histogram && !facts.values) parts.unshift(histogram(facts));
  return parts;
}

function histogram(facts) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "histogram");
  svg.setAttribute("viewBox", `0 0 ${facts.histogram.length * 10} 46`);
  svg.setAttribute("preserveAspectRatio", "none");
  const most = Math.max(...facts.histogram);
  facts.histogram.forEach((count, i) => {
    const bar = document.createElementNS(space, "rect");
    const height = count ? Math.max(1, 44 * count / most) : 0;
    for (const [key, value] of Object.entries({ x: 10 * i + 1, y: 46 - height, width: 8, height })) {
      bar.setAttribute(key, value);
    }
    svg.append(bar);
  });
  return svg;
}
