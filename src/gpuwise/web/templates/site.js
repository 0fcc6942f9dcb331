"use strict";

// Asking: the page says that it works, and can be told to stop. Without this script the form asks all the same.
const ask = document.getElementById("ask");
if (ask) {
  ask.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = new URLSearchParams();
    for (const [name, value] of new FormData(ask)) if (value !== "") said.append(name, value);
    visit(`${ask.action}?${said}`);
  });
}

async function visit(address) {
  const stop = new AbortController();
  const bar = document.createElement("p");
  bar.className = "working";
  bar.setAttribute("role", "status");
  bar.textContent = ask.dataset.working;
  const cancel = document.createElement("button");
  cancel.type = "button";
  cancel.className = "quiet";
  cancel.textContent = ask.dataset.cancel;
  cancel.addEventListener("click", () => stop.abort());
  bar.append(cancel);
  ask.append(bar);
  const job = crypto.randomUUID();
  const told = setInterval(async () => {
    const answer = await fetch(`/progress/${job}`, { signal: stop.signal }).catch(() => null);
    const text = answer?.ok ? (await answer.json()).text : "";
    if (text) bar.firstChild.textContent = text;
  }, 700);
  try {
    await fetch(address, { signal: stop.signal, headers: { "X-Gpuwise-Job": job, Accept: "text/html" } });
    location.assign(address); // the answer is kept for a while: it is not computed twice
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  } finally {
    clearInterval(told);
    bar.remove();
  }
}

// What is filled in goes along with files.
const upload = document.getElementById("upload");
if (upload && ask) {
  upload.addEventListener("submit", () => {
    for (const old of upload.querySelectorAll("input[type=hidden]")) old.remove();
    for (const [name, value] of new FormData(ask)) {
      if (value === "") continue;
      const hidden = Object.assign(document.createElement("input"), { type: "hidden", name, value });
      upload.append(hidden);
    }
  });
}

// Tables: a filter over long ones; two to four rows can be pinned and are then compared side by side.
const LONG = 8, MOST = 4;
for (const table of document.querySelectorAll("article table")) {
  const body = table.tBodies[0];
  if (body.rows.length < LONG) continue;
  const box = table.closest(".scroll");
  const filter = document.createElement("input");
  filter.type = "search";
  filter.className = "filter";
  filter.placeholder = document.documentElement.lang.startsWith("zh") ? "筛选" : "Filter";
  filter.setAttribute("aria-label", filter.placeholder);
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  box.before(filter);
  pinnable(table, box);
}

function pinnable(table, box) {
  const body = table.tBodies[0];
  const side = document.createElement("div");
  side.className = "compared";
  box.after(side);
  for (const row of body.rows) {
    const name = row.querySelector("th");
    if (!name) return;
    const pin = document.createElement("input");
    pin.type = "checkbox";
    pin.setAttribute("aria-label", `+ ${name.textContent}`);
    pin.addEventListener("change", () => {
      const pinned = [...body.rows].filter((one) => one.querySelector("input[type=checkbox]")?.checked);
      if (pinned.length > MOST) { pin.checked = false; return; }
      row.classList.toggle("pinned", pin.checked);
      show(pinned);
    });
    name.prepend(pin, " ");
  }
  function show(pinned) {
    side.replaceChildren();
    if (pinned.length < 2) return;
    const compared = document.createElement("table");
    const heads = [...table.tHead.rows[0].cells];
    let place = 0;
    for (const head of heads) {
      const row = compared.insertRow();
      const label = document.createElement("th");
      label.scope = "row";
      label.textContent = head.textContent;
      row.append(label);
      for (const one of pinned) {
        const cell = row.insertCell();
        cell.textContent = [one.cells[place].textContent.trim(), head.colSpan > 1 ? one.cells[place + 1].textContent : ""]
          .filter(Boolean).join(" ");
      }
      place += head.colSpan;
    }
    side.append(compared);
  }
}
