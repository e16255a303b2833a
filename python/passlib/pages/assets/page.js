/* The page: what is selected and shown, and what the mouse and the keys do. */
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);
const MANY_NODES = 150; // from which on repeated blocks are folded at first

const at = (id) => document.getElementById(id);
const drawing = new Drawing([at("canvas0"), at("canvas1")], at("overview"));

const state = {
  graphs: page.graphs.map((data) => new Graph(data)),
  graph: null,
  layout: null,
  selected: null,
  side: "both", // the side of which the selected node is shown
  found: null,
  filter: { text: "", status: "", weights: false },
  changes: [], // those that the filter leaves
  change: -1,
  folding: { constants: true, repeats: false, open: new Set() },
  sideBySide: false,
};

const actions = {
  /* Select a node, and bring it into view. */
  choose(node) {
    state.selected = node;
    state.side = "both";
    document.querySelector("main").scrollTop = 0;
    let box = state.layout.boxOf.get(node);
    if (!box) {
      state.folding.constants = false;
      actions.lay();
      box = state.layout.boxOf.get(node);
    }
    state.change = state.changes.indexOf(node);
    if (box) {
      state.layout.upTo(box);
      drawing.selected = box;
      if (drawing.view.scale < 0.6) drawing.view.scale = 0.8;
      drawing.goTo(box.x, box.y);
    }
    actions.show();
  },

  /* Step through the changes. */
  step(by) {
    const count = state.changes.length;
    if (!count) return;
    const next = state.change < 0 ? (by > 0 ? 0 : count - 1) : (state.change + by + count) % count;
    const node = state.changes[next];
    const box = state.layout.boxOf.get(node);
    if (box && box.block) actions.unfold(box);
    actions.choose(node);
    state.change = next;
    actions.show();
  },

  unfold(box) {
    for (const other of state.layout.boxes) {
      if (other.block && other.at === box.at) state.folding.open.add(other.nodes[0]);
    }
    actions.lay();
    if (state.selected !== null) actions.choose(state.selected);
  },

  toggle(what) {
    state.folding[what] = !state.folding[what];
    state.folding.open = new Set();
    actions.lay();
    if (state.selected !== null) actions.choose(state.selected);
    else { drawing.touched = false; drawing.fit(); }
  },

  open(number) {
    state.graph = state.graphs[number];
    Object.assign(state, { selected: null, side: "both", found: null });
    const kept = (at) => state.graph.nodes[at].op || state.graph.nodes[at].status === "~";
    state.filter = { text: "", status: "", weights: !state.graph.changes().some(kept) };
    actions.filter();
    state.folding = { constants: true, repeats: state.graph.nodes.length > MANY_NODES, open: new Set() };
    at("search").value = "";
    drawing.touched = false;
    actions.lay();
    drawing.fit();
    fillLeft(at("left"), state, actions);
    actions.show();
  },

  search(text) {
    state.found = text.trim() ? state.graph.find(text, MOST_LISTED) : null;
    fillFound(at("found"), state, actions);
    if (state.found) at("found").scrollIntoView({ block: "nearest" });
  },

  /* Keep the changes that fit the filter. */
  filter() {
    const { text, status, weights } = state.filter;
    const wanted = text.trim().toLowerCase();
    state.changes = state.graph.changes().filter((at) => {
      const node = state.graph.nodes[at];
      if (status && node.status !== status) return false;
      if (!weights && !node.op && node.status !== "~") return false;
      return [node.name, node.op, node.cause || ""].some((each) => each.toLowerCase().includes(wanted));
    });
    state.change = state.changes.indexOf(state.selected);
  },

  narrow(what) {
    Object.assign(state.filter, what);
    actions.filter();
    fillGroups(at("groups"), state, actions);
    actions.show();
  },

  /* The address of a node; a number tells nodes of one name apart. */
  addressOf(graph, node) {
    const parts = new URLSearchParams();
    if (graph !== state.graphs[0]) parts.set("graph", graph.name);
    parts.set("node", graph.nodes[node].name);
    const number = graph.numberOf(node);
    if (number) parts.set("number", number + 1);
    return `#${parts}`;
  },

  /* Go to the node of the address, if there is one. */
  follow() {
    const parts = new URLSearchParams(location.hash.slice(1));
    if (!parts.has("node")) return;
    const graph = state.graphs.findIndex((each) => each.name === parts.get("graph"));
    if (state.graphs[Math.max(graph, 0)] !== state.graph) actions.open(Math.max(graph, 0));
    const named = state.graph.named.get(parts.get("node")) || [];
    const node = named[Number(parts.get("number") || 1) - 1];
    if (node !== undefined && node !== state.selected) actions.choose(node);
  },

  /* Lay out anew: the first piece at once, the others while nothing else happens. */
  lay() {
    state.layout = new Layout(state.graph, state.folding);
    drawing.selected = null;
    const own = state.layout;
    const more = () => {
      if (own !== state.layout) return;
      const until = performance.now() + 40;
      while (!own.complete && performance.now() < until) own.next();
      at("progress").hidden = own.complete;
      at("progress").textContent = `${own.done} of ${own.boxes.length} laid out`;
      if (!drawing.touched && state.selected === null) drawing.fit();
      drawing.redraw();
      if (!own.complete) setTimeout(more);
    };
    if (!own.complete) own.next();
    drawing.show(own);
    setTimeout(more);
    for (const what of ["constants", "repeats"]) at(what).setAttribute("aria-pressed", state.folding[what]);
  },

  show() {
    fillRight(at("right"), state, actions);
    // A frame of a notebook has no address.
    if (state.selected !== null && location.protocol !== "about:") {
      history.replaceState(null, "", actions.addressOf(state.graph, state.selected));
    }
    markCurrent(at("left"), state.selected);
    at("place").textContent = state.changes.length
      ? `${state.change < 0 ? "–" : state.change + 1} / ${state.changes.length}` : "no change";
    drawing.redraw();
  },

  sides() {
    state.sideBySide = !state.sideBySide;
    state.side = "both";
    at("second").hidden = !state.sideBySide;
    drawing.sides = state.sideBySide ? ["before", "after"] : ["both"];
    at("label0").textContent = state.sideBySide ? "before" : "";
    at("label1").textContent = state.sideBySide ? "after" : "";
    at("sides").setAttribute("aria-pressed", state.sideBySide);
    actions.show();
  },

  theme(name) {
    document.documentElement.dataset.theme = name;
    at("theme").textContent = name === "dark" ? "Light" : "Dark";
    drawing.redraw();
  },

  /* To an input, or a user, of the selected node. */
  walk(forward) {
    if (state.selected === null) return;
    const { nodes, users, constant } = state.graph;
    const next = forward ? users[state.selected].map((edge) => edge.to)
      : (nodes[state.selected].inputs || []).map(([from]) => from).filter((from) => !constant[from]);
    if (next.length) actions.choose(next[0]);
  },
};

const KEYS = [
  ["/", "find a node", () => at("search").focus()],
  ["n", "next change", () => actions.step(1)],
  ["p", "previous change", () => actions.step(-1)],
  ["s", "side by side, or one over the other", () => page.compares && actions.sides()],
  ["f", "fold repeated blocks, or unfold them", () => actions.toggle("repeats")],
  ["c", "fold constants, or unfold them", () => actions.toggle("constants")],
  ["ArrowUp", "to the first input of the selected node", () => actions.walk(false)],
  ["ArrowDown", "to the first user of the selected node", () => actions.walk(true)],
  ["+", "larger", () => drawing.zoom(1.25)],
  ["-", "smaller", () => drawing.zoom(0.8)],
  ["0", "fit the width, at the top", () => drawing.fit()],
  ["d", "dark or light", () => actions.theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark")],
  ["Escape", "select nothing", () => { state.selected = null; drawing.selected = null; actions.search(""); actions.show(); }],
  ["?", "these keys", () => at("keys").showModal()],
];

function listenToKeys() {
  at("keys").append(heading("Keys"), tableOf(KEYS.map(([key, what]) => [element("kbd", { textContent: key }), what])));
  at("keys").onclick = () => at("keys").close();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || at("keys").open) return;
    if (event.target !== at("search") && /^(INPUT|SELECT|SUMMARY)$/.test(event.target.tagName)) return;
    if (event.target === at("search")) {
      if (event.key === "Enter" && state.found && state.found.length) {
        actions.choose(state.found[0]);
        at("search").blur();
      } else if (event.key === "Escape") at("search").blur();
      return;
    }
    const known = KEYS.find(([key]) => key === event.key);
    if (!known) return;
    event.preventDefault();
    known[2]();
  });
}

function listenToMouse(canvas, side) {
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) {
      const box = drawing.boxAt(event.offsetX, event.offsetY, side);
      canvas.style.cursor = box ? "pointer" : "";
      if (box !== drawing.hovered) { drawing.hovered = box; drawing.redraw(); }
      return;
    }
    const dx = event.clientX - held.x, dy = event.clientY - held.y;
    if (!held.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    Object.assign(held, { x: event.clientX, y: event.clientY, moved: true });
    canvas.classList.add("held");
    drawing.touched = true;
    drawing.view.x += dx / drawing.view.scale;
    drawing.view.y += dy / drawing.view.scale;
    drawing.redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    canvas.classList.remove("held");
    if (held && !held.moved) {
      const box = drawing.boxAt(event.offsetX, event.offsetY, side);
      state.selected = box ? box.nodes[0] : null;
      state.side = drawing.sides[side];
      state.change = state.changes.indexOf(state.selected);
      drawing.selected = box;
      drawing.touched = true;
      actions.show();
    }
    held = null;
  });
  canvas.addEventListener("dblclick", (event) => {
    const box = drawing.boxAt(event.offsetX, event.offsetY, side);
    if (box && box.block) actions.unfold(box);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    drawing.touched = true;
    if (event.ctrlKey || event.metaKey) {
      drawing.zoom(Math.exp(-event.deltaY / 200), event.offsetX, event.offsetY);
    } else {
      drawing.view.x -= event.deltaX / drawing.view.scale;
      drawing.view.y -= event.deltaY / drawing.view.scale;
      drawing.redraw();
    }
  }, { passive: false });
}

function listenToOverview(canvas) {
  const go = (event) => {
    if (!event.buttons) return;
    drawing.touched = true;
    drawing.goTo(-drawing.view.x, event.offsetY / canvas.clientHeight * state.layout.height);
  };
  canvas.addEventListener("pointerdown", go);
  canvas.addEventListener("pointermove", go);
}

/* Print in light colours, with the graph as it is seen. */
function listenToPrinting() {
  let theme = null;
  window.addEventListener("beforeprint", () => {
    theme = document.documentElement.dataset.theme;
    actions.theme("light");
    drawing.draw();
  });
  window.addEventListener("afterprint", () => actions.theme(theme));
}

function start() {
  at("title").append(breakable(page.title));
  at("summary").textContent = (page.facts || []).filter(([name]) => name === "operators").map(([, text]) => `${text} operators`).join("");
  for (const id of ["previous", "next", "place"]) at(id).hidden = !(page.compares || page.noted);
  at("sides").hidden = !page.compares;
  at("previous").onclick = () => actions.step(-1);
  at("next").onclick = () => actions.step(1);
  at("sides").onclick = () => actions.sides();
  at("repeats").onclick = () => actions.toggle("repeats");
  at("constants").onclick = () => actions.toggle("constants");
  at("fit").onclick = () => drawing.fit();
  at("theme").onclick = () => KEYS.find(([key]) => key === "d")[2]();
  at("help").onclick = () => at("keys").showModal();
  at("search").oninput = (event) => actions.search(event.target.value);
  listenToKeys();
  listenToMouse(at("canvas0"), 0);
  listenToMouse(at("canvas1"), 1);
  listenToOverview(at("overview"));
  listenToPrinting();
  fillLegend(at("legend"));
  new ResizeObserver(() => drawing.redraw()).observe(at("stage"));
  actions.theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  actions.open(0);
  actions.follow();
  window.addEventListener("hashchange", () => actions.follow());
}

start();
