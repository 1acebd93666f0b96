// Keys of the page. Single letters do nothing in fields, and can be switched off (WCAG 2.1.4).

const GO = { k: "/kits", b: "/bench", r: "/report" };
const OPENABLE = "main article a[href]";

function step(by) {
  const links = [...document.querySelectorAll(OPENABLE)];
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
  next?.focus();
}

export function keys(stored) {
  const help = document.getElementById("keys");
  const letters = document.getElementById("letters");
  let first = "";
  if (letters) {
    letters.checked = stored.get("letters") !== "off";
    letters.addEventListener("change", () => stored.set("letters", letters.checked ? "on" : "off"));
  }
  const acts = {
    j: () => step(1),
    k: () => step(-1),
    d: () => document.querySelector("a.density")?.click(),
    ArrowLeft: () => document.querySelector("#around .earlier, #decisions a")?.click(),
    ArrowRight: () => document.querySelector("#around .later")?.click(),
    p: () => document.getElementById("pause")?.click(),
    m: () => document.getElementById("sound")?.click(),
    s: () => {
      const line = document.querySelector("#lines > :last-child");
      if (line) document.getElementById("says").textContent = line.textContent;
    },
    "/": () => document.querySelector("main input[type=search]")?.focus(),
    "?": () => help?.showModal(),
  };
  addEventListener("keydown", (event) => {
    const inField = event.target.matches?.("input, select, textarea");
    if (event.key === "Escape") {
      if (inField) event.target.blur();
      else if (!help?.open) document.querySelector("a.back")?.click();
      return;
    }
    if (inField || help?.open || event.ctrlKey || event.altKey || event.metaKey) return;
    if (letters && !letters.checked && event.key.length === 1) return;
    const act = first === "g" && GO[event.key] ? () => (location.href = GO[event.key]) : acts[event.key];
    first = event.key;
    if (act) {
      event.preventDefault();
      act();
    }
  });
}
