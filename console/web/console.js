// Entry: which page the address names.
import { failure, html, nameInAddress, render } from "./common.js";

const main = document.getElementById("main");

async function start() {
  const path = location.pathname;
  for (const link of document.querySelectorAll("nav[aria-label=Console] a")) {
    const own = link.getAttribute("href");
    const is = own === "/console/" ? path === own || path.startsWith("/console/groups/") : path.startsWith(own);
    if (is) link.setAttribute("aria-current", "page");
  }
  main.replaceChildren();
  const group = nameInAddress("groups");
  const topic = nameInAddress("topics");
  if (group !== null) (await import("./group.js")).show(main, group);
  else if (topic !== null) (await import("./topics.js")).showOne(main, topic);
  else if (path.startsWith("/console/topics")) (await import("./topics.js")).showAll(main);
  else if (path === "/console/node") (await import("./node.js")).show(main);
  else (await import("./groups.js")).show(main);
}

start().catch((error) => render(html`${failure(error)}`, main));
