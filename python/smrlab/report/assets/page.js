"use strict";
// The page: what each figure shows of the runs in the embedded data.

const RUNS = JSON.parse(document.getElementById("data").textContent);
const DASH = ["", "7 4", "2 4", "9 3 2 3"];
RUNS.forEach((run, i) => Object.assign(run, { color: `var(--r${i % 8})`, dash: DASH[Math.floor(i / 8) % 4], on: true }));

const redraws = [];
const shown = () => RUNS.filter((r) => r.on);
const onZoom = () => { document.getElementById("reset").hidden = !timeGroup.domain && !msGroup.domain; };
const timeGroup = new Group(onZoom), msGroup = new Group(onZoom);
const get = (doc, path) => path.split(".").reduce((d, k) => (d === undefined || d === null ? undefined : d[k]), doc);

function card(id, title, unit, wide) {
  const section = el("section", { className: "card" + (wide ? " wide" : ""), id: `fig-${id}` });
  const head = el("div", { className: "head" }, el("div", {}, el("h2", {}, title), el("p", { className: "unit" }, unit)));
  section.append(head);
  document.getElementById("figures").append(section);
  return { section, head };
}

// Whether the curves of the runs lie so far apart that a linear scale would flatten all but one.
function farApart(key) {
  const tops = RUNS.filter((r) => r.timeline && r.timeline[key]).map((r) => r.timeline[key].reduce((a, v) => Math.max(a, v || 0), 0)).filter((v) => v > 0);
  return tops.length > 1 && Math.max(...tops) > 30 * Math.min(...tops);
}

function over(id, title, unit, variants, options = {}) {
  const { section, head } = card(id, title, unit, options.wide);
  const state = { variant: variants[0], log: options.log === undefined ? false : options.log || farApart(variants[0].key) };
  const chart = new LineChart(section, {
    id, group: timeGroup, label: `${title} over time`, x: { log: false, kind: "time", label: "time" },
    series: () => shown().filter((r) => r.timeline && r.timeline[state.variant.key]).map((r) => ({
      name: r.name, color: r.color, dash: r.dash, x: r.timeline.t, y: r.timeline[state.variant.key],
      lo: r.timeline[state.variant.lo], hi: r.timeline[state.variant.hi],
    })),
    y: () => ({ log: state.log, format: state.variant.format || num, tip: state.variant.tip, max: state.variant.max }),
  });
  if (variants.length > 1) head.append(pick(variants.map((v) => [v.key, v.name]), state.variant.key, (key) => {
    state.variant = variants.find((v) => v.key === key);
    chart.draw();
  }));
  if (options.log !== undefined) head.append(pick([[0, "linear"], [1, "log"]], Number(state.log), (v) => { state.log = Boolean(v); chart.draw(); }));
  redraws.push(() => chart.draw());
}

// What each drive of an array did; of several arrays one at a time.
function drives() {
  const arrays = RUNS.filter((r) => r.drives);
  if (!arrays.length) return;
  const { section, head } = card("drives", "Drives of the array", "share of time in which each drive worked");
  const state = { run: arrays[0], key: "busy" };
  const color = (i) => `var(--r${i % 8})`, keys = el("div", { className: "keys" });
  const chart = new LineChart(section, {
    id: "drives", group: timeGroup, label: "Drives over time", x: { log: false, kind: "time", label: "time" },
    series: () => state.run.drives.map((d, i) => ({
      name: `disk ${i}`, color: color(i), dash: DASH[Math.floor(i / 8) % 4], x: d.t, y: d[state.key],
    })).filter((s) => s.y),
    y: () => ({ log: false, format: percent, max: 1 }),
  });
  head.append(pick([["busy", "busy"], ["clean", "cleaning"]], state.key, (key) => { state.key = key; chart.draw(); }));
  const draw = () => {
    keys.replaceChildren(...state.run.drives.map((_, i) => el("span", {}, el("i", { style: `background:${color(i)}` }), `disk ${i}`)));
    chart.draw();
  };
  if (arrays.length > 1) {
    const select = el("select", { ariaLabel: "run" }, ...arrays.map((r, i) => el("option", { value: i }, r.name)));
    select.onchange = () => { state.run = arrays[select.value]; draw(); };
    head.append(select);
  }
  section.append(keys);
  redraws.push(draw);
}

const KINDS = [["response", "all"], ["read_response", "reads"], ["write_response", "writes"], ["service", "service"]];

function distribution() {
  const { section, head } = card("distribution", "Response-time distribution", "share of requests");
  const have = KINDS.filter(([k]) => RUNS.some((r) => r.histogram && r.histogram[k]));
  const state = { kind: have.length ? have[0][0] : "response", form: "f" };
  const chart = new LineChart(section, {
    id: "distribution", group: msGroup, label: "Response-time distribution", x: { log: true, kind: "ms", label: "time" },
    series: () => shown().filter((r) => r.histogram && r.histogram[state.kind]).map((r) => {
      const h = r.histogram[state.kind];
      return { name: r.name, color: r.color, dash: r.dash, x: h.x, y: state.form === "f" ? h.f : h.tail.map((v) => (v > 0 ? v : null)) };
    }),
    y: () => (state.form === "f" ? { log: false, max: 1, format: (v) => num(v * 100, 4) + "%", tip: (v) => num(v * 100, 5) + " %" }
      : { log: true, max: 1, format: (v) => (v >= 1e-3 ? num(v * 100) + "%" : v.toExponential(0)), tip: (v) => num(v * 100) + " % longer" }),
  });
  if (have.length > 1) head.append(pick(have, state.kind, (k) => { state.kind = k; msGroup.zoom(null); }));
  head.append(pick([["f", "at most"], ["tail", "longer (log)"]], "f", (f) => { state.form = f; chart.draw(); }));
  redraws.push(() => chart.draw());
}

const CAUSES = ["host", "clean", "destage", "defrag", "metadata", "journal", "fill", "parity", "rebuild", "seek", "rotation"];

function causesOf(run, whole) {
  const times = run.doc.time_by_cause_s || {};
  const names = [...CAUSES.filter((c) => c in times), ...Object.keys(times).filter((c) => !CAUSES.includes(c))];
  const parts = names.map((c) => [c, times[c]]).filter(([, s]) => s > 0);
  const busy = parts.reduce((a, [, s]) => a + s, 0);
  // The drives of an array are busy side by side.
  const run_s = run.doc.makespan_s * (run.doc.members || [0]).length;
  if (whole && run_s > busy) parts.push(["idle", run_s - busy]);
  return parts;
}

const causeColor = (c) => (CAUSES.includes(c) || c === "idle" ? `var(--${c})` : "var(--other)");

function causes() {
  const { section, head } = card("causes", "Where time went", "share of time, by cause");
  const svg = sv("svg", { class: "plot", role: "img", "aria-label": "Where time went, by cause" });
  const keys = el("div", { className: "keys" });
  section.append(svg, keys);
  const state = { whole: false };
  const draw = () => {
    const runs = shown().filter((r) => causesOf(r, state.whole).length), width = Math.max(260, section.clientWidth - 34), row = 46;
    svg.setAttribute("viewBox", `0 0 ${width} ${Math.max(runs.length * row + 6, 40)}`);
    svg.replaceChildren(...(runs.length ? runs.flatMap((r, i) => causeRow(r, causesOf(r, state.whole), width, i * row)) : [sv("text", { x: 4, y: 24 }, "These result files hold nothing for this figure.")]));
    const names = [...new Set(runs.flatMap((r) => causesOf(r, state.whole).map(([c]) => c)))];
    keys.replaceChildren(...names.map((c) => el("span", {}, el("i", { style: `background:${causeColor(c)}` }), c)));
  };
  head.append(pick([[0, "of busy time"], [1, "of the whole run"]], 0, (v) => { state.whole = Boolean(v); draw(); }));
  svg.onpointerleave = () => tip.hide();
  new ResizeObserver(draw).observe(section);
  redraws.push(draw);
}

function causeRow(run, parts, width, top) {
  const total = parts.reduce((a, [, s]) => a + s, 0);
  const out = [sv("text", { class: "name", x: 0, y: top + 14 }, run.name), sv("text", { x: width, y: top + 14, "text-anchor": "end" }, ms(total * 1000))];
  let x = 0;
  for (const [cause, seconds] of parts) {
    const w = (seconds / total) * width;
    const bar = sv("rect", { x, y: top + 20, width: Math.max(w - 1.5, 0.5), height: 20, rx: 2, style: `fill:${causeColor(cause)}` });
    const say = (e) => tip.show(e, run.name, [[causeColor(cause), cause, `${percent(seconds / total)}, ${ms(seconds * 1000)}`]]);
    bar.onpointermove = say;
    bar.onpointerdown = say;
    out.push(bar);
    if (w > 44) out.push(sv("text", { x: x + w / 2, y: top + 34, "text-anchor": "middle", style: `fill:${cause === "idle" || cause === "rotation" ? "var(--ink)" : "#fff"};pointer-events:none;font-weight:600` }, percent(seconds / total)));
    x += w;
  }
  return out;
}

function space() {
  const { section } = card("space", "Space and mapping memory", "what the translation costs beside time", true);
  const box = el("div", { className: "two" });
  section.append(box);
  const panels = [
    ["Space efficiency", "space.efficiency", percent, 1], ["Space gain over unshingled", "space.gain", (v) => num(v) + "×"],
    ["Host capacity", "space.host_blocks", (v) => bytes(v * 512)], ["Map memory, peak", "space.map_bytes_peak", bytes],
  ];
  const draw = () => {
    const found = panels.filter(([, path]) => RUNS.some((r) => get(r.doc, path) !== undefined));
    box.replaceChildren(...found.map(([title, path, format, whole]) => {
      const rows = shown().filter((r) => get(r.doc, path) !== undefined);
      const most = whole || Math.max(...rows.map((r) => get(r.doc, path)), 1e-12);
      return el("div", { className: "bars" }, el("h3", {}, title), ...rows.map((r) => el("div", { className: "row" },
        el("span", {}, r.name), el("b", {}, format(get(r.doc, path))),
        el("div", { className: "track" }, el("i", { style: `width:${(100 * get(r.doc, path)) / most}%;background:${r.color}` })))));
    }));
    if (!found.length) box.replaceChildren(el("p", { className: "empty" }, "These result files hold nothing for this figure."));
  };
  redraws.push(draw);
}

// What the keys of a result are called and mean, as 'smrlab explain' says it.
const KEYS = JSON.parse(document.getElementById("keys").textContent);
function explained(path) {
  const k = KEYS[path];
  return k ? [k.name, k.unit ? `(${k.unit})` : "", "\n" + k.doc, k.formula ? "\n= " + k.formula : ""].join(" ") : path;
}
const seconds = (v) => ms(v * 1000);
// A figure of a run as people read it, the same words as in the command's tables.
const written = (doc, path, format) => get(doc, path) === undefined ? "–"
  : path === "cleaning.first_s" && doc.caches_full_at_start ? "at the start" : format(get(doc, path));

const SUMMARY = [
  ["IOPS", "iops", num, 1], ["MB/s", "mb_per_s", num, 1], ["mean", "response_ms.mean", ms, -1], ["p50", "response_ms.p50", ms, -1],
  ["p99", "response_ms.p99", ms, -1], ["worst", "response_ms.max", ms, -1],
  ["time stalled", "stalls.share", percent, -1], ["first cleaning", "cleaning.first_s", seconds, 1], ["clean again", "cleaning.clean_again_s", seconds, -1],
  ["rebuild time", "array.rebuild_ms", ms, -1], ["drives not whole at the end", "array.disks_dead", num, -1],
  ["write amplification", "write_amplification", num, -1], ["WAR per update", "war.per_update", num, -1], ["WAR per write", "war.per_write", num, -1],
  ["write overloading", "write_overloading", num, -1], ["offered load", "offered_load", num, -1], ["efficiency", "space.efficiency", percent, 1],
];

function summary() {
  const { section } = card("summary", "Summary", "best of each column in bold", true);
  const cols = SUMMARY.filter(([, path]) => RUNS.some((r) => get(r.doc, path) !== undefined));
  // Where a run has no such figure (it never cleaned), or all are alike, none is the best.
  const best = cols.map(([, path, , sign]) => {
    const all = RUNS.map((r) => get(r.doc, path));
    return all.includes(undefined) || new Set(all).size === 1 ? undefined : Math.max(...all.map((v) => v * sign)) * sign;
  });
  const rows = RUNS.map((r) => el("tr", {}, el("th", { scope: "row" }, el("span", { className: "dot", style: `background:${r.color}` }), r.name),
    ...cols.map(([, path, format], i) => el("td", { className: best[i] !== undefined && get(r.doc, path) === best[i] ? "best" : "" }, written(r.doc, path, format)))));
  section.append(el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "run"), ...cols.map(([t, path]) => el("th", { title: explained(path), scope: "col" }, t)))), el("tbody", {}, ...rows))));
  redraws.push(() => rows.forEach((tr, i) => tr.classList.toggle("off", !RUNS[i].on)));
}

function flatten(value, path, out) {
  if (value === null || typeof value !== "object") out[path] = String(value);
  else if (Array.isArray(value) && value.every((v) => v === null || typeof v !== "object")) out[path] = value.join(", ");
  else for (const [k, v] of Object.entries(value)) flatten(v, path ? `${path}.${k}` : k, out);
  return out;
}

function specification() {
  const { section } = card("spec", "Resolved specification", RUNS.length > 1 ? "what differs between the runs; the rest below" : "every parameter, defaults included", true);
  const flat = RUNS.map((r) => flatten({ ...(r.doc.spec || {}), provenance: r.doc.provenance || {} }, "", {}));
  const keys = [...new Set(flat.flatMap((f) => Object.keys(f)))];
  const differs = (k) => new Set(flat.map((f) => f[k])).size > 1;
  const table = (list, cls, runs) => el("div", { className: "scroll" }, el("table", { className: "spec" },
    el("thead", {}, el("tr", {}, el("th", {}, "key"), ...runs.map((f) => el("th", {}, RUNS[flat.indexOf(f)].name)))),
    el("tbody", {}, ...list.map((k) => el("tr", { className: cls }, el("td", {}, k), ...runs.map((f) => el("td", {}, f[k] === undefined ? "–" : f[k])))))));
  section.firstChild.after(el("div", { id: "spec" }));
  const box = section.querySelector("#spec"), different = keys.filter(differs), same = keys.filter((k) => !differs(k));
  if (different.length) box.append(table(different, "differs", flat));
  const common = same.length ? table(same, "", flat.slice(0, 1)) : null;
  if (common && RUNS.length > 1) common.querySelector("thead th:last-child").textContent = "all runs";
  if (common) box.append(el("details", { open: RUNS.length === 1 }, el("summary", {}, `${same.length} ${RUNS.length > 1 ? "parameters that are the same everywhere" : "parameters"}`), common));
}

// Where one run goes on much longer than the others, all begin zoomed to the others' time.
function firstZoom() {
  const ends = RUNS.filter((r) => r.timeline).map((r) => [r.timeline.t[r.timeline.t.length - 1], r.name]).sort((a, b) => a[0] - b[0]);
  if (ends.length < 2) return;
  const most = 4 * ends[Math.floor((ends.length - 1) / 2)][0];
  const longer = ends.filter(([end]) => end > most);
  if (!longer.length) return;
  const names = longer.map(([, name]) => name).join(", ");
  timeGroup.zoom([0, Math.max(...ends.filter(([end]) => end <= most).map(([end]) => end))]);
  document.querySelector(".hint").append(` ${names} went on for longer: Reset zoom shows the whole time.`);
}

function legend() {
  const bar = document.getElementById("legend");
  RUNS.forEach((run) => {
    const swatch = sv("svg", { width: 22, height: 10, "aria-hidden": "true" });
    swatch.append(sv("line", { x1: 1, x2: 21, y1: 5, y2: 5, "stroke-width": 3, "stroke-dasharray": run.dash || "none", style: `stroke:${run.color}` }));
    const chip = el("button", { type: "button", className: "chip", title: "Click: show or hide. Shift-click: only this one." }, swatch, run.name);
    run.chip = chip;
    chip.onclick = (e) => {
      if (e.shiftKey) RUNS.forEach((r) => { r.on = r === run; });
      else run.on = !run.on;
      if (!shown().length) RUNS.forEach((r) => { r.on = true; });
      refresh();
    };
    bar.append(chip);
  });
  const reset = el("button", { type: "button", id: "reset", hidden: true }, "Reset zoom");
  reset.onclick = () => { timeGroup.zoom(null); msGroup.zoom(null); };
  bar.append(reset);
}

function refresh() {
  for (const r of RUNS) r.chip.setAttribute("aria-pressed", String(r.on));
  for (const draw of redraws) draw();
}

function notices() {
  const late = RUNS.filter((run) => run.doc.offered_load > 1);
  if (!late.length) return;
  const scales = late.map((run) => get(run.doc, "overload.suggested_scale_time") || Math.ceil(run.doc.offered_load * 14) / 10);
  const loads = late.map((run) => `${run.name} (offered load ${num(run.doc.offered_load)} times its capacity)`).join(", ");
  document.querySelector("header").append(el("div", { className: "notice" },
    `Cannot keep up with these arrivals: ${loads}. Their response times grow with the length of the trace. Compare at a load that all sustain: --scale-time ${num(Math.max(...scales))}, or --arrivals closed.`));
}

notices();
legend();
summary();
over("iops", "Requests completed", "IOPS", [{ key: "iops", name: "IOPS" }], { log: false });
over("response", "Response time", "per window", [{ key: "mean", name: "mean", format: msTick, tip: ms }, { key: "max", name: "max", format: msTick, tip: ms }], { log: true });
distribution();
causes();
over("stalls", "Stalls", "share of time in which a request was waiting for longer than --stall", [
  { key: "stalled", name: "stalled", format: percent, max: 1 }, { key: "max", name: "worst response", format: msTick, tip: ms }], { log: false });
if (RUNS.some((r) => r.timeline && r.timeline.cache)) over("cache", "Cache fill", "blocks in the layer's cache, of what it holds: cleaning has them still before it", [{ key: "cache", name: "cache", format: percent, max: 1 }]);
// Of drives with zones; refusals of others are refused requests of an array, say.
if (RUNS.some((r) => r.timeline && r.timeline.zones_open)) over("zones", "Zones", "zones by condition at the end of each window; resets and refused requests a second", [
  { key: "zones_open", name: "open" }, { key: "zones_closed", name: "closed" }, { key: "zones_full", name: "full" },
  { key: "resets", name: "resets" }, { key: "refused", name: "refused" }], { log: false });
over("war", "Write amplification", "blocks written on the medium per block written by the host", [{ key: "wa", name: "WA" }], { log: false });
over("load", "Load", "shares of time (of an array: the mean of its drives), and requests waiting", [
  { key: "busy", name: "busy", format: percent, max: 1 }, { key: "clean", name: "cleaning", format: percent, max: 1 }, { key: "backlog", name: "backlog" }]);
drives();
heat();
over("head", "Head position", "track: mean as a line, range as a band", [{ key: "head", name: "track", lo: "head_min", hi: "head_max" }]);
space();
specification();
refresh();
firstZoom();
