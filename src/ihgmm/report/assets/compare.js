byId("theme").hidden = false;
offerCopy(document.querySelector("table.known"));
showTheme();
