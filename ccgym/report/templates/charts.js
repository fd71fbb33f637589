// What pages with charts share: elements, numbers as text, colors, axes, the theme.
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

const color = (pair) => pair[root.dataset.theme === "dark" ? 1 : 0];
const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const minus = (text) => text.replace("-", "−");

function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return minus(size >= 1000 ? value.toFixed(0) : size >= 100 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) :
    String(Number(value.toPrecision(3))));
}

/** At most `count` round numbers from `low` to `high`. */
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const width = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / width); k * width <= high * (1 + 1e-12); k++) found.push(Number((k * width).toPrecision(12)));
  return found;
}

function chartAxes(size) {
  const axis = { stroke: style("--muted"), grid: { stroke: style("--grid"), width: 1 },
    ticks: { stroke: style("--grid"), width: 1, size: 5 }, font: "12px system-ui, sans-serif" };
  const label = (_, values) => values.map((value) => (value === null ? "" : minus(String(Number(value.toPrecision(10))))));
  return [{ ...axis, size: 28, values: label }, { ...axis, size, values: label }];
}

/** Little-endian 32-bit floats in base64; null for what is not a number. */
function floatsOf(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** The fractions of ascending `values` that are at or below the limits in `x`. */
function shareBelow(values, x) {
  let k = 0;
  return x.map((limit) => {
    while (k < values.length && values[k] <= limit) k++;
    return k / values.length;
  });
}

/** Limits at which the distributions of these ascending lists are drawn: up to 200 quantiles of each. */
function quantileGrid(lists) {
  const grid = new Set();
  for (const values of lists) {
    for (let k = 0; k <= 200; k++) grid.add(values[Math.min(values.length - 1, Math.floor(k * values.length / 200))]);
  }
  return [...grid].sort((a, b) => a - b);
}

/** Call `paint` whenever the theme changes: by the button, by the system, or by the function that is returned. */
function onTheme(paint) {
  const set = (theme) => { root.dataset.theme = theme; paint(); };
  const toggle = () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("ccgym-theme", theme); } catch { /* not kept then */ }
    set(theme);
  };
  $("theme").addEventListener("click", toggle);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => set(event.matches ? "dark" : "light"));
  return toggle;
}
