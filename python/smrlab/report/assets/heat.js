"use strict";
// The LBA heat map: time to the right, LBA upwards, requests as colour on a log scale.

function heatSources() {
  const seen = new Map();
  for (const run of RUNS) {
    if (!run.heat) continue;
    const key = typeof run.heat === "number" ? run.heat : RUNS.indexOf(run);
    if (!seen.has(key)) seen.set(key, { heat: RUNS[key].heat, names: [] });
    seen.get(key).names.push(run.name);
  }
  return [...seen.values()];
}

function ramp(share) {
  const css = getComputedStyle(document.documentElement);
  const stops = [0, 1, 2].map((i) => css.getPropertyValue(`--heat${i}`).trim().split(/\s+/).map(Number));
  const at = share * 2, i = Math.min(1, Math.floor(at)), f = at - i;
  return stops[i].map((v, k) => Math.round(v + (stops[i + 1][k] - v) * f));
}

function heat() {
  const { section, head } = card("heat", "LBA heat map", "requests per window and LBA range, log colour");
  const sources = heatSources();
  if (!sources.length) return void section.append(el("p", { className: "empty" }, "These result files hold nothing for this figure."));
  const state = { source: sources[0], what: "all" };
  const svg = sv("svg", { class: "plot", role: "img", "aria-label": "LBA heat map" });
  const keys = el("div", { className: "keys" });
  section.append(svg, keys);
  const draw = () => drawHeat(svg, keys, section.clientWidth - 34, state);
  head.append(pick([["all", "all"], ["reads", "reads"], ["writes", "writes"]], "all", (v) => { state.what = v; draw(); }));
  if (sources.length > 1) {
    const select = el("select", { ariaLabel: "run" }, ...sources.map((s, i) => el("option", { value: i }, s.names.join(", "))));
    select.onchange = () => { state.source = sources[select.value]; draw(); };
    head.append(select);
  }
  svg.addEventListener("pointermove", (e) => heatTip(e, svg, state));
  svg.addEventListener("pointerdown", (e) => heatTip(e, svg, state));
  svg.addEventListener("pointerleave", () => tip.hide());
  new ResizeObserver(draw).observe(section);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", draw);
  addEventListener("afterprint", draw);
  redraws.push(draw);
}

const heatValue = (h, what, i) => (what === "all" ? h.reads[i] + h.writes[i] : h[what][i]);

function heatImage(h, what) {
  const canvas = el("canvas", { width: h.cols, height: h.rows });
  const context = canvas.getContext("2d"), image = context.createImageData(h.cols, h.rows);
  let most = 1;
  for (let i = 0; i < h.cols * h.rows; i++) most = Math.max(most, heatValue(h, what, i));
  const table = Array.from({ length: 256 }, (_, i) => ramp(i / 255));
  for (let i = 0; i < h.cols * h.rows; i++) {
    const row = h.rows - 1 - Math.floor(i / h.cols), v = heatValue(h, what, i);
    const color = table[v > 0 ? Math.round(40 + (215 * Math.log(1 + v)) / Math.log(1 + most)) : 0];
    image.data.set([...color, 255], 4 * (row * h.cols + (i % h.cols)));
  }
  context.putImageData(image, 0, 0);
  return { url: canvas.toDataURL(), most };
}

function drawHeat(svg, keys, width, state) {
  const h = state.source.heat;
  width = Math.max(260, width);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const { url, most } = heatImage(h, state.what);
  const bottom = HEIGHT - MARGIN.bottom, right = width - MARGIN.right;
  const sx = scale(h.t0, h.t1, MARGIN.left, right), sy = scale(h.lba0, h.lba1, bottom, MARGIN.top);
  const [unit, name] = timeUnit(h.t1 - h.t0), out = [];
  out.push(sv("image", { href: url, x: MARGIN.left, y: MARGIN.top, width: right - MARGIN.left, height: bottom - MARGIN.top, preserveAspectRatio: "none", style: "image-rendering:pixelated" }));
  for (const t of linearTicks(h.lba0, h.lba1, 5)) {
    out.push(sv("line", { class: "axis", x1: MARGIN.left - 4, x2: MARGIN.left, y1: sy(t), y2: sy(t) }));
    out.push(sv("text", { x: MARGIN.left - 7, y: sy(t) + 4, "text-anchor": "end" }, num(t)));
  }
  for (const t of linearTicks(h.t0 / unit, h.t1 / unit, Math.max(2, Math.floor(width / 70)))) {
    out.push(sv("line", { class: "axis", x1: sx(t * unit), x2: sx(t * unit), y1: bottom, y2: bottom + 4 }));
    out.push(sv("text", { x: sx(t * unit), y: bottom + 16, "text-anchor": "middle" }, num(t, 4)));
  }
  out.push(sv("text", { x: right, y: bottom + 30, "text-anchor": "end" }, `time (${name})`), sv("text", { x: 2, y: bottom + 30 }, "LBA (blocks)"));
  svg.replaceChildren(...out);
  const stops = [0.16, 0.37, 0.58, 0.79, 1].map((s) => `rgb(${ramp(s).join(" ")})`);
  keys.replaceChildren(el("span", {}, "1 request"), el("span", { style: `width:110px;height:11px;border-radius:3px;align-self:center;background:linear-gradient(90deg,${stops.join(",")})` }), el("span", {}, `${num(most)} requests`));
}

function heatTip(e, svg, state) {
  const h = state.source.heat, box = svg.getBoundingClientRect(), width = svg.viewBox.baseVal.width;
  const x = ((e.clientX - box.left) / box.width) * width, y = ((e.clientY - box.top) / box.height) * HEIGHT;
  const col = Math.floor(((x - MARGIN.left) / (width - MARGIN.left - MARGIN.right)) * h.cols);
  const row = Math.floor(((HEIGHT - MARGIN.bottom - y) / (HEIGHT - MARGIN.bottom - MARGIN.top)) * h.rows);
  if (col < 0 || row < 0 || col >= h.cols || row >= h.rows) return tip.hide();
  const i = row * h.cols + col, at = (n, k) => (k * n) / h.rows + h.lba0 * (1 - n / h.rows);
  const [unit, name] = timeUnit(h.t1 - h.t0), t = h.t0 + ((h.t1 - h.t0) * (col + 0.5)) / h.cols;
  tip.show(e, `${num(t / unit, 4)} ${name}, LBA ${num(at(row, h.lba1), 4)}–${num(at(row + 1, h.lba1), 4)}`, [
    ["var(--r0)", "reads", num(h.reads[i])], ["var(--r1)", "writes", num(h.writes[i])]]);
}
