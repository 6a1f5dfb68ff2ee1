// The map: points on one canvas, what is pointed at on another above it.
const stage = byId("stage");
const points = byId("points");
const marks = byId("marks");
const tip = byId("tip");
const PAD = 34;
const CELL = 16;
const LAYERS = 8;
const view = { zoom: 1, x: 0.5, y: 0.5 };
let wide = 0;
let high = 0;
let px = new Float32Array(nRows);
let py = new Float32Array(nRows);
let cells = new Map();
let pointed = -1;

const members = Array.from({ length: nClusters }, () => []);
for (let i = 0; i < nRows; i++) members[cluster[i]].push(i);

function place() {
  let spanX = wide - 2 * PAD;
  let spanY = high - 2 * PAD;
  if (raw.aspect !== null) {
    const unit = Math.min(spanY, spanX / raw.aspect);
    spanX = unit * raw.aspect;
    spanY = unit;
  }
  spanX *= view.zoom;
  spanY *= view.zoom;
  cells = new Map();
  for (let i = 0; i < nRows; i++) {
    px[i] = wide / 2 + (placeX[i] / 65535 - view.x) * spanX;
    py[i] = high / 2 - (placeY[i] / 65535 - view.y) * spanY;
    const cell = cellOf(px[i], py[i]);
    const there = cells.get(cell);
    if (there) there.push(i);
    else cells.set(cell, [i]);
  }
  return [spanX, spanY];
}

const cellOf = (x, y) => Math.floor(x / CELL) * 65536 + Math.floor(y / CELL);

function sized(canvas) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(wide * ratio);
  canvas.height = Math.round(high * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

function drawMap() {
  wide = stage.clientWidth;
  high = stage.clientHeight;
  if (!wide || !high) return;
  place();
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const pen = sized(points);
  const radius = Math.min(5, (nRows < 400 ? 4 : nRows < 4000 ? 3 : nRows < 20000 ? 2 : 1.1) * Math.sqrt(view.zoom));
  const others = [];
  const front = [];
  for (let k = 0; k < nClusters; k++) (singled === null || singled === k ? front : others).push(k);
  pen.globalAlpha = 0.6;
  for (const k of others) dots(pen, members[k], color("--dim"), radius, 0, 1);
  pen.globalAlpha = nRows < 4000 ? 0.8 : 0.6;
  // In turns, so that no cluster lies on top of all others.
  for (let turn = 0; turn < LAYERS; turn++) {
    for (const k of front) dots(pen, members[k], color(`--c${k}`), radius, turn, LAYERS);
  }
  pen.globalAlpha = 1;
  writeNumbers(pen, color("--ink"), color("--ground"));
  drawMark();
}

function dots(pen, rows, color, radius, start, step) {
  pen.fillStyle = color;
  const round = nRows <= 20000;
  if (round) pen.beginPath();
  for (let j = start; j < rows.length; j += step) {
    const x = px[rows[j]];
    const y = py[rows[j]];
    if (x < -9 || y < -9 || x > wide + 9 || y > high + 9) continue;
    if (round) {
      pen.moveTo(x + radius, y);
      pen.arc(x, y, radius, 0, 6.2832);
    } else pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  }
  if (round) pen.fill();
}

function writeNumbers(pen, ink, ground) {
  const crowded = nClusters > 20 && wide < 600;
  pen.font = `650 ${crowded ? 10 : 14}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  const centres = members.map((rows) => [median(rows, px), median(rows, py)]);
  for (let k = 0; k < nClusters; k++) {
    if (!members[k].length || (singled !== null && singled !== k)) continue;
    pen.lineWidth = crowded ? 2.5 : 4;
    pen.strokeStyle = ground;
    const full = titleOf(k);
    const most = wide < 420 ? 12 : 20;
    const text = full.length > most ? `${full.slice(0, most - 1)}…` : full;
    const half = pen.measureText(text).width / 2 + 4;
    const [x, y] = numberPlace(k, half, centres);
    pen.strokeText(text, x, y);
    pen.fillStyle = ink;
    pen.fillText(text, x, y);
  }
}

// Where the number or name of a cluster stands: beyond its rows, seen from the middle of the map, so that it
// hides none. Of many clusters, which have no room around them, it is in their middle.
function numberPlace(k, half, centres) {
  let [x, y] = centres[k];
  const inSight = x > 0 && x < wide && y > 0 && y < high;
  if (nClusters <= 12) {
    const used = centres.filter((_, j) => members[j].length);
    const dx = x - used.reduce((sum, centre) => sum + centre[0], 0) / used.length;
    const dy = y - used.reduce((sum, centre) => sum + centre[1], 0) / used.length;
    const length = Math.hypot(dx, dy);
    const [right, down] = length > 1 ? [dx / length, dy / length] : [0, -1];
    let far = 0;
    for (const i of members[k]) {
      const [across, below] = [px[i] - x, py[i] - y];
      const beside = Math.abs(across * down - below * right);
      if (beside < half + 48) far = Math.max(far, across * right + below * down);
    }
    x += right * (far + 6 + half);
    y += down * (far + 14);
  }
  // It stays in sight with its cluster, at the side of the map too.
  if (!inSight) return [x, y];
  return [Math.min(Math.max(x, half), wide - half), Math.min(Math.max(y, 10), high - 10)];
}

function median(rows, values) {
  const step = Math.ceil(rows.length / 999);
  const some = [];
  for (let j = 0; j < rows.length; j += step) some.push(values[rows[j]]);
  some.sort((a, b) => a - b);
  return some[some.length >> 1];
}

function drawMark() {
  const pen = sized(marks);
  tip.hidden = pointed < 0;
  if (pointed < 0) return;
  const style = getComputedStyle(document.documentElement);
  const x = px[pointed];
  const y = py[pointed];
  pen.beginPath();
  pen.arc(x, y, 8, 0, 6.2832);
  pen.lineWidth = 5;
  pen.strokeStyle = style.getPropertyValue("--ground");
  pen.stroke();
  pen.lineWidth = 2.5;
  pen.strokeStyle = style.getPropertyValue("--ink");
  pen.stroke();
  const lines = [element("b", short(nameOf(pointed)))];
  lines[0].dir = "auto";
  for (const text of factsOf(pointed)) lines.push(element("span", text));
  tip.replaceChildren(...lines);
  const left = x + 16 + tip.offsetWidth > wide ? x - 16 - tip.offsetWidth : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.min(Math.max(4, y - tip.offsetHeight / 2), high - tip.offsetHeight - 4)}px`;
}

function factsOf(i) {
  const facts = [
    `Cluster ${titleOf(cluster[i])}`,
    `Scale ${figure(scale[i])}`,
    `Size ${compact(size[i])}`,
    `Certainty ${sure(i, percent) || "not known"}`,
  ];
  if (gapsOf(i)) facts.push(`${filled[i] === 1 ? "1 cell" : `${filled[i]} cells`} filled in`);
  if (known) facts.push(`Known label ${short(knownOf(i))}`);
  return facts;
}

function pointAt(i) {
  if (i === pointed) return;
  pointed = i;
  drawMark();
}

function nearest(x, y) {
  let best = -1;
  let least = CELL * CELL;
  for (let a = -1; a <= 1; a++) {
    for (let b = -1; b <= 1; b++) {
      for (const i of cells.get(cellOf(x + a * CELL, y + b * CELL)) || []) {
        if (singled !== null && cluster[i] !== singled) continue;
        const far = (px[i] - x) ** 2 + (py[i] - y) ** 2;
        if (far < least) {
          least = far;
          best = i;
        }
      }
    }
  }
  return best;
}

// The next row in a direction: near, and not far off to the side.
function stepFrom(i, dx, dy) {
  let best = -1;
  let least = Infinity;
  for (let j = 0; j < nRows; j++) {
    if (j === i || (singled !== null && cluster[j] !== singled)) continue;
    const x = px[j] - px[i];
    const y = py[j] - py[i];
    const along = x * dx + y * dy;
    if (along < 0.5) continue;
    const cost = along + 3 * Math.abs(x * dy - y * dx);
    if (cost < least) {
      least = cost;
      best = j;
    }
  }
  return best < 0 ? i : best;
}

function zoomBy(factor) {
  view.zoom = Math.min(40, Math.max(1, view.zoom * factor));
  if (view.zoom === 1) view.x = view.y = 0.5;
  byId("closer").disabled = view.zoom >= 40;
  byId("wider").disabled = byId("whole").disabled = view.zoom === 1;
  drawMap();
}

function pan(dx, dy) {
  const [spanX, spanY] = place();
  view.x = Math.min(1, Math.max(0, view.x - dx / spanX));
  view.y = Math.min(1, Math.max(0, view.y + dy / spanY));
  drawMap();
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
stage.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const arrow = ARROWS[event.key];
  if (arrow && nRows) {
    pointAt(pointed < 0 ? middleRow() : stepFrom(pointed, ...arrow));
    const away = px[pointed] < 0 || py[pointed] < 0 || px[pointed] > wide || py[pointed] > high;
    if (away) pan(wide / 2 - px[pointed], high / 2 - py[pointed]);
    byId("reading").textContent = [short(nameOf(pointed)), ...factsOf(pointed)].join(", ");
  } else if (event.key === "Enter" && pointed >= 0) toggle(cluster[pointed]);
  else if (event.key === "Escape") {
    pointAt(-1);
    singleOut(null);
  } else if (event.key === "+" || event.key === "=") zoomBy(1.6);
  else if (event.key === "-") zoomBy(1 / 1.6);
  else if (event.key === "0") zoomBy(0);
  else return;
  event.preventDefault();
});

function middleRow() {
  let best = 0;
  let least = Infinity;
  for (let i = 0; i < nRows; i++) {
    if (singled !== null && cluster[i] !== singled) continue;
    const far = (px[i] - wide / 2) ** 2 + (py[i] - high / 2) ** 2;
    if (far < least) {
      least = far;
      best = i;
    }
  }
  return best;
}

let held = null;
stage.addEventListener("pointerdown", (event) => {
  held = { x: event.clientX, y: event.clientY, moved: false };
});
stage.addEventListener("pointermove", (event) => {
  const box = points.getBoundingClientRect();
  if (held && event.buttons && view.zoom > 1) {
    const dx = event.clientX - held.x;
    const dy = event.clientY - held.y;
    if (held.moved || Math.hypot(dx, dy) > 4) {
      held = { x: event.clientX, y: event.clientY, moved: true };
      pan(dx, dy);
    }
    return;
  }
  pointAt(nearest(event.clientX - box.left, event.clientY - box.top));
});
stage.addEventListener("pointerleave", () => {
  held = null;
  pointAt(-1);
});
stage.addEventListener("click", (event) => {
  const dragged = held && held.moved;
  held = null;
  if (dragged) return;
  const box = points.getBoundingClientRect();
  const i = nearest(event.clientX - box.left, event.clientY - box.top);
  if (i >= 0) toggle(cluster[i]);
  else singleOut(null);
});
stage.addEventListener("blur", () => pointAt(-1));

const toggle = (k) => singleOut(singled === k ? null : k);

function startMap() {
  const keys = [];
  for (let k = 0; k < nClusters; k++) {
    const button = element("button");
    button.type = "button";
    const name = element("bdi", "", "called");
    name.dataset.cluster = k;
    button.append(element("span", String(k), `chip c${k}`), name, element("span", count(raw.sizes[k]), "size"));
    button.addEventListener("click", () => toggle(k));
    const item = element("li");
    item.append(button);
    keys.push([item, button]);
  }
  byId("legend").append(...keys.map(([item]) => item));
  byId("all").addEventListener("click", () => singleOut(null));
  byId("closer").addEventListener("click", () => zoomBy(1.6));
  byId("wider").addEventListener("click", () => zoomBy(1 / 1.6));
  byId("whole").addEventListener("click", () => zoomBy(0));
  const parts = raw.sizes.slice(0, 20).map((size, k) => `cluster ${k} has ${count(size)}`);
  points.setAttribute(
    "aria-label",
    `Scatter plot of ${count(nRows)} rows in ${nClusters} clusters: ${parts.join(", ")}` +
      `${nClusters > 20 ? " and so on" : ""}. The tables below give the figures.`,
  );
  followers.push(() => {
    keys.forEach(([, button], k) => {
      const rows = raw.sizes[k] === 1 ? "row" : "rows";
      button.setAttribute("aria-pressed", String(singled === k));
      button.setAttribute("aria-label", `Cluster ${titleOf(k)}, ${count(raw.sizes[k])} ${rows}`);
    });
    byId("all").disabled = singled === null;
    pointed = -1;
    drawMap();
  });
  // The box has the shape of what it shows, within what screens have room for.
  stage.style.aspectRatio = Math.min(1.45, Math.max(1, raw.aspect ?? 1.45));
  new ResizeObserver(drawMap).observe(stage);
}
