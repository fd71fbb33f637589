// The script of explore.html: all data is in `results`, written by ccgym/report/explore.py. "Entities" are runs and
// schemes: both have numbers and series. Charts are drawn when they become visible.
const data = JSON.parse(document.getElementById("results").textContent);
const { runs, schemes, panels, metrics, step } = data;

const entities = new Map();
for (const scheme of schemes) {
  scheme.name = scheme.key;
  scheme.title = scheme.label;
  scheme.runs = runs.filter((run) => run.scheme === scheme.key);
  const counted = scheme.runs.filter((run) => run.ignored === null);
  scheme.counted = counted.length ? counted : scheme.runs;
  scheme.command = data.command;
  entities.set(scheme.name, scheme);
}
for (const run of runs) {
  run.of = entities.get(run.scheme);
  run.title = `${run.of.label}, run ${run.run}`;
  entities.set(run.name, run);
}

const end = Math.max(step, ...runs.map((run) => run.count * step));
const state = { a: null, b: null, from: 0, to: end, hidden: new Set(), thin: new Set(), view: null };

// --- Series ---------------------------------------------------------------------------------------------------------

let floats = null;
function valuesAt(place, count) {
  floats ??= floatsOf(data.values);
  return numbersOf(floats, place, count);
}

const known = new Map();
/** Return the series of a run, or means over the runs of a scheme, with their range if the panel has no band. */
function seriesOf(entity) {
  if (!known.has(entity.name)) known.set(entity.name, entity.runs ? together(entity) : alone(entity));
  return known.get(entity.name);
}

function alone(run) {
  return run.series.map(([panel, line, flow, place]) => (
    { panel, line: panels[panel].lines[line], flow, values: valuesAt(place, run.count) }));
}

function together(scheme) {
  const groups = new Map();
  for (const run of scheme.counted) {
    for (const one of seriesOf(run)) {
      const key = `${one.panel} ${one.line.column} ${one.flow}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(one);
    }
  }
  const found = [];
  for (const group of groups.values()) {
    const [first] = group;
    const over = (combine) => Array.from({ length: Math.max(...group.map((one) => one.values.length)) }, (_, k) => {
      const there = group.map((one) => one.values[k] ?? null).filter((value) => value !== null);
      return there.length ? combine(there) : null;
    });
    const least = (there) => Math.min(...there);
    const most = (there) => Math.max(...there);
    const mean = (there) => there.reduce((sum, value) => sum + value, 0) / there.length;
    const how = { low: least, high: most }[first.line.kind] ?? mean;
    found.push({ ...first, values: over(how) });
    const banded = panels[first.panel].lines.some((line) => line.kind === "high");
    if (first.line.kind === "line" && group.length > 1 && !banded) {
      found.push({ ...first, line: { ...first.line, kind: "low" }, values: over(least) });
      found.push({ ...first, line: { ...first.line, kind: "high" }, values: over(most) });
    }
  }
  return found;
}

const flowsOf = (entity) => (entity.runs ? entity.counted[0]?.flows ?? [] : entity.flows);

// --- Charts over time -----------------------------------------------------------------------------------------------

let cells = []; // one per chart, drawn or not
const inView = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    inView.unobserve(entry.target);
    entry.target.draw();
  }
}, { rootMargin: "300px" });

function showSeries() {
  inView.disconnect();
  for (const cell of cells) cell.chart?.destroy();
  cells = [];
  const shown = [state.a, state.b].filter(Boolean);
  const rows = panels.map((panel, place) => {
    if (!shown.some((entity) => seriesOf(entity).some((one) => one.panel === place))) return null;
    const row = shown.map((entity) => newCell(entity, panel, place, shown.length > 1));
    for (const cell of row) cell.row = row;
    cells.push(...row);
    const per = row.some((cell) => cell.lines.some((one) => one.line.kind === "bars")) ? ` per ${short(step)} s` : "";
    const head = make("h3", {}, `${panel.title} `, make("span", { textContent: `(${panel.unit}${per})` }));
    return make("div", {}, head, make("div", { className: "pair" }, ...row.map((cell) => cell.box)));
  });
  $("panels").replaceChildren(...rows.filter(Boolean));
  if (cells.length === 0) {
    $("panels").append(make("p", { className: "muted", textContent: "The packets of this run were not recorded: there are only numbers." }));
  }
  for (const cell of cells) inView.observe(cell.figure);
  observeCdf();
}

function newCell(entity, panel, place, named) {
  const lines = seriesOf(entity).filter((one) => one.panel === place);
  const figure = make("figure", { className: "chart", tabIndex: 0 });
  figure.setAttribute("aria-label", `${panel.title} of ${entity.title}`);
  const name = make("p", { className: "muted", textContent: named ? entity.title : "" });
  const cell = { entity, panel, lines, figure, chart: null, row: [] };
  cell.box = make("div", {}, name, figure, commandBox(() => `${entity.command}\n# then explore.html${address()}`));
  figure.draw = () => drawChart(cell);
  if (!lines.length) figure.replaceChildren(make("p", { className: "muted", textContent: "not recorded" }));
  return cell;
}

const chartHeight = (panel) => (["throughput", "delay"].includes(panel.name) ? 220 : 160);

function drawChart(cell) {
  const { lines, panel, figure } = cell;
  if (!lines.length) return;
  const count = Math.max(...lines.map((one) => one.values.length));
  const x = Array.from({ length: count }, (_, k) => Number(((k + 1) * step).toFixed(6)));
  const flows = flowsOf(cell.entity);
  const series = [{ label: "time", value: (_, value) => (value === null ? "–" : `${short(value)} s`) }];
  for (const one of lines) {
    const { kind, label, column } = one.line;
    const stroke = kind === "area" ? color(data.capacityColor) : color(data.flowColors[(Math.max(one.flow, 1) - 1) %
      data.flowColors.length]);
    const named = one.flow && flows.length > 1 ? `${label} ${one.flow} (${flows[one.flow - 1]})` : label;
    series.push({
      label: named, stroke, value: (_, value) => short(value), show: kind !== "thin" || state.thin.has(column),
      ...{
        line: { width: 1.6 },
        thin: { width: 1.2, dash: [5, 4] },
        low: { width: 0, class: "quiet", points: { show: false } },
        high: { width: 0, class: "quiet", points: { show: false } },
        bars: { width: 1, fill: `${stroke}66`, paths: uPlot.paths.stepped({ align: -1 }) },
        area: { width: 1, fill: `${stroke}44`, paths: uPlot.paths.stepped({ align: -1 }), points: { show: false } },
      }[kind],
    });
  }
  const place = (kind, flow) => 1 + lines.findIndex((one) => one.line.kind === kind && one.flow === flow);
  const bands = lines.filter((one) => one.line.kind === "high").map(({ flow }) => {
    const high = place("high", flow);
    return { series: [high, place("low", flow) || place("line", flow)], fill: `${series[high].stroke}38` };
  });
  const options = {
    width: figure.clientWidth, height: chartHeight(panel), series, bands, axes: chartAxes(52), legend: { live: true },
    scales: { x: { time: false, min: state.from, max: state.to }, y: { range: () => yRange(cell.row) } },
    cursor: {
      sync: { key: "time", scales: ["x", null] }, drag: { x: true, y: false, dist: 4 }, points: { size: 6 },
      bind: { dblclick: () => () => zoom(0, end) },
    },
    hooks: {
      setScale: [(chart, key) => { if (key === "x") zoom(chart.scales.x.min, chart.scales.x.max); }],
      setSeries: [(chart, index, change) => { if (index && change.show !== undefined) toggled(cell, index, change.show); }],
    },
  };
  figure.replaceChildren();
  cell.chart = new uPlot(options, [x, ...lines.map((one) => one.values)], figure);
  touch(cell.chart);
}

/** Give all charts of a row the same scale. */
function yRange(row) {
  let low = Infinity;
  let high = -Infinity;
  for (const { lines, chart } of row) {
    lines.forEach((one, place) => {
      const hidden = chart ? !chart.series[place + 1].show : one.line.kind === "thin" && !state.thin.has(one.line.column);
      if (hidden) return;
      const last = Math.min(one.values.length, Math.ceil(state.to / step));
      for (let k = Math.max(0, Math.floor(state.from / step) - 1); k < last; k++) {
        const value = one.values[k];
        if (value === null) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    });
  }
  if (low > high) return [0, 1];
  if (row[0].panel.from_zero) return [0, 1.06 * high || 1];
  const room = 0.06 * (high - low) || 1;
  return [low - room, high + room];
}

function toggled(cell, index, show) {
  const { line } = cell.lines[index - 1];
  if (line.kind === "thin") state.thin[show ? "add" : "delete"](line.column);
  for (const other of cell.row) {
    if (!other.chart) continue;
    other.lines.forEach((one, place) => {
      const there = other.chart.series[place + 1];
      if (other !== cell && one.line.column === line.column && one.line.kind === "thin" && there.show !== show) {
        other.chart.setSeries(place + 1, { show });
      }
    });
    other.chart.setScale("x", { min: state.from, max: state.to });
  }
}

function zoom(from, to) {
  const width = Math.min(end, Math.max(to - from, 4 * step));
  from = Math.max(0, Math.min(from, end - width));
  to = from + width;
  if (Math.abs(from - state.from) + Math.abs(to - state.to) < 1e-6) return;
  Object.assign(state, { from, to });
  for (const { chart } of cells) chart?.setScale("x", { min: from, max: to });
  showSpan();
  remember();
}

const showSpan = () => { $("span").textContent = `${state.from.toFixed(1)} to ${state.to.toFixed(1)} s`; };

const ZOOMS = {
  in: () => zoomBy(0.5, 0), out: () => zoomBy(2, 0), left: () => zoomBy(1, -0.25), right: () => zoomBy(1, 0.25),
  all: () => zoom(0, end),
};
function zoomBy(factor, shift) {
  const width = state.to - state.from;
  const middle = (state.from + state.to) / 2 + shift * width;
  zoom(middle - factor * width / 2, middle + factor * width / 2);
}

/** One finger moves the time axis, two fingers zoom. */
function touch(chart) {
  let held = [];
  const at = (event) => [...event.touches].slice(0, 2).map((one) => one.clientX - chart.over.getBoundingClientRect().left);
  const hold = (event) => { held = at(event).map((x) => chart.posToVal(x, "x")); };
  chart.over.addEventListener("touchstart", hold, { passive: true });
  chart.over.addEventListener("touchend", hold, { passive: true });
  chart.over.addEventListener("touchmove", (event) => {
    const now = at(event);
    const width = chart.over.clientWidth;
    if (now.length !== held.length || (now.length === 1 && state.to - state.from >= end)) return;
    if (now.length === 2) event.preventDefault();
    const scale = now.length === 2 ? (held[1] - held[0]) / (now[1] - now[0]) : (state.to - state.from) / width;
    if (scale > 0 && Number.isFinite(scale)) zoom(held[0] - now[0] * scale, held[0] + (width - now[0]) * scale);
  }, { passive: false });
}

// --- The selection over time ----------------------------------------------------------------------------------------

function show(a, b = state.b) {
  Object.assign(state, { a, b: b === a ? null : b });
  $("a").value = state.a.name;
  $("b").value = state.b?.name ?? "";
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const row of table.tBodies[0].rows) {
      row.classList.toggle("shown", row.entity === state.a || row.entity === state.b);
    }
  }
  showNumbers();
  showSeries();
  showSpan();
  remember();
}

function showNumbers() {
  const shown = [state.a, state.b].filter(Boolean);
  const value = (entity, place) => (entity.runs ? entity.numbers[place]?.[0] ?? null : entity.numbers[place]);
  const text = (entity, place) => {
    const std = entity.runs ? entity.numbers[place]?.[1] ?? null : null;
    return number(value(entity, place), place) + (std === null ? "" : ` ± ${number(std, place)}`);
  };
  const number = (found, place) => {
    if (found === null) return "–";
    const text = (metrics[place].scale * found).toFixed(metrics[place].digits);
    return Number(text) ? minus(text) : text.replace("-", "");
  };
  const two = shown.length > 1;
  const rows = metrics.flatMap((metric, place) => {
    if (shown.every((entity) => value(entity, place) === null)) return [];
    const [first, second] = shown.map((entity) => value(entity, place));
    const difference = !two || first === null || second === null ? null : second - first;
    const last = two ? [(difference > 0 ? "+" : "") + number(difference, place)] : [];
    return [{ cells: [`${metric.label} (${metric.unit})`, ...shown.map((entity) => text(entity, place)), ...last] }];
  });
  table("numbers", ["", ...shown.map((entity) => entity.title), ...(two ? ["difference"] : [])], rows);
  $("about").textContent = shown.map((entity) => {
    if (entity.runs) {
      const band = entity.counted.length > 1 ? ", bands from min to max" : "";
      return `${entity.title}: means of ${entity.counted.length} runs${band}.`;
    }
    const seed = entity.seed === null ? "" : ` seed ${entity.seed}.`;
    return `${entity.title}:${seed}${entity.ignored === null ? "" : ` This run does not count: ${entity.ignored}.`}`;
  }).filter((line) => !line.endsWith(":")).join(" ");
}

function chooseRun(by) {
  const at = runs.indexOf(state.a.runs ? state.a.runs[0] : state.a) - (state.a.runs && by > 0 ? 1 : 0);
  if (runs.length) show(runs[(at + by + runs.length) % runs.length]);
}

/** Return the next scheme, or its run with the same number. */
function ofNextScheme(entity, by) {
  const next = schemes[(schemes.indexOf(entity.of ?? entity) + by + schemes.length) % schemes.length];
  return entity.runs ? next : next.runs.find((run) => run.run === entity.run) ?? next;
}

function fillChoices() {
  for (const select of [$("a"), $("b")]) {
    if (select.id === "b") select.append(new Option("nothing", ""));
    for (const scheme of schemes) {
      const group = make("optgroup", { label: scheme.label }, new Option(`${scheme.label}, all runs`, scheme.name));
      group.append(...scheme.runs.map((run) => new Option(run.title, run.name)));
      select.append(group);
    }
  }
  $("a").addEventListener("change", () => show(entities.get($("a").value)));
  $("b").addEventListener("change", () => show(state.a, entities.get($("b").value) ?? null));
  $("previous").addEventListener("click", () => chooseRun(-1));
  $("next").addEventListener("click", () => chooseRun(1));
  $("swap").addEventListener("click", swap);
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", ZOOMS[button.dataset.zoom]);
  }
}

function swap() { if (state.b) show(state.b, state.a); }

function open(entity, beside) {
  if (beside) show(state.a, entity);
  else show(entity);
  $("series").scrollIntoView();
}

function bindTables() {
  [schemes, runs].forEach((list, place) => {
    const body = document.querySelectorAll("table.sortable")[place].tBodies[0];
    [...body.rows].forEach((row, index) => {
      row.entity = list[index];
      row.tabIndex = index ? -1 : 0;
      row.addEventListener("click", () => open(row.entity));
      row.addEventListener("keydown", (event) => {
        const to = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
        if (event.key === "Enter" || event.key === "b") open(row.entity, event.key === "b");
        else if (to) { row.tabIndex = -1; to.tabIndex = 0; to.focus(); }
        else if (!event.key.startsWith("Arrow")) return;
        event.preventDefault();
        event.stopPropagation();
      });
    });
  });
}

// --- Distributions --------------------------------------------------------------------------------------------------

let cdf = null;
const mainLine = (panel) => panel.lines.find((line) => line.kind === "line");

/** Return all values of a quantity in a run or in the runs of a scheme, ascending. */
function valuesOf(entity, place) {
  const panel = panels[place];
  const found = [];
  for (const run of entity.runs ? entity.counted : [entity]) {
    const lines = seriesOf(run).filter((one) => one.panel === place && one.line === mainLine(panel));
    if (panel.total === "sum" && lines.length > 1) {
      found.push(...lines[0].values.map((_, k) => lines.reduce((sum, one) => sum + (one.values[k] ?? 0), 0)));
    } else for (const one of lines) found.push(...one.values.filter((value) => value !== null));
  }
  return Float64Array.from(found).sort();
}

function observeCdf() {
  $("cdf").draw = drawCdf;
  inView.unobserve($("cdf"));
  inView.observe($("cdf"));
}

function drawCdf() {
  cdf?.destroy();
  cdf = null;
  shown.length = 0;
  const place = Number($("quantity").value);
  const two = $("which").value === "two";
  const chosen = two ? [state.a, state.b].filter(Boolean) : schemes.filter((scheme) => !state.hidden.has(scheme.key));
  const found = chosen.map((entity) => [entity, valuesOf(entity, place)]).filter(([, values]) => values.length);
  if (!found.length) {
    $("cdf").replaceChildren(make("p", { className: "muted", textContent: "not recorded" }));
    return;
  }
  const { title, unit } = panels[place];
  const axes = chartAxes(52);
  axes[0] = { ...axes[0], size: 46, label: `${title} (${unit})`, labelSize: 18, labelFont: "12px system-ui, sans-serif" };
  $("cdf").replaceChildren();
  const lines = found.map(([entity, values]) => ({ label: entity.title, stroke: color((entity.of ?? entity).colors), values }));
  cdf = distribution($("cdf"), lines, { at: "at", unit: ` ${unit}`, height: 320, axes, line: { width: 1.8 } });
}

function fillQuantities() {
  panels.forEach((panel, place) => {
    const there = runs.some((run) => run.series.some(([at, line]) => at === place && panel.lines[line] === mainLine(panel)));
    if (there) $("quantity").append(new Option(panel.title.toLowerCase().replace("rtt", "RTT"), place));
  });
  if ($("quantity").options.length > 1) $("quantity").selectedIndex = 1; // delay
  for (const id of ["quantity", "which"]) $(id).addEventListener("change", drawCdf);
}

// --- Commands, address, theme, keys ---------------------------------------------------------------------------------

function commandBox(text) {
  const box = $("table-command").cloneNode(true);
  box.removeAttribute("id");
  bindCommand(box, text);
  return box;
}

function bindCommand(box, text) {
  const pre = box.querySelector("pre");
  box.addEventListener("toggle", () => { pre.textContent = text(); });
  box.querySelector("button").addEventListener("click", async (event) => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      event.target.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(pre); // not allowed: select the text, so that the user can copy it
    }
  });
}

/** Return the selection as the fragment of the address. */
function address() {
  const parts = [["a", state.a?.name], ["b", state.b?.name]].filter(([, name]) => name);
  if (state.to - state.from < end) parts.push(["x", `${state.from.toFixed(2)}-${state.to.toFixed(2)}`]);
  return `#${parts.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")}`;
}

function remember() {
  try { history.replaceState(null, "", address()); } catch { /* a browser that keeps the address of files */ }
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const a = entities.get(given.get("a"));
  if (!a) return false;
  const [from, to] = (given.get("x") ?? "").split("-").map(Number);
  if (to > from) Object.assign(state, { from: Math.max(0, from), to: Math.min(end, to) });
  show(a, entities.get(given.get("b")) ?? null);
  return true;
}

const toggleTheme = onTheme(() => {
  drawPlane();
  fillLegend();
  showSeries();
});

const KEYS = {
  j: () => chooseRun(1),
  k: () => chooseRun(-1),
  J: () => show(ofNextScheme(state.a, 1)),
  K: () => show(ofNextScheme(state.a, -1)),
  c: () => show(state.a, ofNextScheme(state.b ?? state.a, 1)),
  s: swap,
  t: toggleTheme,
  "?": () => $("help").showModal(),
  Escape: () => show(state.a, null),
  "+": ZOOMS.in, "=": ZOOMS.in, "-": ZOOMS.out, "−": ZOOMS.out, 0: ZOOMS.all, ArrowLeft: ZOOMS.left, ArrowRight: ZOOMS.right,
};
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea, dialog");
  if (typing || $("help").open || event.ctrlKey || event.metaKey || event.altKey || !state.a) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

onWidth(() => {
  drawPlane();
  for (const { chart, figure, panel } of cells) chart?.setSize({ width: figure.clientWidth, height: chartHeight(panel) });
});

const delays = runs.map((run) => run.numbers[1]).filter((value) => value > 0);
$("log").checked = delays.length > 0 && Math.max(...delays) / Math.min(...delays) > 4; // Pantheon's rule
$("log").addEventListener("change", wholePlane);
$("plane-reset").addEventListener("click", wholePlane);
$("keys").addEventListener("click", () => $("help").showModal());
addEventListener("hashchange", readAddress);
bindTables();
fillChoices();
fillLegend();
fillQuantities();
for (const id of ["table", "plane", "cdf"]) bindCommand($(`${id}-command`), () => data.command);
if (readAddress()) $("series").scrollIntoView();
else if (runs.length) show(runs[0]);
// For the browser's console and for tests.
window.explore = { data, state, seriesOf, charts: () => cells.map((cell) => cell.chart).filter(Boolean) };
