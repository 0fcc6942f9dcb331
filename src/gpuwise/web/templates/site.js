"use strict";

// Asking: the page says that it works, and can be told to stop. Without this script the form asks all the same.
const ask = document.getElementById("ask");
if (ask) {
  ask.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = new URLSearchParams();
    for (const [name, value] of new FormData(ask)) if (value.trim() !== "") said.append(name, value);
    const address = new URL(ask.action);
    address.search = said;
    visit(address);
  });
}

async function visit(address) {
  ask.querySelector(".working")?.remove();
  const stop = new AbortController();
  const bar = document.createElement("p");
  const text = document.createElement("span");
  bar.className = "working";
  text.setAttribute("role", "status");
  const cancel = document.createElement("button");
  cancel.type = "button";
  cancel.className = "quiet";
  cancel.textContent = ask.dataset.cancel;
  cancel.addEventListener("click", () => { stop.abort(); bar.remove(); ask.querySelector("[type=submit]").focus(); });
  bar.append(text, cancel);
  ask.append(bar);
  text.textContent = ask.dataset.working;
  const job = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("-");
  const told = setInterval(async () => {
    const answer = await fetch(`/progress/${job}`, { signal: stop.signal }).catch(() => null);
    const said = answer?.ok ? (await answer.json()).text : "";
    if (said) text.textContent = said;
  }, 700);
  try {
    const answer = await fetch(address, { signal: stop.signal, headers: { "X-Gpuwise-Job": job, Accept: "text/html" } });
    if (answer.status < 500) { // the answer is kept for a while: it is not computed twice
      bar.remove();
      if (address.href.split("#")[0] === location.href.split("#")[0]) location.reload();
      else location.assign(address);
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    cancel.remove();
    text.textContent = page.querySelector("article")?.innerText ?? answer.statusText;
    text.setAttribute("role", "alert");
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  } finally {
    clearInterval(told);
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
const words = document.getElementById("main").dataset;
for (const table of document.querySelectorAll("article table")) {
  const body = table.tBodies[0];
  if (body.rows.length < LONG) continue;
  const box = table.closest(".scroll");
  const filter = document.createElement("input");
  filter.type = "search";
  filter.className = "filter";
  filter.placeholder = words.filter;
  filter.setAttribute("aria-label", filter.placeholder);
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
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
    pin.title = words.compare;
    pin.setAttribute("aria-label", `${words.compare}: ${name.textContent.trim()}`);
    pin.addEventListener("change", () => {
      const pinned = [...body.rows].filter((one) => one.querySelector("input[type=checkbox]")?.checked);
      if (pinned.length > MOST) { pin.checked = false; return; }
      row.classList.toggle("pinned", pin.checked);
      show(pinned);
    });
    name.classList.add("pinnable");
    name.prepend(pin);
  }
  function show(pinned) {
    side.replaceChildren();
    if (pinned.length < 2) return;
    const title = document.createElement("h3");
    title.textContent = words.compared;
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
    side.append(title, compared);
  }
}
