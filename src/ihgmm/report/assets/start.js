// The start of it all.
drawings.push(drawMap);
byId("still").hidden = true;
for (const name of ["theme", "plot", "browser"]) byId(name).hidden = false;
startMap();
startTable();
startNames();
showTheme();
