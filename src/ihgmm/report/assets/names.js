// Names of clusters: given here, kept by the browser, and saved with the page.
const names = [...raw.names];
// Names that the page was written with are part of the key: a new page starts anew.
const storageKey = `ihgmm names ${raw.key} ${JSON.stringify(raw.names)}`;
const hasNames = () => names.some((name) => name !== "");
const isChanged = () => names.some((name, k) => name !== raw.names[k]);

function keepNames() {
  try {
    if (isChanged()) localStorage.setItem(storageKey, JSON.stringify(names));
    else localStorage.removeItem(storageKey);
    return true;
  } catch {
    return false; // in a notebook, or where the browser keeps nothing
  }
}

function recallNames() {
  try {
    const kept = JSON.parse(localStorage.getItem(storageKey));
    if (!Array.isArray(kept)) return;
    names.forEach((_, k) => {
      if (typeof kept[k] === "string") names[k] = kept[k].slice(0, 80);
    });
  } catch {
    // Nothing was kept, or nothing that can be read.
  }
}

function showNames(kept) {
  for (const shown of document.querySelectorAll(".called[data-cluster]")) shown.textContent = names[shown.dataset.cluster];
  const note = byId("names-kept");
  note.hidden = !isChanged();
  byId("save-page").hidden = !isChanged();
  if (isChanged()) {
    const where = kept ? "This browser keeps the names on this device." : "The names are lost when this page is closed.";
    note.textContent = `${where} To pass them on, save the page, or download the labels below.`;
  }
  for (const follow of followers) follow();
}

// The page as it came, with the names of now.
function namedPage() {
  const copy = new DOMParser().parseFromString(source, "text/html");
  const data = copy.getElementById("data");
  const unsafe = /[<>&\u2028\u2029\ud800-\udfff]/g;
  const text = JSON.stringify({ ...raw, names });
  data.textContent = text.replace(unsafe, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  for (const shown of copy.querySelectorAll(".called")) shown.textContent = names[shown.dataset.cluster];
  return `<!doctype html>\n${copy.documentElement.outerHTML}\n`;
}

function startNames() {
  recallNames();
  for (const field of document.querySelectorAll(".naming input")) {
    const k = Number(field.dataset.cluster);
    field.value = names[k];
    field.hidden = false;
    field.addEventListener("change", () => {
      names[k] = field.value = field.value.trim();
      showNames(keepNames());
    });
  }
  document.querySelector("table.clusters").classList.add("editable");
  byId("save-page").addEventListener("click", () => {
    saveFile([namedPage()], "text/html;charset=utf-8", "report-named.html");
  });
  offerCopy(document.querySelector("table.clusters"));
  showNames(true);
}
