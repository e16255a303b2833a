/* Drawing: what is in view of a layout, on one canvas for each side, and the overview. */
"use strict";

const SMALL = 0.42; // below this scale, text is not drawn

class Drawing {
  constructor(canvases, overview) {
    this.canvases = canvases;
    this.overview = overview;
    this.view = { x: 0, y: 0, scale: 1 };
    this.layout = null;
    this.selected = null;
    this.hovered = null;
    this.sides = ["both"];
    this.waiting = false;
    this.touched = false;
  }

  show(layout) {
    this.layout = layout;
    this.hovered = null;
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["stage", "text", "faint", "line", "box", "edge", "select", "same", "removed",
      "added", "changed", "removed-fill", "added-fill", "changed-fill", "block-fill"];
    return Object.fromEntries(names.map((n) => [n, style.getPropertyValue(`--${n}`).trim()]));
  }

  size() {
    const { clientWidth, clientHeight } = this.canvases[0];
    return { width: clientWidth, height: clientHeight };
  }

  /* Show the top: the first piece, or where it is too wide, its first box. Pieces further down may
     stand further to the side. */
  fit() {
    if (!this.layout || !this.layout.pieces.length) return;
    const { width } = this.size();
    const { left, right, start, end } = this.layout.pieces[0];
    this.view.scale = Math.min(1, Math.max(0.5, (width - 40) / Math.max(right - left, 1)));
    const boxes = this.layout.boxes.slice(start, end);
    const first = boxes.reduce((highest, box) => (box.y < highest.y ? box : highest));
    const isWide = (right - left) * this.view.scale > width;
    const middle = isWide ? first.x : (left + right) / 2;
    this.goTo(middle, this.size().height / 2 / this.view.scale - 34);
  }

  /* Bring a place of the layout to the middle. */
  goTo(x, y) {
    this.view.x = -x;
    this.view.y = -y;
    this.redraw();
  }

  zoom(factor, px, py) {
    const { width, height } = this.size();
    const old = this.view.scale;
    const scale = Math.min(3, Math.max(0.02, old * factor));
    const dx = (px ?? width / 2) - width / 2, dy = (py ?? height / 2) - height / 2;
    this.view.x += dx / scale - dx / old;
    this.view.y += dy / scale - dy / old;
    this.view.scale = scale;
    this.redraw();
  }

  placeAt(px, py) {
    const { width, height } = this.size();
    return {
      x: (px - width / 2) / this.view.scale - this.view.x,
      y: (py - height / 2) / this.view.scale - this.view.y,
    };
  }

  boxAt(px, py, side) {
    const { x, y } = this.placeAt(px, py);
    for (const box of this.boxesBetween(y, y)) {
      if (!stands(box.status, this.sides[side])) continue;
      if (Math.abs(box.x - x) <= box.width / 2 && Math.abs(box.y - y) <= box.height / 2) return box;
    }
    return null;
  }

  boxesBetween(top, bottom) {
    const found = [];
    for (const piece of this.layout.pieces) {
      if (piece.bottom < top || piece.top > bottom) continue;
      for (let i = piece.start; i < piece.end; i += 1) {
        const box = this.layout.boxes[i];
        if (box.y + box.height / 2 >= top && box.y - box.height / 2 <= bottom) found.push(box);
      }
    }
    return found;
  }

  draw() {
    if (!this.layout) return;
    const colours = this.colours();
    this.sides.forEach((side, i) => this.drawSide(this.canvases[i], side, colours));
    this.drawOverview(colours);
  }

  drawSide(canvas, side, colours) {
    const context = prepared(canvas);
    const { width, height } = this.size();
    const { x, y, scale } = this.view;
    context.fillStyle = colours.stage;
    context.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    context.translate(width / 2, height / 2);
    context.scale(scale, scale);
    context.translate(x, y);
    const top = -y - height / 2 / scale, bottom = -y + height / 2 / scale;
    for (const edge of this.layout.edges) {
      if (edge.from.at >= this.layout.done || edge.to.at >= this.layout.done) continue;
      if (!stands(edge.status, side)) continue;
      const low = Math.min(edge.from.y, edge.to.y), high = Math.max(edge.from.y, edge.to.y);
      if (high >= top && low <= bottom) this.drawEdge(context, edge, colours);
    }
    for (const box of this.boxesBetween(top, bottom)) {
      if (stands(box.status, side)) this.drawBox(context, box, colours, side);
    }
  }

  drawEdge(context, edge, colours) {
    const chosen = this.selected && (edge.from === this.selected || edge.to === this.selected);
    const status = MARKS[edge.status];
    context.strokeStyle = chosen ? colours.select : status === "same" ? colours.edge : colours[status];
    context.lineWidth = chosen ? 2 : status === "same" ? 1 : 1.8;
    context.setLineDash(status === "removed" ? [5, 4] : []);
    const end = { x: edge.to.x, y: edge.to.y - edge.to.height / 2 };
    context.beginPath();
    if (edge.points) {
      const points = edge.points;
      context.moveTo(points[0].x, points[0].y);
      for (let i = 1; i < points.length - 1; i += 1) {
        const next = points[i + 1], last = i === points.length - 2;
        const to = last ? next : { x: (points[i].x + next.x) / 2, y: (points[i].y + next.y) / 2 };
        context.quadraticCurveTo(points[i].x, points[i].y, to.x, to.y);
      }
      Object.assign(end, points[points.length - 1]);
    } else {
      const from = { x: edge.from.x, y: edge.from.y + edge.from.height / 2 };
      const bend = Math.min(60, Math.abs(end.y - from.y) / 2);
      context.moveTo(from.x, from.y);
      context.bezierCurveTo(from.x, from.y + bend, end.x, end.y - bend, end.x, end.y);
    }
    context.stroke();
    context.setLineDash([]);
    if (this.view.scale < SMALL) return;
    context.fillStyle = context.strokeStyle;
    context.beginPath();
    context.moveTo(end.x, end.y);
    context.lineTo(end.x - 3.5, end.y - 7);
    context.lineTo(end.x + 3.5, end.y - 7);
    context.fill();
  }

  drawBox(context, box, colours, side) {
    const { width, height } = box;
    const left = box.x - width / 2, top = box.y - height / 2;
    const status = MARKS[box.status];
    const chosen = box === this.selected;
    context.fillStyle = status !== "same" ? colours[`${status}-fill`]
      : box.block ? colours["block-fill"] : colours.box;
    context.strokeStyle = chosen ? colours.select : colours[status];
    context.lineWidth = chosen ? 3 : status !== "same" ? 2 : box === this.hovered ? 2 : 1;
    if (this.view.scale < SMALL) {
      if (status !== "same") context.fillStyle = colours[status];
      context.fillRect(left, top, width, height);
      context.strokeRect(left, top, width, height);
      return;
    }
    if (box.block) {
      context.strokeRect(left + 4, top + 4, width, height);
    }
    context.beginPath();
    context.roundRect(left, top, width, height, box.isInput ? height / 2 : 5);
    context.fill();
    context.stroke();
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = TITLE_FONT;
    context.fillStyle = status === "same" ? colours.text : colours[status];
    context.fillText(box.title, box.x, top + 13);
    context.font = LINE_FONT;
    context.fillStyle = colours.faint;
    linesOf(box, side).forEach((line, i) => context.fillText(line, box.x, top + 28 + 14 * i));
  }

  /* The whole graph in a strip, with the changes and what is in view. */
  drawOverview(colours) {
    const context = prepared(this.overview);
    const wide = this.overview.clientWidth, high = this.overview.clientHeight;
    const scale = high / Math.max(this.layout.height, 1);
    const across = wide / Math.max(this.layout.right - this.layout.left, 1);
    context.fillStyle = colours.stage;
    context.fillRect(0, 0, wide, high);
    const marked = [];
    for (let i = 0; i < this.layout.done; i += 1) {
      const box = this.layout.boxes[i];
      if (box.status !== "=") { marked.push(box); continue; }
      context.fillStyle = colours.same;
      this.drawTick(context, box, scale, across, 0);
    }
    for (const box of marked) {
      context.fillStyle = colours[MARKS[box.status]];
      this.drawTick(context, box, scale, across, 6);
    }
    const shown = this.size().height / this.view.scale;
    context.strokeStyle = colours.select;
    context.lineWidth = 1.5;
    const from = (-this.view.y - shown / 2) * scale;
    context.strokeRect(1, from, wide - 2, Math.max(shown * scale, 4));
  }

  drawTick(context, box, scale, across, more) {
    const left = (box.x - box.width / 2 - this.layout.left) * across;
    const width = Math.max(box.width * across, 2) + more;
    const high = Math.max(box.height * scale, 1) + more / 3;
    context.fillRect(left - more / 2, (box.y - box.height / 2) * scale, width, high);
  }
}

function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
