// The table of rows: a page at a time, so that any number of rows stays fast.
const PAGE = 25;
const rowsOf = (n) => `${count(n)} ${n === 1 ? "row" : "rows"}`;
const columns = [
  { title: "Id", key: nameKeys },
  { title: "Cluster", key: () => cluster },
  { title: "Scale", key: () => scale },
  { title: "Size", key: () => size },
  // Rows beyond what is shown as "> 99.9%" are equally sure.
  { title: "Certainty", key: () => certainty.map((v) => Math.min(v, 0.999)) },
];
if (known) columns.push({ title: "Known label", key: () => known });
let found = null;
let lowered = null;
let sorted = { column: -1, down: false };
let page = 0;

// The rank of every name, numbers in names counting as numbers; made on demand.
let ranks = null;
function nameKeys() {
  if (!raw.ids) return Float64Array.from(cluster, (_, i) => i);
  if (ranks === null) {
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    // Only the start of a very long name is looked at.
    const names = raw.ids.map((name) => name.slice(0, 200));
    const order = Uint32Array.from(names, (_, i) => i).sort((a, b) => compare(names[a], names[b]) || a - b);
    ranks = new Uint32Array(nRows);
    order.forEach((i, rank) => (ranks[i] = rank));
  }
  return ranks;
}

function refresh() {
  const wanted = byId("search").value.toLowerCase();
  if (wanted && lowered === null) lowered = Array.from({ length: nRows }, (_, i) => nameOf(i).toLowerCase());
  const rows = [];
  for (let i = 0; i < nRows; i++) {
    if (singled !== null && cluster[i] !== singled) continue;
    if (wanted && !lowered[i].includes(wanted)) continue;
    rows.push(i);
  }
  if (sorted.column >= 0) {
    const key = columns[sorted.column].key();
    const sign = sorted.down ? -1 : 1;
    rows.sort((a, b) => sign * (key[a] - key[b]) || a - b);
  }
  found = rows;
  page = 0;
  showPage();
}

function showPage() {
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  page = Math.min(Math.max(page, 0), pages - 1);
  const rows = found.slice(page * PAGE, (page + 1) * PAGE).map((i) => {
    const row = element("tr");
    const name = element("td");
    const id = element("bdi");
    // A narrow screen may begin a new line after an underscore.
    for (const part of short(nameOf(i)).split(/(?<=_)/)) id.append(part, element("wbr"));
    name.append(id);
    if (gapsOf(i)) name.append(element("span", gapsOf(i), "gaps"));
    const kind = element("td");
    kind.append(element("span", String(cluster[i]), `chip c${cluster[i]}`));
    if (names[cluster[i]]) kind.append(" ", element("bdi", names[cluster[i]], "called"));
    const figures = [figure(scale[i]), compact(size[i]), sure(i, percent) || "–"];
    row.append(name, kind, ...figures.map((text) => element("td", text, "number")));
    if (known) {
      const label = element("td");
      label.append(element("bdi", short(knownOf(i))));
      row.append(label);
    }
    return row;
  });
  if (!rows.length) {
    const cell = element("td", "No row matches.");
    cell.colSpan = columns.length;
    const row = element("tr");
    row.append(cell);
    rows.push(row);
  }
  byId("cells").replaceChildren(...rows);
  const all = found.length === nRows;
  byId("count").textContent = all ? rowsOf(nRows) : `${count(found.length)} of ${rowsOf(nRows)}`;
  // The choice is only there where it is one.
  byId("save-shown").hidden = all || !found.length;
  byId("save-shown").textContent = `Download the ${rowsOf(found.length)} shown (CSV)`;
  byId("page").textContent = `Page ${count(page + 1)} of ${count(pages)}`;
  byId("first").disabled = byId("back").disabled = page === 0;
  byId("next").disabled = byId("last").disabled = page === pages - 1;
}

function sortBy(column) {
  sorted = { column, down: sorted.column === column && !sorted.down };
  [...byId("heads").children].forEach((head, j) => {
    if (j === column) head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  refresh();
}

function csvCell(text, exact) {
  const safe = !exact && isRisky(text) ? `'${text}` : text;
  return /[",;\t\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csv(rows) {
  const exact = byId("exact").checked;
  const named = hasNames();
  const heads = `cluster${named ? ",name" : ""},scale,size,certainty${filled ? ",filled" : ""}${known ? ",known" : ""}`;
  const lines = [`${csvCell(raw.idName, exact)},${heads}`];
  for (const i of rows) {
    const figures = [scale[i], size[i]].map((v) => Number(v.toPrecision(6)));
    const name = named ? `,${csvCell(names[cluster[i]], exact)}` : "";
    let line = `${csvCell(nameOf(i), exact)},${cluster[i]}${name},${figures},${sure(i, (v) => v.toFixed(4))}`;
    if (filled) line += `,${filled[i]}`;
    if (known) line += `,${csvCell(knownOf(i), exact)}`;
    lines.push(line);
  }
  return lines.join("\r\n") + "\r\n";
}

// Without the mark at the start, Excel takes UTF-8 for another code.
const save = (rows, name) => saveFile(["\ufeff", csv(rows)], "text/csv;charset=utf-8", name);

function saveFile(parts, type, name) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function startTable() {
  columns.forEach((column, j) => {
    const head = element("th", undefined, j >= 2 && j <= 4 ? "number" : "");
    head.scope = "col";
    const button = element("button", column.title);
    button.type = "button";
    button.addEventListener("click", () => sortBy(j));
    head.append(button);
    byId("heads").append(head);
  });
  for (let k = 0; k < nClusters; k++) {
    const option = element("option", String(k));
    option.value = String(k);
    byId("filter").append(option);
  }
  byId("filter").addEventListener("change", (event) => {
    singleOut(event.target.value === "" ? null : Number(event.target.value));
  });
  let waiting = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(refresh, 120);
  });
  const turn = (name, to) => byId(name).addEventListener("click", () => {
    page = to();
    showPage();
  });
  turn("first", () => 0);
  turn("back", () => page - 1);
  turn("next", () => page + 1);
  turn("last", () => Infinity);
  // Of very many rows the page holds a part, which is all that it can save.
  const whole = raw.sizes.reduce((sum, size) => sum + size, 0) === nRows;
  byId("save").textContent = `Download ${whole ? "all" : "the"} ${rowsOf(nRows)}${whole ? "" : " of this page"} (CSV)`;
  byId("save").addEventListener("click", () => save(cluster.keys(), "labels.csv"));
  byId("save-shown").addEventListener("click", () => save(found, "labels-shown.csv"));
  byId("gaps").hidden = !filled;
  const risky = isRisky(raw.idName) || (raw.ids || []).some(isRisky) || (raw.classes || []).some(isRisky);
  followers.push(() => {
    byId("guard").hidden = !risky && !names.some(isRisky);
    [...byId("filter").options].slice(1).forEach((option, k) => (option.textContent = titleOf(k)));
    byId("filter").value = singled === null ? "" : String(singled);
    refresh();
  });
}
