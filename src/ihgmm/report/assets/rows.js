// The rows of the page. Texts from the data only ever become text of the page.
// The page as it came, before a script has changed it.
const source = root.outerHTML;
const raw = JSON.parse(byId("data").textContent);
const KINDS = { u2: Uint16Array, u4: Uint32Array, f4: Float32Array };

function unpack(packed) {
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new KINDS[packed.type](bytes.buffer);
}

const cluster = unpack(raw.cluster);
const nRows = cluster.length;
const nClusters = raw.nClusters;
const scale = unpack(raw.scale);
const size = Float64Array.from(scale, (v, i) => v * raw.lengths[cluster[i]]);
const certainty = Float32Array.from(unpack(raw.certainty), (v) => v / 65535);
const placeX = unpack(raw.x);
const placeY = unpack(raw.y);
const known = raw.known ? unpack(raw.known) : null;
// Of each row, how many cells were missing and have been filled in.
const filled = raw.filled ? unpack(raw.filled) : null;
const numbers = raw.numbers ? unpack(raw.numbers) : null;

function nameOf(i) {
  if (raw.ids) return raw.ids[i];
  return String(numbers ? numbers[i] : i);
}
// A cluster by its number, and its name where it has one.
const titleOf = (k) => (names[k] ? `${k} ${names[k]}` : String(k));
const knownOf = (i) => raw.classes[known[i]];
const count = (n) => n.toLocaleString("en");
const gapsOf = (i) => (filled && filled[i] ? `${filled[i]} filled` : "");
// As in the tables that are written out; a probability is never none or all.
function percent(share) {
  if (share > 0.999) return "> 99.9%";
  return share < 0.001 ? "< 0.1%" : (100 * share).toFixed(1) + "%";
}
// 0 stands for what is not known.
const sure = (i, write) => (certainty[i] > 0 ? write(certainty[i]) : "");
const figure = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(v >= 0.1 || v === 0 ? 2 : 3));
// Sizes are in the units of the data: three digits, and k, M or G for thousands and so on.
function compact(v) {
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (v >= unit && v < 1e3 * unit) return Number((v / unit).toPrecision(3)) + name;
  }
  return String(Number(v.toPrecision(3)));
}
// A very long name would be laid out in full behind its ellipsis.
const short = (text) => (text.length > 300 ? text.slice(0, 299) + "…" : text);

// The cluster that is singled out, or null; the map, legend and table follow.
let singled = null;
const followers = [];
function singleOut(k) {
  singled = k;
  for (const follow of followers) follow();
}
