// Parts of all pages with charts: elements, numbers as text, colors, the theme, and the three kinds of charts: lines,
// distributions, points.
const $ = (id) => document.getElementById(id);
const root = document.documentElement;

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function drawn(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Fill a table; `best` contains the indices of the cells in bold. */
function table(id, heads, rows) {
  const cell = (tag, content, name) => make(tag, { className: name, textContent: content });
  const head = make("tr", {}, ...heads.map((text, at) => cell("th", text, at ? "" : "left")));
  const body = rows.map(({ cells, best = [] }) => make("tr", {}, ...cells.map((text, at) => (
    cell("td", text, at ? (best.includes(at) ? "best" : "") : "left")))));
  $(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

const color = (pair) => pair[root.dataset.theme === "dark" ? 1 : 0];
const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const minus = (text) => text.replace("-", "−");
const unknown = (value) => value === null || value === undefined;

function short(value) {
  if (unknown(value)) return "–";
  const size = Math.abs(value);
  return minus(size >= 1000 ? value.toFixed(0) : size >= 100 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) :
    String(Number(value.toPrecision(3))));
}

/** Decode little-endian 32-bit floats in base64. */
function floatsOf(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** Return some of the floats as numbers; NaN becomes null. */
const numbersOf = (floats, from, count) => Array.from(floats.subarray(from, from + count), (value) => (Number.isNaN(value) ? null : value));

// --- The theme, and the width of the page ---------------------------------------------------------------------------

/** Call `paint` whenever the theme changes: by the button, by the system, or by the function that is returned. */
function onTheme(paint) {
  const set = (theme) => { root.dataset.theme = theme; paint(); };
  const toggle = () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("ccgym-theme", theme); } catch { /* then it is not stored */ }
    set(theme);
  };
  $("theme").addEventListener("click", toggle);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => set(event.matches ? "dark" : "light"));
  return toggle;
}

let shown = []; // charts: their figures, and functions that fit them to a new width

function onWidth(paint) {
  let width = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (width === document.body.clientWidth) return;
    width = document.body.clientWidth;
    paint();
    shown = shown.filter((one) => one.figure.isConnected);
    for (const one of shown) one.resize();
  })).observe(document.body);
}

// --- Lines ----------------------------------------------------------------------------------------------------------

function chartAxes(size) {
  const axis = { stroke: style("--muted"), grid: { stroke: style("--grid"), width: 1 },
    ticks: { stroke: style("--grid"), width: 1, size: 5 }, font: "12px system-ui, sans-serif" };
  const label = (_, values) => values.map((value) => (value === null ? "" : minus(String(Number(value.toPrecision(10))))));
  return [{ ...axis, size: 28, values: label }, { ...axis, size, values: label }];
}

/** Draw lines over x; a line with a color that is used already is dashed. */
function lineChart(figure, x, lines, { at, unit = "", height, axes, scales, line, cursor }) {
  const dashes = lines.map((one, k) => (lines.findIndex((other) => other.stroke === one.stroke) < k ? [6, 4] : undefined));
  const series = lines.map(({ label, stroke }, k) => ({ label, stroke, dash: dashes[k], width: 1.6,
    points: { show: false }, value: (_, value) => short(value), ...line }));
  const chart = new uPlot({
    width: figure.clientWidth, height, legend: { live: true }, axes: axes ?? chartAxes(52), scales,
    series: [{ label: at, value: (_, value) => short(value) + unit }, ...series],
    cursor: { drag: { x: true, y: false }, points: { size: 6 }, ...cursor },
  }, [x, ...lines.map((one) => one.values)], figure);
  shown.push({ figure, resize: () => chart.setSize({ width: figure.clientWidth, height }) });
  return chart;
}

/** Draw distributions of ascending values: the fractions at or below limits, at most 200 quantiles of each. */
function distribution(figure, lines, options) {
  const grid = new Set();
  for (const { values } of lines) {
    for (let k = 0; k <= 200; k++) grid.add(values[Math.min(values.length - 1, Math.floor(k * values.length / 200))]);
  }
  const x = [...grid].sort((a, b) => a - b);
  const below = (values) => {
    let k = 0;
    return x.map((limit) => {
      while (k < values.length && values[k] <= limit) k++;
      return k / values.length;
    });
  };
  return lineChart(figure, x, lines.map((one) => ({ ...one, values: below(one.values) })), {
    scales: { x: { time: false }, y: { range: [0, 1] } }, ...options,
    line: { paths: uPlot.paths.stepped({ align: 1 }), ...options.line } });
}

// --- Points ---------------------------------------------------------------------------------------------------------

const MARGIN = { left: 56, right: 16, top: 12, bottom: 44 };

/** Return at most `count` round numbers from `low` to `high`. */
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const width = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / width); k * width <= high * (1 + 1e-12); k++) found.push(Number((k * width).toPrecision(12)));
  return found;
}

/** An SVG with axes from `left` to `right` and from `low` to `high`; `place` maps a point to it, `at` is the inverse. */
function svgPlot(width, height, { x: [left, right], y: [low, high], log = false, across, up, label }) {
  const along = log ? (value) => Math.log2(Math.max(value, 1e-6)) : (value) => value;
  const inner = { x: MARGIN.left, y: MARGIN.top, width: width - MARGIN.left - MARGIN.right,
    height: height - MARGIN.top - MARGIN.bottom };
  const bottom = height - MARGIN.bottom;
  const [first, last] = [along(left), along(right)];
  const place = ([x, y]) => [inner.x + inner.width * (along(x) - first) / (last - first),
    inner.y + inner.height * (high - y) / (high - low)];
  const at = (px, py) => {
    const x = first + (last - first) * (px - inner.x) / inner.width;
    return [log ? 2 ** x : x, high - (high - low) * (py - inner.y) / inner.height];
  };
  const svg = drawn("svg", { class: "plot", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": label ?? `${up} against ${across}` });
  const line = (x1, y1, x2, y2, name) => svg.append(drawn("line", { x1, y1, x2, y2, class: name }));
  const text = (x, y, content, anchor, more = {}) => svg.append(drawn("text", { x, y, "text-anchor": anchor, ...more }, content));
  const [least, most] = [Math.min(left, right), Math.max(left, right)];
  const power = Math.ceil(Math.log2(least));
  const marks = log && most / least > 3
    ? Array.from({ length: Math.floor(Math.log2(most)) - power + 1 }, (_, k) => 2 ** (power + k))
    : ticks(least, most, Math.max(3, Math.floor(width / 110)));
  for (const value of marks) {
    const [x] = place([value, 0]);
    line(x, inner.y, x, bottom, "grid");
    text(x, bottom + 17, minus(String(value)), "middle");
  }
  for (const value of ticks(low, high, 6)) {
    const [, y] = place([left, value]);
    line(inner.x, y, width - MARGIN.right, y, "grid");
    text(inner.x - 7, y + 4, minus(String(value)), "end");
  }
  line(inner.x, bottom, width - MARGIN.right, bottom, "axis");
  line(inner.x, inner.y, inner.x, bottom, "axis");
  text(inner.x + inner.width / 2, height - 6, across, "middle");
  text(0, 0, up, "middle", { transform: `translate(13 ${(inner.y + bottom) / 2}) rotate(-90)` });
  return { svg, place, at, inner, text };
}
