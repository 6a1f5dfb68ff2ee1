// Light and dark, print, and the start of it all.
const root = document.documentElement;
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

function showTheme() {
  byId("theme").textContent = isDark() ? "Light theme" : "Dark theme";
  drawMap();
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
  drawMap();
});
window.addEventListener("afterprint", () => {
  if (before) root.dataset.theme = before;
  else delete root.dataset.theme;
  for (const fold of opened) fold.open = false;
  drawMap();
});

byId("still").hidden = true;
for (const name of ["theme", "plot", "browser"]) byId(name).hidden = false;
startMap();
startTable();
singleOut(null);
showTheme();
