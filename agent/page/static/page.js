// The page in the browser: puts parts where those of the same id are, and takes keys. It has no
// rules: what is shown is painted on the server. All that comes is parsed without running anything.

import { keys } from "./keys.js";
import { copy } from "./copy.js";
import { showSound, watchBench } from "./bench.js";
import { watchPictures } from "./picture.js";
import { followConsole, isPaused, showPause } from "./console.js";

const root = document.documentElement;
const parser = new DOMParser();
const AGAIN_MS = 2000; // between two tries to reach a server that went away
const SILENT_MS = 15000; // a server that is there sends its clock every 5 s
const SAY_MS = 10000; // between two sentences for a screen reader
let source = null;
let heardAt = 0; // when the stream last sent something
let newest = null; // what came since the last frame
let held = {}; // orders that wait until the pointer or the focus has left
let toSay = [];
let saidAt = -SAY_MS;

// --- parts

// All parts that came, by their ids: parsed in one go, for what a document costs.
function parsed(parts) {
  const { body } = parser.parseFromString(Object.values(parts).join(""), "text/html");
  return new Map([...body.children].map((part) => [part.id, part]));
}

// Makes `old` like `next` and touches only what differs: focus, selection and scrolling stay.
function morph(old, next) {
  if (old.isEqualNode(next)) return;
  if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName) {
    old.replaceWith(next);
  } else if (old.nodeType === Node.TEXT_NODE) {
    old.data = next.data;
  } else {
    for (const { name } of [...old.attributes]) {
      const kept = name === "open" && old.nodeName === "DETAILS";
      if (!kept && !next.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    const [mine, theirs] = [[...old.childNodes], [...next.childNodes]];
    theirs.forEach((child, at) => (at < mine.length ? morph(mine[at], child) : old.append(child)));
    mine.slice(theirs.length).forEach((child) => child.remove());
  }
}

function apply({ title, parts = {}, lists = {}, says = [] }) {
  if (title) document.title = title;
  const came = parsed(parts);
  for (const [id, part] of came) {
    const old = document.getElementById(id);
    if (old) morph(old, part);
  }
  showPause();
  showSound();
  for (const [name, ids] of Object.entries(lists)) {
    const container = document.getElementById(name.split("/").pop());
    if (container?.id === "lines" && isPaused()) continue;
    // Of another shape than the page that is shown: rows in place of cards, a first kit.
    if (!container) return location.reload();
    held[name] = { container, ids, came };
    order(name);
  }
  if (says.length) toSay.push(...says);
  say();
}

// The order changes under neither pointer nor focus; what came or went is put there at once.
function order(name) {
  const { container, ids, came } = held[name];
  const have = new Set([...container.children].filter((child) => !("keep" in child.dataset)).map(({ id }) => id));
  const same = ids.length === have.size && ids.every((id) => have.has(id));
  if (same && (container.matches(":hover") || container.contains(document.activeElement))) return;
  for (const child of [...container.children]) {
    if (!ids.includes(child.id) && !("keep" in child.dataset)) child.remove();
  }
  ids.forEach((id, at) => {
    const part = document.getElementById(id) ?? came.get(id);
    if (part && container.children[at] !== part) {
      container.insertBefore(part, container.children[at] ?? null);
    }
  });
  delete held[name];
}

for (const event of ["pointerover", "focusin"]) {
  addEventListener(event, () => Object.keys(held).forEach(order));
}

// One polite sentence at most every ten seconds: the newest.
function say() {
  const region = document.getElementById("says");
  const now = performance.now();
  if (!region || !toSay.length || now - saidAt < SAY_MS) return;
  region.textContent = toSay.at(-1);
  [toSay, saidAt] = [[], now];
}
setInterval(say, 1000);

// --- the stream

function connect() {
  if (source || document.hidden || root.dataset.path === undefined) return;
  const [path, query] = root.dataset.path.split("?");
  const words = new URLSearchParams(query);
  words.set("path", decodeURIComponent(path));
  source = new EventSource(`/events?${words}`);
  heardAt = performance.now();
  source.onmessage = ({ data }) => {
    delete root.dataset.gone;
    heardAt = performance.now();
    const came = JSON.parse(data);
    if (newest) {
      came.parts = { ...newest.parts, ...came.parts };
      came.lists = { ...newest.lists, ...came.lists };
      came.says = [...(newest.says ?? []), ...(came.says ?? [])];
      came.title ||= newest.title;
    } else {
      requestAnimationFrame(() => {
        const all = newest;
        newest = null;
        const began = performance.now();
        apply(all);
        performance.measure("update", { start: began, end: performance.now() });
        performance.clearMeasures("update"); // a trace has it; the page would keep it for ever
      });
    }
    newest = came;
  };
  source.onerror = tryAgain;
}

function tryAgain() {
  disconnect();
  lost();
  setTimeout(connect, AGAIN_MS);
}

// Where a network is cut nothing is told to the browser: the stream is silent.
setInterval(() => source && performance.now() - heardAt > SILENT_MS && tryAgain(), 1000);

function disconnect() {
  source?.close();
  source = null;
}

// The server itself is away: values stay, and no state is known any more. Once it is back it sends
// every part anew.
function lost() {
  const bar = document.getElementById("gone");
  if (!bar || root.dataset.gone !== undefined) return;
  root.dataset.gone = "";
  const since = document.getElementById("clock")?.textContent ?? "";
  bar.hidden = false;
  bar.textContent =
    `Not live since ${since}. The program that serves this page ended, cannot be reached, ` +
    "or no longer has what it shows; it is asked again every 2 s. If it asks for a link: cellagent page";
  document.title = `Not live since ${since} · cellagent`;
  for (const shape of document.querySelectorAll("main .i use, #live use")) {
    shape.setAttribute("href", "#i-unk");
  }
  document.getElementById("live").childNodes[1].data = "Not live ";
  for (const word of document.querySelectorAll("article .st, .heading > .head > .st")) {
    word.lastChild.data = "Unknown";
  }
  const headline = document.querySelector("main h1");
  if (document.querySelector(".tally")) headline.textContent = "Not live";
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);

// --- ages, commands, theme

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
function countAges() {
  if (root.dataset.gone !== undefined || !document.getElementById("gone")?.hidden) return;
  for (const age of document.querySelectorAll("time.age")) {
    const seconds = Math.max(0, (Date.now() - Date.parse(age.dateTime)) / 1000);
    const [unit, size] = UNITS.find(([, each]) => seconds >= 2 * each) ?? UNITS.at(-1);
    const words = `${Math.round(seconds / size)} ${unit}`;
    if (age.textContent !== words) age.textContent = words;
  }
}
setInterval(countAges, 10000);

addEventListener("click", async (event) => {
  const command = event.target.closest?.("code.command");
  if (!command) return;
  const told = (await copy(command, command.textContent)) ? "Copied" : "Selected";
  document.getElementById("says")?.replaceChildren(`${told}: ${command.textContent}`);
});
addEventListener("keydown", (event) => {
  const isPressed = event.key === "Enter" || event.key === " ";
  if (!isPressed || !event.target.matches?.("code.command")) return;
  event.preventDefault();
  event.target.click();
});

const stored = {
  get: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
  set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* private window */ } },
};
const theme = document.getElementById("theme");
function paint(name) {
  if (name && name !== "system") root.dataset.theme = name;
  else delete root.dataset.theme;
}
paint(stored.get("theme"));
if (theme) {
  theme.value = stored.get("theme") ?? "system";
  theme.addEventListener("change", () => {
    stored.set("theme", theme.value);
    paint(theme.value);
  });
}

root.dataset.script = "";
watchBench(stored);
keys(stored);
watchPictures();
followConsole(() => {
  disconnect();
  connect();
});
countAges();
connect();
