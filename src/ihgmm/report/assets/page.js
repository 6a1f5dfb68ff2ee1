// Light and dark, print, and the table to copy.
const byId = (name) => document.getElementById(name);

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// What is drawn by script, and has to be drawn again in other colours.
const drawings = [];
const redraw = () => drawings.forEach((draw) => draw());
const root = document.documentElement;
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

function showTheme() {
  byId("theme").textContent = isDark() ? "Light theme" : "Dark theme";
  redraw();
}

byId("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
dark.addEventListener("change", showTheme);

// Paper is white: canvases are drawn again before they are printed.
const folds = document.querySelectorAll("details");
let before = null;
let opened = [];
window.addEventListener("beforeprint", () => {
  before = root.dataset.theme;
  root.dataset.theme = "light";
  opened = [...folds].filter((fold) => !fold.open);
  for (const fold of opened) fold.open = true;
  redraw();
});
window.addEventListener("afterprint", () => {
  if (before) root.dataset.theme = before;
  else delete root.dataset.theme;
  for (const fold of opened) fold.open = false;
  redraw();
});

// What a spreadsheet would take for a formula; plain numbers are harmless.
const RISKY = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const isRisky = (text) => {
  const bare = text.replace(/^'+/, "");
  return RISKY.test(bare) && !(bare === text && NUMBER.test(text));
};

// A table as spreadsheets take it from the clipboard: a cell per tab, no formula.
function tabbed(table) {
  const cell = (made) => {
    const field = made.querySelector("input");
    // A number that is shown in short, as 6.97k, has its digits beside it.
    const text = made.dataset.number ?? (field ? field.value : made.textContent).replace(/\s+/g, " ").trim();
    const plain = /^[\d,]+$/.test(text) ? text.replaceAll(",", "") : text.replace("·", "0");
    return isRisky(plain) ? `'${plain}` : plain;
  };
  const lines = [...table.rows].map((row) => [...row.cells].filter((made) => !made.matches(".scales")).map(cell));
  return lines.map((line) => line.join("\t")).join("\n") + "\n";
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where a page may not write to the clipboard, the user's own command may.
    const field = element("textarea", text, "unseen");
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

function offerCopy(table) {
  const button = byId("copy");
  const words = button.textContent;
  byId("cluster-tools").hidden = false;
  button.addEventListener("click", async () => {
    await copyText(tabbed(table));
    button.focus();
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = words), 2000);
  });
}
