// The script of the site's pages; charts.js is in front of it. An experiment's page has its numbers in `page`; the
// numbers of a condition's runs are in a separate script, which calls ccgym.condition() when it is loaded.
const page = $("page") && JSON.parse($("page").textContent);
const conditions = new Map();
let wanted = null;
window.ccgym = { condition(place, data) { conditions.set(place, data); if (place === wanted) show(); } };

// --- Overview -------------------------------------------------------------------------------------------------------

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let hits = 0;
  for (const set of document.querySelectorAll(".set")) {
    let any = false;
    for (const entry of set.querySelectorAll("li")) {
      const fits = words.every((word) => entry.dataset.text.includes(word));
      entry.hidden = !fits;
      any ||= fits;
      hits += fits;
    }
    set.hidden = !any;
  }
  $("hits").textContent = words.length ? `${hits} found` : "";
}

// --- Experiment -----------------------------------------------------------------------------------------------------

const labelOf = (key) => page.schemes.find((one) => one.key === key);

/** Return the indices of the best values; none if all are equal or the metric has no better direction. */
function bestOf(values, better) {
  const known = values.filter((value) => !unknown(value));
  if (!better || better === "neither" || known.length < 2) return [];
  const merit = (value) => ({ higher: value, lower: -value, one: -Math.abs(value - 1) })[better];
  const [least, most] = [Math.min(...known.map(merit)), Math.max(...known.map(merit))];
  return least === most ? [] : values.flatMap((value, at) => (!unknown(value) && merit(value) === most ? [at] : []));
}

const withUnit = (label, unit) => (unit && unit !== "1" ? `${label} (${unit})` : label);
const scaleOf = (metric) => (metric.unit === "%" ? 100 : 1);

/** Return a row per ccperf metric, a column per scope; the best in bold. */
function metricRows(scopes, compare = true) {
  const names = [...new Set(scopes.flatMap((scope) => Object.keys(scope ?? {})))].sort();
  return names.map((name) => {
    const values = scopes.map((scope) => scope?.[name]?.[0] ?? null);
    const unit = scopes.find((scope) => scope?.[name])[name][1];
    return { cells: [withUnit(name, unit), ...values.map(short)],
      best: compare ? bestOf(values, page.better[name]).map((at) => at + 1) : [] };
  });
}

// --- Figures of a run, and of all schemes in a condition --------------------------------------------------------------

const waiting = []; // charts with a place on the page: they are drawn together, when the width of their places is known

function caption(box, text, paint) {
  const figure = make("figure", { className: "chart", ariaLabel: text });
  box.append(make("div", {}, make("p", { className: "muted", textContent: text }), figure));
  waiting.push(() => paint(figure));
}

const numbers = (values) => values.filter((value) => value !== null);

function timeChart(box, text, ends, lines) {
  const known = lines.filter((line) => numbers(line.values).length);
  if (!known.length) return;
  const most = Math.max(...known.flatMap((line) => numbers(line.values)));
  caption(box, text, (figure) => lineChart(figure, ends, known, { at: "time (s)", height: 200,
    scales: { x: { time: false }, y: { range: [0, 1.06 * most || 1] } }, cursor: { sync: { key: "time" } } }));
}

function distributionChart(box, text, lines) {
  const found = lines.map((line) => ({ ...line, values: Float64Array.from(numbers(line.values)).sort() }))
    .filter((line) => line.values.length);
  if (found.length) caption(box, `eCDF of ${text}`, (figure) => distribution(figure, found, { at: text, height: 240 }));
}

const MARKS = { circle: "M5 0A5 5 0 1 1-5 0A5 5 0 1 1 5 0Z", diamond: "M0-7L6 0L0 7L-6 0Z",
  star: "M0-9L2.1-2.9L8.6-2.8L3.4 1.1L5.3 7.3L0 3.6L-5.3 7.3L-3.4 1.1L-8.6-2.8L-2.1-2.9Z" };

/** Draw points with the quantities `x` and `y`. */
function scatterChart(box, [across, x], [up, y], given) {
  const points = given.filter((one) => Number.isFinite(one?.[x]) && Number.isFinite(one[y]));
  if (!points.length) return;
  const most = (name) => 1.12 * Math.max(...points.map((one) => one[name])) || 1;
  const least = Math.min(...points.map((one) => one[x]));
  const left = least > 0.6 * most(x) ? least - 0.3 * (most(x) - least) : 0;
  const shape = (one, more) => drawn("path", { d: MARKS[one.mark], fill: one.color, ...more });
  const paint = (figure) => {
    const { svg, place } = svgPlot(Math.max(280, figure.clientWidth), 280, { x: [left, most(x)], y: [0, most(y)], across, up });
    for (const one of points) {
      const [px, py] = place([one[x], one[y]]).map((value) => value.toFixed(1));
      const mark = shape(one, { transform: `translate(${px} ${py})` });
      mark.append(drawn("title", {}, `${one.label}: ${short(one[x])}, ${short(one[y])}`));
      svg.append(mark);
    }
    const names = points.map((one) => make("i", {}, drawn("svg", { width: 14, height: 14, viewBox: "-9 -9 18 18" }, shape(one)), ` ${one.label}`));
    figure.replaceChildren(svg, make("div", { className: "key" }, ...names));
  };
  caption(box, `${up} against ${across}`, (figure) => {
    paint(figure);
    shown.push({ figure, resize: () => paint(figure) });
  });
}

const QUANTITIES = [["throughput (Mbit/s)", "throughput_mbps"], ["sRTT (ms)", "srtt_ms"], ["in flight (packets)", "in_flight"]];
const [RATE, SRTT, IN_FLIGHT] = QUANTITIES.map(([text, name]) => [`mean ${text}`, name]);
const linesOf = (run, name) => run.flows.map((flow) => ({ label: flow.label, stroke: flow.color, values: flow.series[name] }));
const flowPoints = (run) => run.flows.map((flow) => ({ ...flow.mean, label: flow.label, color: flow.color, mark: "circle" }));
const optimum = (run) => run.optimum && { ...run.optimum, label: "optimum", color: "#d411b5", mark: "star" };

/** ccperf's figures of one run. */
const FIGURES = {
  "Operating point over time": (box, run) => {
    for (const [text, name] of QUANTITIES) timeChart(box, text, run.ends, linesOf(run, name));
    timeChart(box, "queue of the bottleneck (packets)", run.ends, [{ label: "queue", stroke: style("--muted"), values: run.queue }]);
  },
  "Distribution of the operating point": (box, run) => {
    for (const [text, name] of QUANTITIES.slice(0, 2)) distributionChart(box, text, linesOf(run, name));
  },
  "In flight against the mean operating point": (box, run) => {
    const joint = run.flows.length > 1 ? [{ ...run.joint, label: "joint", color: style("--ink"), mark: "diamond" }] : [];
    for (const up of [RATE, SRTT]) scatterChart(box, IN_FLIGHT, up, [...flowPoints(run), ...joint, optimum(run)]);
  },
  "Plane of mean operating points": (box, run) => scatterChart(box, SRTT, RATE, [...flowPoints(run), optimum(run)]),
};

/** ccperf's comparison of schemes in one condition. */
const COMPARISONS = {
  "Joint operating points": (box, runs) => scatterChart(
    box, ["mean sRTT of all flows (ms)", "srtt_ms"], ["throughput of all flows (Mbit/s)", "throughput_mbps"],
    [...runs.map((run) => ({ ...run.joint, label: run.label, color: run.color, mark: "circle" })), optimum(runs[0])]),
  "Throughput of all flows over time": (box, runs) => timeChart(box, QUANTITIES[0][0], runs[0].ends, runs.map((run) => ({
    label: run.label, stroke: run.color, values: run.ends.map((_, k) => run.flows.reduce(
      (sum, flow) => sum + (flow.series.throughput_mbps[k] ?? 0), 0)) }))),
  "Distribution of the sRTT": (box, runs) => distributionChart(box, QUANTITIES[1][0], runs.map((run) => ({
    label: run.label, stroke: run.color, values: run.flows.flatMap((flow) => flow.series.srtt_ms) }))),
};

function drawAll(place, figures, what) {
  place.replaceChildren();
  for (const [title, draw] of Object.entries(figures)) {
    const box = make("div", { className: "figures" });
    place.append(make("h3", { textContent: title }), box);
    draw(box, what);
  }
  for (const paint of waiting.splice(0)) paint();
}

// --- One run --------------------------------------------------------------------------------------------------------

/** Return a run in the form that figures need. */
function runOf(key, stored) {
  const { numbers: told, points } = stored;
  const scheme = labelOf(key);
  const ends = Array.from(floatsOf(stored.ends), (value) => Number(value.toFixed(4)));
  const values = floatsOf(stored.values);
  const row = (place) => numbersOf(values, place * ends.length, ends.length);
  const flows = told.flows.map((flow, at) => {
    const series = Object.fromEntries(page.series.map((name, k) => [name, row(at * page.series.length + k)]));
    return { ...flow, series, mean: points.flows[at], color: color(page.flowColors[at % page.flowColors.length]),
      label: told.flows.length > 1 ? `flow ${at + 1}: ${flow.scheme}` : flow.scheme };
  });
  return { key, label: scheme.label, color: color(scheme.colors), numbers: told, ends, flows,
    optimum: points.optimum, joint: points.joint, queue: row(flows.length * page.series.length) };
}

function choose() {
  wanted = Number($("condition").value);
  try { history.replaceState(null, "", `#condition=${wanted}&scheme=${$("scheme").value}`); } catch { /* of a file */ }
  if (conditions.has(wanted)) show();
  else document.body.append(make("script", { src: page.conditions[wanted].file }));
}

function show() {
  const data = conditions.get(wanted);
  const key = $("scheme").value;
  shown.length = 0;
  drawSweep();
  $("missing").hidden = key in data;
  $("detail").hidden = !(key in data);
  if (key in data) showRun(runOf(key, data[key]));
  showComparison(page.schemes.filter((scheme) => scheme.key in data).map((scheme) => runOf(scheme.key, data[scheme.key])));
}

function showRun(run) {
  const { numbers: told, flows } = run;
  const about = [["condition", page.conditions[wanted].key || "the only one"], ["path", told.path],
    ["length", `${told.duration_s} s`], ["seed", page.conditions[wanted].seed]];
  $("parameters").replaceChildren(...about.flatMap(([name, text]) => [make("dt", { textContent: name }), make("dd", { textContent: text, style: "white-space: pre-line" })]));
  $("command").textContent = page.commands[run.key];
  table("flows", ["flow", "scheme", "start (s)", "stop (s)", "RTT without a queue (ms)"], flows.map((flow, at) => ({
    cells: [String(at + 1), flow.scheme, String(flow.start_s), String(flow.stop_s), short(flow.base_rtt_ms)] })));
  table("flow-metrics", ["metric", ...flows.map((flow) => flow.label)], metricRows(flows.map((_, at) => told.tables[`flow_${at + 1}`])));
  const links = Object.keys(told.tables).filter((name) => name !== "net" && !name.startsWith("flow_"));
  table("link-metrics", ["metric", ...links], metricRows(links.map((name) => told.tables[name]), false));
  table("net-metrics", ["metric", "net"], metricRows([told.tables.net]));
  drawAll($("run-figures"), FIGURES, run);
}

function showComparison(runs) {
  const { key } = page.conditions[wanted];
  const rows = page.metrics.map((metric, at) => {
    const found = page.schemes.map((scheme) => page.values[scheme.key]?.[wanted]?.[at] ?? null);
    const scaled = (value) => short(scaleOf(metric) * value);
    const text = (one) => (one === null ? "–" : `${scaled(one[0])}${one[2] > 1 ? ` ± ${scaled(one[1])}` : ""}`);
    const best = bestOf(found.map((one) => one?.[0] ?? null), metric.better);
    return { cells: [withUnit(metric.label, metric.unit), ...found.map(text)], best: best.map((place) => place + 1) };
  });
  const nets = page.schemes.map((scheme) => runs.find((run) => run.key === scheme.key)?.numbers.tables.net);
  table("compared", [key || "", ...page.schemes.map((scheme) => scheme.label)], [...rows, ...metricRows(nets)]);
  $("compared-figures").replaceChildren();
  if (runs.length) drawAll($("compared-figures"), COMPARISONS, runs);
}

/** Draw a metric of every scheme against a coordinate of the conditions. */
function drawSweep() {
  const metric = page.metrics[Number($("sweep-metric").value)];
  const place = page.metrics.indexOf(metric);
  const name = $("sweep-x").value;
  const marks = [...new Set(page.conditions.map((one) => one.at[name]))];
  const numeric = marks.every((mark) => typeof mark === "number");
  if (numeric) marks.sort((a, b) => a - b);
  const x = numeric ? marks : marks.map((_, at) => at);
  // A mean of rates or delays over different links has no meaning: each link has a line.
  const ratio = ["", "%"].includes(metric.unit);
  const others = (one) => (ratio ? [] : Object.keys(one.at).filter((key) => key !== name))
    .map((key) => `${key.replace(/_/g, " ")} ${one.at[key]}`).join(", ");
  const groups = [...new Set(page.conditions.map(others))];
  const lines = page.schemes.flatMap((scheme) => groups.map((group) => ({
    label: group ? `${scheme.label}, ${group}` : scheme.label, stroke: color(scheme.colors),
    values: marks.map((mark) => {
      const own = page.conditions.flatMap((one, at) => (one.at[name] === mark && others(one) === group ? [page.values[scheme.key]?.[at]?.[place]?.[0] ?? null] : []))
        .filter((value) => value !== null);
      return own.length ? scaleOf(metric) * own.reduce((sum, value) => sum + value, 0) / own.length : null;
    }) }))).filter((line) => line.values.some((value) => value !== null));
  const figure = $("sweep-figure");
  figure.replaceChildren();
  if (!lines.length) return;
  const axes = chartAxes(56);
  if (!numeric) axes[0] = { ...axes[0], splits: () => x, values: () => marks.map(String), rotate: -30, size: 90 };
  const wide = numeric && x.length > 2 && x[0] > 0 && x[x.length - 1] / x[0] > 20;
  lineChart(figure, x, lines, { at: name, height: numeric ? 300 : 360, axes,
    scales: { x: { time: false, ...(wide ? { distr: 3 } : {}), ...(numeric ? {} : { range: [-0.5, x.length - 0.5] }) } },
    line: { points: { show: true, size: 6 } } });
}

function fillChoices() {
  const given = new URLSearchParams(location.hash.slice(1));
  page.conditions.forEach((one, at) => $("condition").append(new Option(one.key || "the only one", at)));
  for (const scheme of page.schemes) $("scheme").append(new Option(scheme.label, scheme.key));
  page.metrics.forEach((metric, at) => $("sweep-metric").append(new Option(withUnit(metric.label, metric.unit), at)));
  for (const name of page.coordinates) $("sweep-x").append(new Option(name.replace(/_/g, " "), name));
  if (page.conditions[given.get("condition")]) $("condition").value = given.get("condition");
  if (labelOf(given.get("scheme"))) $("scheme").value = given.get("scheme");
  for (const id of ["condition", "scheme"]) $(id).addEventListener("change", choose);
  for (const id of ["sweep-metric", "sweep-x"]) $(id).addEventListener("change", drawSweep);
}

onTheme(() => { if (page && conditions.has(wanted)) show(); });
if ($("search")) $("search").addEventListener("input", search);
if (page) {
  fillChoices();
  choose();
  onWidth(() => {});
}
