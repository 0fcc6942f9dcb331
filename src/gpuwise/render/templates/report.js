"use strict";

// Charts: the still picture stays until the live one is drawn, and for good if that fails.
for (const figure of document.querySelectorAll("figure.chart")) {
  const plot = figure.querySelector(".plot");
  const still = figure.querySelector(".still");
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const live = plot.appendChild(document.createElement("div"));
  live.className = "live";
  if (plot.clientWidth < 560) {
    const field = (spec.encoding ?? spec.layer[0].encoding).color?.field;
    const longest = Math.max(...spec.data.values.map((point) => String(point[field] ?? "").length));
    spec.config.legend.columns = longest > 16 ? 1 : 2;
    spec.config.axisX = { titleAnchor: "end", labelBound: true }; // nothing of it beyond the edge
    if (spec.data.values.some((point) => "end" in point))
      spec.layer.at(-1).transform.push({ filter: "datum.end" }); // names only at the ends of a frontier
  }
  vegaEmbed(live, spec, {
    ast: true, // no code is made from text: the page's policy forbids it
    actions: false,
    renderer: "svg",
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  }).then(
    () => still.remove(),
    (error) => { live.remove(); console.error(error); },
  );
}

// Tables: a click on a column's head sorts by it, unknown figures last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  let place = 0;
  for (const head of heads) {
    const at = place;
    place += head.colSpan;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const rows = [...body.rows].map((row) => [row.cells[at].dataset.v, row]);
      const numeric = rows.every(([value]) => value === "" || !Number.isNaN(Number(value)));
      const order = (a, b) => (numeric ? a - b : a.localeCompare(b, document.documentElement.lang));
      rows.sort(([a], [b]) => (a === "") - (b === "") || (up ? order(a, b) : order(b, a)));
      body.append(...rows.map(([, row]) => row));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
    });
  }
}
