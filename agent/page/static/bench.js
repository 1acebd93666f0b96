// The bench: one short tone when something failed, the scan field, and what a person asks for.

const TONE_S = 0.3;
const BACK_MS = 5000; // without input elsewhere the scan field has the focus again
const root = document.documentElement;

export function watchBench(stored) {
  const act = new URLSearchParams(location.hash.slice(1)).get("act");
  if (act) {
    stored.set("act", act);
    history.replaceState(null, "", location.pathname + location.search);
  }
  if (document.getElementById("alarm")) watchAlarm(stored);
  addEventListener("submit", (event) => {
    if (!event.target.dataset.act) return;
    event.preventDefault();
    send(event.target, stored.get("act"));
  });
  if (document.getElementById("scan")) keepFocus();
}

let isOn = () => false;

// Painted anew by the server, the button knows nothing of the choice.
export function showSound() {
  const button = document.getElementById("sound");
  if (!button) return;
  button.setAttribute("aria-pressed", String(isOn()));
  button.textContent = isOn() ? "Sound on" : "Sound off";
}

function watchAlarm(stored) {
  const alarm = document.getElementById("alarm");
  const button = document.getElementById("sound");
  isOn = () => (stored.get("sound") ?? (alarm.dataset.quiet === undefined ? "on" : "off")) === "on";
  let audio = null; // browsers let a page sound once a person has pressed a key or clicked
  const wake = () => {
    if (navigator.userActivation?.hasBeenActive ?? true) (audio ??= new AudioContext()).resume();
  };
  for (const event of ["keydown", "pointerdown"]) addEventListener(event, wake);
  button.addEventListener("click", () => {
    stored.set("sound", isOn() ? "off" : "on");
    showSound();
  });
  showSound();
  new MutationObserver(() => isOn() && audio?.state === "running" && sound(audio)).observe(alarm, {
    attributeFilter: ["data-count"],
  });
}

function sound(audio) {
  const tone = audio.createOscillator();
  tone.frequency.value = 520;
  tone.connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + TONE_S);
  performance.mark("tone");
}

async function send(form, token) {
  const body = JSON.stringify(Object.fromEntries(new FormData(form)));
  const headers = { "Content-Type": "application/json", "X-Cellagent-Act": token ?? "" };
  const told = form.querySelector("[role=status]") ?? document.getElementById("says");
  try {
    const answer = await fetch(form.dataset.act, { method: "POST", headers, body });
    if (!answer.ok) told.textContent = `Not done: ${await answer.text()}`;
    else if (form.id === "scan") form.reset();
  } catch {
    told.textContent = "Not done: the program that serves this page cannot be reached";
  }
}

// A scanner types anywhere: what it types goes into the scan field, and is no key of the page.
function keepFocus() {
  const field = () => document.querySelector("#scan input");
  let at = 0;
  addEventListener("keydown", (event) => {
    at = performance.now();
    const elsewhere = !event.target.matches?.("input, select, textarea, button, a, summary");
    const types = event.key.length === 1 && event.key !== "?" && !event.ctrlKey && !event.metaKey;
    if (event.key === "F2" || (elsewhere && types)) {
      field()?.focus();
      if (event.key === "F2") event.preventDefault();
      else event.stopImmediatePropagation();
    }
  }, { capture: true });
  addEventListener("pointerdown", () => (at = performance.now()));
  setInterval(() => {
    const isFree = !document.hidden && root.querySelector("dialog[open]") === null;
    if (isFree && document.activeElement !== field() && performance.now() - at > BACK_MS) field()?.focus();
  }, 1000);
}
