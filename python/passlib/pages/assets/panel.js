/* The columns beside the graph: tables and lists at the left, the selected node at the right. */
"use strict";

const MOST_LISTED = 400;

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function heading(text) { return element("h2", { textContent: text }); }

/* A table of pairs or rows; cells that are numbers stand at the right. */
function tableOf(rows, columns) {
  const table = element("table", {});
  const cell = (value, name) => {
    const text = value instanceof Node ? value : String(value);
    const made = element(name, { className: columns && typeof value === "number" ? "number" : "" });
    made.append(typeof value === "number" ? value.toLocaleString("en") : text);
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
  return table;
}

function nodeItem(graph, at, choose, detail) {
  const node = graph.nodes[at];
  const status = MARKS[node.status];
  const item = element("li", { className: status, tabIndex: 0, title: (node.changes || []).join("\n") },
    node.status === "=" ? null : element("span", { className: "mark", textContent: node.status }),
    element("span", { textContent: node.name || "(no name)" }),
    element("span", { className: "op", textContent: detail ?? (node.op || "input") }));
  item.dataset.at = at;
  item.onclick = () => choose(at);
  item.onkeydown = (event) => {
    if (event.key === "Enter") { choose(at); event.stopPropagation(); }
  };
  return item;
}

/* The left column: facts, graphs, what was found, the changes, and tables. */
function fillLeft(place, state, actions) {
  const sections = [];
  const add = (title, id, ...content) => {
    sections.push(element("section", { id }, heading(title), ...content));
  };
  const graph = state.graph;
  if (state.found !== null) {
    add(state.found.length === MOST_LISTED ? `The first ${MOST_LISTED} found` : `${state.found.length} found`,
      "found", element("ol", {}, ...state.found.map((at) => nodeItem(graph, at, actions.choose))));
  }
  if (page.facts && page.facts.length) add("Model", "facts", tableOf(page.facts));
  if (state.graphs.length > 1) {
    const items = state.graphs.map((other, i) => {
      const item = element("li", { textContent: `${other.name} (${other.nodes.length})`, tabIndex: 0 });
      item.setAttribute("aria-current", other === graph);
      item.onclick = () => actions.open(i);
      return item;
    });
    add("Graphs", "graphs", element("ul", {}, ...items));
  }
  if (page.compares || page.noted) {
    const counts = { "-": 0, "+": 0, "~": 0 };
    for (const at of state.changes) counts[graph.nodes[at].status] += 1;
    const title = page.noted ? `Different values: ${counts["~"]}`
      : `Changes: ${counts["-"]} removed, ${counts["+"]} added, ${counts["~"]} changed`;
    const listed = state.changes.slice(0, MOST_LISTED);
    const rest = state.changes.length - listed.length;
    add(title, "changes",
      element("ol", {}, ...listed.map((at) => nodeItem(graph, at, actions.choose))),
      rest > 0 ? element("div", { className: "more", textContent: `and ${rest} more (n steps on)` }) : null);
  }
  for (const table of page.tables || []) {
    add(table.title, "", tableOf(table.rows, table.columns));
  }
  place.replaceChildren(...sections);
}

function markCurrent(place, at) {
  for (const item of place.querySelectorAll("li[data-at]")) {
    const own = Number(item.dataset.at) === at;
    item.setAttribute("aria-current", own);
    if (own) item.scrollIntoView({ block: "nearest" });
  }
}

/* The right column: all about the selected node. */
function fillRight(place, state, actions) {
  const graph = state.graph;
  if (state.selected === null) {
    place.replaceChildren(element("p", { className: "faint",
      textContent: "Click on a node for its attributes, shapes and weights. Keys: ?" }));
    return;
  }
  const at = state.selected;
  const node = graph.nodes[at];
  const box = state.layout.boxOf.get(at);
  const parts = [
    element("h3", { textContent: node.name || "(no name)" }),
    element("div", {},
      element("span", { className: "code", textContent: node.op || (node.weight ? "weight" : "input") }), " ",
      node.status === "=" ? null : element("span", { className: `status ${MARKS[node.status]}`, textContent: MARKS[node.status] })),
  ];
  if (node.origin) parts.push(element("div", { className: "faint", textContent: `stands for ${node.origin.join(", ")}` }));
  if (box && box.block) {
    const button = element("button", { textContent: `Unfold block ${box.block.number} of ${box.block.count}` });
    button.onclick = () => actions.unfold(box);
    parts.push(element("p", {}, button));
  }
  if (node.changes) {
    parts.push(heading(page.noted ? "What differs" : "What changed"), element("ul", {}, ...node.changes.map((text) => {
      const [, what, was, now] = /^([^:]*:? ?)(.*) -> (.*)$/s.exec(text) || [null, text, "", ""];
      return element("div", {}, what, was ? element("span", { className: "was", textContent: was }) : null,
        was ? " " : null, now ? element("span", { className: "now", textContent: now }) : null);
    })));
  }
  if (node.attrs) parts.push(heading("Attributes"), tableOf(Object.entries(node.attrs)));
  const types = (node.types || []).filter(Boolean);
  if (types.length) parts.push(heading("Shapes"), ...types.map((text, i) =>
    element("div", { className: "code", textContent: types.length > 1 ? `${i}: ${text}` : text })));
  parts.push(...edgesOf(graph, at, actions));
  for (const [facts, title] of [[node.old_weight, "Weight before"], [node.weight, node.old_weight ? "Weight after" : "Weight"]]) {
    if (facts) parts.push(heading(title), ...weightView(facts));
  }
  for (const [from] of node.inputs || []) {
    const input = graph.nodes[from];
    if (graph.constant[from] && input.weight) parts.push(heading(`Weight ${input.name}`), ...weightView(input.weight));
  }
  for (const other of node.graphs || []) {
    const button = element("button", { textContent: `Open ${state.graphs[other].name}` });
    button.onclick = () => actions.open(other);
    parts.push(element("p", {}, button));
  }
  place.replaceChildren(...parts);
  place.scrollTop = 0;
}

function edgesOf(graph, at, actions) {
  const parts = [];
  const inputs = (graph.nodes[at].inputs || []).filter(([from]) => graph.nodes[from].name || graph.nodes[from].op);
  const typeOf = (from, output) => (graph.nodes[from].types || [])[output] || graph.nodes[from].op;
  if (inputs.length) {
    parts.push(heading("Inputs"), element("ol", {}, ...inputs.map(([from, output]) =>
      nodeItem(graph, from, actions.choose, `${output ? `:${output} ` : ""}${typeOf(from, output)}`))));
  }
  const users = [...new Set(graph.users[at].map((edge) => edge.to))];
  if (users.length) {
    parts.push(heading("Used by"), element("ol", {}, ...users.slice(0, 50).map((to) => nodeItem(graph, to, actions.choose))));
    if (users.length > 50) parts.push(element("div", { className: "more", textContent: `and ${users.length - 50} more` }));
  }
  if (graph.outputs.has(at)) parts.push(element("div", { className: "faint", textContent: "an output of the graph" }));
  return parts;
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
