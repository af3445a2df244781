"use strict";
// The line chart: curves of several runs over a shared, zoomable x axis, with crosshair, tooltip and keyboard.

const HEIGHT = 250, MARGIN = { left: 50, right: 14, top: 10, bottom: 34 };
// Pixels: a piece of a curve that is shorter is marked by dots.
const LONE = 5;

class LineChart {
  // spec: x {log, kind: "time"|"ms"}, series() -> [{name,color,dash,x,y,lo?,hi?}], y() -> {log, label, format, max?}, group
  constructor(host, spec) {
    this.host = host;
    this.spec = spec;
    this.svg = sv("svg", { class: "plot", tabindex: 0, role: "img", "aria-label": spec.label });
    host.append(this.svg);
    this.empty = el("p", { className: "empty", hidden: true }, "These result files hold nothing for this figure.");
    host.append(this.empty);
    spec.group.add(this);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(host);
  }

  extent(series) {
    let lo = Infinity, hi = -Infinity;
    for (const s of series) {
      for (const v of [s.x[0], s.x[s.x.length - 1]]) {
        if (v < lo) lo = v;
        if (v > hi) hi = v;
      }
    }
    return this.spec.x.log ? [Math.max(lo, 1e-6), hi] : [Math.min(lo, 0), hi];
  }

  yRange(series, [x0, x1], log) {
    let lo = Infinity, hi = -Infinity;
    const see = (v) => {
      if (v === null || v === undefined || (log && v <= 0)) return;
      if (v < lo) lo = v;
      if (v > hi) hi = v;
    };
    for (const s of series) {
      for (let i = 0; i < s.x.length; i++) {
        if (s.x[i] < x0 || s.x[i] > x1) continue;
        see(s.y[i]);
        if (s.hi) { see(s.hi[i]); see(s.lo[i]); }
      }
    }
    if (lo > hi) return log ? [0.1, 1] : [0, 1];
    if (log) return hi / lo < 3 ? [lo / 2, hi * 2] : [lo / 1.15, hi * 1.15];
    return [Math.min(0, lo), hi > 0 ? hi * 1.06 : 1];
  }

  draw() {
    this.width = Math.max(260, this.host.clientWidth || 560);
    const series = this.spec.series().filter((s) => s.x.length);
    this.series = series;
    this.svg.style.display = series.length ? "" : "none";
    this.empty.hidden = series.length > 0;
    if (!series.length) return;
    const y = this.spec.y();
    const [x0, x1] = (this.domain = this.spec.group.domain || this.spec.group.extent());
    const [y0, y1] = y.max === undefined ? this.yRange(series, this.domain, y.log) : [y.log ? this.yRange(series, this.domain, true)[0] : 0, y.max];
    this.sx = scale(x0, x1, MARGIN.left, this.width - MARGIN.right, this.spec.x.log);
    this.sy = scale(y0, y1, HEIGHT - MARGIN.bottom, MARGIN.top, y.log);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    const clip = `clip${this.spec.id}`;
    // Room for half a dot at either end.
    const box = { x: MARGIN.left - 3, y: MARGIN.top - 4, width: this.width - MARGIN.left - MARGIN.right + 6, height: HEIGHT - MARGIN.top - MARGIN.bottom + 6 };
    const defs = sv("clipPath", { id: clip });
    defs.append(sv("rect", box));
    const curves = sv("g", { "clip-path": `url(#${clip})` });
    for (const s of series) curves.append(...this.curve(s));
    this.cross = sv("g", {});
    this.band = sv("rect", { class: "select", y: MARGIN.top, height: HEIGHT - MARGIN.top - MARGIN.bottom, width: 0, x: 0 });
    this.svg.replaceChildren(defs, ...this.axes(x0, x1, y0, y1, y), curves, this.band, this.cross);
  }

  axes(x0, x1, y0, y1, y) {
    const out = [];
    const bottom = HEIGHT - MARGIN.bottom, right = this.width - MARGIN.right;
    for (const t of y.log ? logTicks(y0, y1, 5) : linearTicks(y0, y1, 5)) {
      out.push(sv("line", { class: "grid", x1: MARGIN.left, x2: right, y1: this.sy(t), y2: this.sy(t) }));
      out.push(sv("text", { x: MARGIN.left - 6, y: this.sy(t) + 4, "text-anchor": "end" }, y.format(t)));
    }
    const [unit, name] = this.spec.x.kind === "time" ? timeUnit(x1 - x0) : [1, "ms"];
    const count = Math.max(2, Math.floor(this.width / 70));
    const ticks = this.spec.x.log ? logTicks(x0, x1, count) : linearTicks(x0 / unit, x1 / unit, count).map((t) => t * unit);
    for (const t of ticks) {
      out.push(sv("line", { class: "axis", x1: this.sx(t), x2: this.sx(t), y1: bottom, y2: bottom + 4 }));
      out.push(sv("text", { x: this.sx(t), y: bottom + 16, "text-anchor": "middle" }, this.spec.x.kind === "time" ? num(t / unit, 4) : msTick(t)));
    }
    out.push(sv("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }));
    out.push(sv("text", { x: right, y: bottom + 30, "text-anchor": "end" }, this.spec.x.kind === "time" ? `${this.spec.x.label} (${name})` : this.spec.x.label));
    this.timeUnit = [unit, name];
    return out;
  }

  curve(s) {
    const out = [];
    if (s.hi) {
      let whole = "", area = "", back = "";
      for (let i = 0; i <= s.x.length; i++) {
        // Where nothing was measured the range ends, and another one begins.
        if (i === s.x.length || s.hi[i] === null || s.lo[i] === null) {
          if (area) whole += area + back + "Z";
          area = back = "";
          continue;
        }
        const x = this.sx(s.x[i]).toFixed(1);
        area += `${area ? "L" : "M"}${x},${this.sy(s.hi[i]).toFixed(1)}`;
        back = `L${x},${this.sy(s.lo[i]).toFixed(1)}${back}`;
      }
      out.push(sv("path", { d: whole || "M0,0", style: `fill:${s.color};stroke:${s.color};stroke-width:1;opacity:.16` }));
    }
    let path = "", from = null, to = null;
    const missing = (i) => s.y[i] === null || s.y[i] === undefined;
    const dot = ([x, y]) => out.push(sv("circle", { class: "lone", cx: x, cy: y, r: 2.2, style: `fill:${s.color}` }));
    for (let i = 0; i <= s.x.length; i++) {
      if (i === s.x.length || missing(i)) {
        // Between empty windows a burst that is no longer than a dot is not seen as a line: it has one at each end.
        if (from !== null && to[0] - from[0] < LONE) new Set([from, to]).forEach(dot);
        from = null;
        continue;
      }
      to = [this.sx(s.x[i]).toFixed(1), this.sy(s.y[i]).toFixed(1)];
      path += `${from === null ? "M" : "L"}${to.join()}`;
      from ??= to;
    }
    out.push(sv("path", { class: "curve", d: path || "M0,0", style: `stroke:${s.color}`, "stroke-dasharray": s.dash || "none" }));
    return out;
  }

  crossAt(x, dots) {
    if (!this.cross || !this.series.length) return;
    if (x === null) return this.cross.replaceChildren();
    const px = this.sx(x);
    if (px < MARGIN.left - 1 || px > this.width - MARGIN.right + 1) return this.cross.replaceChildren();
    const marks = [sv("line", { class: "cross", x1: px, x2: px, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom })];
    if (dots) for (const s of this.series) {
      const i = nearestIndex(s.x, x);
      if (s.y[i] !== null && s.y[i] !== undefined) marks.push(sv("circle", { cx: this.sx(s.x[i]), cy: this.sy(s.y[i]), r: 3.5, style: `fill:${s.color};stroke:var(--card);stroke-width:1.5` }));
    }
    this.cross.replaceChildren(...marks);
  }

  point(x, at) {
    this.at = x;
    const y = this.spec.y();
    const rows = this.series.map((s) => {
      const i = nearestIndex(s.x, x);
      const range = s.hi && s.hi[i] !== null ? ` (${y.format(s.lo[i])}–${y.format(s.hi[i])})` : "";
      return [s.color, s.name, (s.y[i] === null || s.y[i] === undefined ? "–" : (y.tip || y.format)(s.y[i])) + range];
    });
    const title = this.spec.x.kind === "time" ? `${num(x / this.timeUnit[0], 4)} ${this.timeUnit[1]}` : `≤ ${ms(x)}`;
    tip.show(at, title, rows);
    for (const chart of this.spec.group.charts) chart.crossAt(x, chart === this);
  }

  leave() {
    tip.hide();
    for (const chart of this.spec.group.charts) chart.crossAt(null);
  }

  local(event) {
    const box = this.svg.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width) * this.width;
  }

  listen() {
    const pointers = new Map();
    let start = null, pinch = null;
    const inside = (px) => Math.min(Math.max(px, MARGIN.left), this.width - MARGIN.right);
    this.svg.addEventListener("pointerdown", (e) => {
      pointers.set(e.pointerId, this.local(e));
      if (e.pointerType === "mouse" && e.button === 0) { start = inside(this.local(e)); this.svg.setPointerCapture(e.pointerId); }
      if (pointers.size === 2) pinch = [...pointers.values()].sort((a, b) => a - b).map((p) => this.sx.invert(p));
      if (e.pointerType !== "mouse" && pointers.size === 1) this.point(this.sx.invert(inside(this.local(e))), e);
    });
    this.svg.addEventListener("pointermove", (e) => {
      const px = inside(this.local(e));
      if (pointers.has(e.pointerId)) pointers.set(e.pointerId, px);
      if (pinch && pointers.size === 2) return this.pinched(pinch, [...pointers.values()].sort((a, b) => a - b));
      if (start !== null && Math.abs(px - start) > 4) {
        this.band.setAttribute("x", Math.min(px, start));
        this.band.setAttribute("width", Math.abs(px - start));
      }
      this.point(this.sx.invert(px), e);
    });
    const end = (e) => {
      pointers.delete(e.pointerId);
      if (pointers.size < 2) pinch = null;
      if (start === null) return;
      const px = inside(this.local(e)), from = start;
      start = null;
      this.band.setAttribute("width", 0);
      if (e.type === "pointerup" && Math.abs(px - from) > 8) this.spec.group.zoom([this.sx.invert(Math.min(px, from)), this.sx.invert(Math.max(px, from))]);
    };
    for (const type of ["pointerup", "pointercancel"]) this.svg.addEventListener(type, end);
    this.svg.addEventListener("pointerleave", () => this.leave());
    this.svg.addEventListener("dblclick", () => this.spec.group.zoom(null));
    this.svg.addEventListener("blur", () => this.leave());
    this.svg.addEventListener("keydown", (e) => this.key(e));
  }

  // Keeps the two values under the two fingers: the domain follows by proportion, in the scale's own space.
  pinched([v0, v1], [p0, p1]) {
    if (p1 - p0 < 20) return;
    const f = this.spec.x.log ? Math.log : (v) => v, g = this.spec.x.log ? Math.exp : (v) => v;
    const per = (f(v1) - f(v0)) / (p1 - p0);
    this.spec.group.zoom([g(f(v0) - (p0 - MARGIN.left) * per), g(f(v1) + (this.width - MARGIN.right - p1) * per)]);
  }

  key(e) {
    if (!this.series.length) return;
    const [x0, x1] = this.domain, x = this.at === undefined ? (x0 + x1) / 2 : this.at;
    const list = this.series[0].x, i = nearestIndex(list, x);
    const box = this.svg.getBoundingClientRect();
    const at = (v) => this.point(v, { clientX: box.left + (this.sx(v) / this.width) * box.width, clientY: box.top + 30 });
    if (e.key === "ArrowRight") at(list[Math.min(i + 1, list.length - 1)]);
    else if (e.key === "ArrowLeft") at(list[Math.max(i - 1, 0)]);
    else if (e.key === "+" || e.key === "-") this.zoomBy(e.key === "+" ? 0.5 : 2, x);
    else if (e.key === "Escape" || e.key === "0") this.spec.group.zoom(null);
    else return;
    e.preventDefault();
  }

  zoomBy(factor, x) {
    const middle = this.sx(x), left = MARGIN.left, right = this.width - MARGIN.right;
    this.spec.group.zoom([this.sx.invert(middle - (middle - left) * factor), this.sx.invert(middle + (right - middle) * factor)]);
  }
}

// Charts that share their x axis: one zoom, one crosshair.
class Group {
  constructor(onZoom) {
    this.charts = [];
    this.domain = null;
    this.onZoom = onZoom;
  }

  add(chart) { this.charts.push(chart); }

  extent() {
    let lo = Infinity, hi = -Infinity;
    for (const c of this.charts) {
      const series = c.spec.series().filter((s) => s.x.length);
      if (!series.length) continue;
      const [a, b] = c.extent(series);
      lo = Math.min(lo, a);
      hi = Math.max(hi, b);
    }
    return lo < hi ? [lo, hi] : [lo === Infinity ? 0 : lo * 0.5, lo === Infinity ? 1 : lo * 1.5 + 1e-9];
  }

  zoom(domain) {
    if (domain) {
      const [lo, hi] = this.extent();
      const a = Math.max(lo, domain[0]), b = Math.min(hi, domain[1]);
      if (!(b - a > (hi - lo) * 1e-6)) return;
      domain = a <= lo && b >= hi ? null : [a, b];
    }
    this.domain = domain;
    for (const c of this.charts) c.draw();
    this.onZoom();
  }
}
