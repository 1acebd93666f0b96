// The console of a kit that is opened: it follows its end unless it was scrolled, and can be paused.

import { copy } from "./copy.js";

const COPIED_MS = 2000; // for so long a button says that it has copied
const root = document.documentElement;

export function followConsole(resume) {
  const lines = document.getElementById("lines");
  if (!lines) return;
  let atEnd = true;
  const toEnd = () => atEnd && (lines.scrollTop = lines.scrollHeight);
  lines.addEventListener("scroll", () => {
    atEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 8;
  });
  new MutationObserver(toEnd).observe(lines, { childList: true });
  toEnd();
  // The server keeps what comes meanwhile; the whole of it is asked for again.
  addEventListener("click", (event) => {
    if (event.target.id === "copy") copyShown(event.target, lines);
    if (event.target.id !== "pause") return;
    if (root.dataset.paused === undefined) root.dataset.paused = "";
    else {
      delete root.dataset.paused;
      resume();
    }
    showPause();
  });
}

async function copyShown(button, lines) {
  const shown = [...lines.children].map((line) => line.textContent);
  const isCopied = await copy(lines, `${shown.join("\n")}\n`);
  const count = `${shown.length} ${shown.length === 1 ? "line" : "lines"}`;
  button.textContent = isCopied ? `Copied ${count}` : `Selected ${count}`;
  setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
}

export const isPaused = () => root.dataset.paused !== undefined;

// Painted anew by the server, the button knows nothing of the pause.
export function showPause() {
  const button = document.getElementById("pause");
  if (!button) return;
  button.setAttribute("aria-pressed", String(isPaused()));
  button.textContent = isPaused() ? "Go on" : "Pause";
}
