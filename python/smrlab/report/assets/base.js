"use strict";
// Small helpers: elements, numbers, scales, ticks, the tooltip. Nothing here knows about runs.

const SVG = "http://www.w3.org/2000/svg";

function el(tag, attrs = {}, ...children) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) k in node && k !== "style" && k !== "list" ? (node[k] = v) : node.setAttribute(k, v);
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

function sv(tag, attrs = {}, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attrs)) node.setAttribute(k, v);
  if (text !== undefined) node.textContent = text;
  return node;
}

const SI = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

function num(v, digits = 3) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "–";
  const a = Math.abs(v);
  for (const [m, s] of SI) if (a >= m * 0.99995 && a >= 9999.5) return trim((v / m).toPrecision(Math.max(digits, String(Math.floor(a / m)).length))) + s;
  if (a >= 100) return String(Math.round(v * 10) / 10);
  return a === 0 ? "0" : a < 1e-4 ? v.toExponential(1) : trim(v.toPrecision(digits));
}

const trim = (s) => (s.includes(".") && !s.includes("e") ? s.replace(/\.?0+$/, "") : s);
const percent = (v) => (v > 0 && v < 0.001 ? "<0.1 %" : num(v * 100) + " %");

function bytes(v) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  for (; v >= 1024 && i < units.length - 1; i++) v /= 1024;
  return num(v) + " " + units[i];
}

const TIMES = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
const timeUnit = (span) => TIMES.find(([m]) => span >= 3 * m) || TIMES[TIMES.length - 1];
const SPANS = [[3.6e6, "h"], [6e4, "min"], [1e3, "s"], [1, "ms"], [0, "µs"]];

// A time in milliseconds with the unit that fits; whole powers of ten stay short.
function ms(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "–";
  if (v === 0) return "0";
  const [unit, name] = SPANS.find(([m]) => v >= m * (m > 1e3 ? 3 : 1));
  return `${num(unit ? v / unit : v * 1000)} ${name}`;
}

// The same for the ticks of an axis: powers of ten stay powers of ten.
const msTick = (v) => (v >= 1000 ? num(v / 1000) + " s" : ms(v));

function linearTicks(lo, hi, count) {
  const raw = (hi - lo) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const ticks = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9; i++) ticks.push(i * step);
  return ticks;
}

function logTicks(lo, hi, count) {
  const decades = Math.log10(hi / lo);
  const every = Math.max(1, Math.ceil(decades / count));
  const ticks = [];
  for (let e = Math.floor(Math.log10(lo)); e <= Math.ceil(Math.log10(hi)); e++) {
    if (e % every === 0) ticks.push(10 ** e);
    if (decades < 2.5) ticks.push(2 * 10 ** e, 5 * 10 ** e);
  }
  const inside = ticks.filter((t) => t >= lo * 0.9999 && t <= hi * 1.0001);
  return inside.length >= 2 ? inside : linearTicks(lo, hi, count);
}

// A scale maps values to pixels; log scales clamp at their lower end.
function scale(lo, hi, from, to, log) {
  const f = log ? (v) => Math.log(Math.max(v, lo)) : (v) => v;
  const a = f(lo), b = f(hi) === a ? a + 1 : f(hi);
  const s = (v) => from + ((f(v) - a) / (b - a)) * (to - from);
  s.invert = (p) => {
    const v = a + ((p - from) / (to - from)) * (b - a);
    return log ? Math.exp(v) : v;
  };
  return s;
}

// Index of the value nearest to v in an ascending list.
function nearestIndex(list, v) {
  let lo = 0, hi = list.length - 1;
  while (hi - lo > 1) {
    const mid = (lo + hi) >> 1;
    if (list[mid] < v) lo = mid;
    else hi = mid;
  }
  return hi >= 0 && Math.abs(list[hi] - v) < Math.abs(list[lo] - v) ? hi : lo;
}

const tip = {
  show(event, title, rows) {
    const box = document.getElementById("tip");
    box.replaceChildren(el("b", {}, title), ...rows.map(([color, name, value]) =>
      el("div", {}, el("i", { style: `background:${color}` }), el("span", {}, name), el("b", {}, value))));
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const x = event.clientX + 16 + width > innerWidth ? event.clientX - width - 16 : event.clientX + 16;
    box.style.left = Math.max(4, Math.min(x, innerWidth - width - 4)) + "px";
    box.style.top = Math.max(4, Math.min(event.clientY - height - 12 < 4 ? event.clientY + 18 : event.clientY - height - 12, innerHeight - height - 4)) + "px";
  },
  hide() { document.getElementById("tip").hidden = true; },
};

// A row of buttons of which one is chosen.
function pick(options, chosen, onPick) {
  const box = el("div", { className: "pick", role: "group" });
  for (const [value, label] of options) {
    const button = el("button", { type: "button" }, label);
    button.setAttribute("aria-pressed", String(value === chosen));
    button.dataset.value = value;
    button.onclick = () => {
      for (const b of box.children) b.setAttribute("aria-pressed", String(b === button));
      onPick(value);
    };
    box.append(button);
  }
  return box;
}
