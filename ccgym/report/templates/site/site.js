// What the site's pages do. An experiment's page has its numbers in `page`; those of a condition's runs are in a script of
// their own, which calls ccgym.condition() when it is loaded.
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

function table(id, heads, rows) {
  const cell = (tag, content, name) => make(tag, { className: name, textContent: content });
  const head = make("tr", {}, ...heads.map((text, at) => cell("th", text, at ? "" : "left")));
  const body = rows.map(({ cells, best = [] }) => make("tr", {}, ...cells.map((text, at) => (
    cell("td", text, at ? (best.includes(at) ? "best" : "") : "left")))));
  $(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

/** Places of the best values; none where all are equal or the metric has no better side. */
function bestOf(values, better) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (!better || better === "neither" || known.length < 2) return [];
  const merit = (value) => ({ higher: value, lower: -value, one: -Math.abs(value - 1) })[better];
  const [least, most] = [Math.min(...known.map(merit)), Math.max(...known.map(merit))];
  return least === most ? [] : values.flatMap((value, at) => (value !== null && value !== undefined && merit(value) === most ? [at] : []));
}

function metricTable(id, scopes, heads, compare = true) {
  const names = [...new Set(scopes.flatMap((scope) => Object.keys(scope ?? {})))].sort();
  const rows = names.map((name) => {
    const values = scopes.map((scope) => scope?.[name]?.[0] ?? null);
    const unit = scopes.find((scope) => scope?.[name])[name][1];
    return { cells: [`${name}${unit === "1" ? "" : ` (${unit})`}`, ...values.map(short)],
      best: compare ? bestOf(values, page.better[name]).map((at) => at + 1) : [] };
  });
  table(id, ["metric", ...heads], rows);
}

/** A run as figures take it. */
function runOf(key, stored) {
  const { numbers, points } = stored;
  const scheme = labelOf(key);
  const ends = Array.from(floatsOf(stored.ends), (value) => Number(value.toFixed(4)));
  const values = floatsOf(stored.values);
  const row = (place) => Array.from(values.subarray(place * ends.length, (place + 1) * ends.length),
    (value) => (Number.isNaN(value) ? null : value));
  const flows = numbers.flows.map((flow, at) => {
    const series = Object.fromEntries(page.series.map((name, k) => [name, row(at * page.series.length + k)]));
    return { ...flow, series, mean: points.flows[at], color: color(page.flowColors[at % page.flowColors.length]),
      label: numbers.flows.length > 1 ? `flow ${at + 1}: ${flow.scheme}` : flow.scheme };
  });
  return { key, label: scheme.label, color: color(scheme.colors), numbers, ends, flows,
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
  const { numbers, flows } = run;
  const about = [["condition", page.conditions[wanted].key || "the only one"], ["path", numbers.path],
    ["length", `${numbers.duration_s} s`], ["seed", page.conditions[wanted].seed]];
  $("parameters").replaceChildren(...about.flatMap(([name, text]) => [make("dt", { textContent: name }), make("dd", { textContent: text, style: "white-space: pre-line" })]));
  $("command").textContent = page.commands[run.key];
  table("flows", ["flow", "scheme", "start (s)", "stop (s)", "RTT without a queue (ms)"], flows.map((flow, at) => ({
    cells: [String(at + 1), flow.scheme, String(flow.start_s), String(flow.stop_s), short(flow.base_rtt_ms)] })));
  metricTable("flow-metrics", flows.map((_, at) => numbers.tables[`flow_${at + 1}`]), flows.map((flow) => flow.label));
  const links = Object.keys(numbers.tables).filter((name) => name !== "net" && !name.startsWith("flow_"));
  metricTable("link-metrics", links.map((name) => numbers.tables[name]), links, false);
  metricTable("net-metrics", [numbers.tables.net], ["net"]);
  drawAll($("run-figures"), FIGURES, run);
}

function drawAll(place, figures, what) {
  place.replaceChildren();
  for (const figure of figures) {
    const box = make("div", { className: "figures" });
    place.append(make("h3", { textContent: figure.title }), box);
    figure.draw(box, what);
  }
  drawWaiting();
}

function showComparison(runs) {
  const { key } = page.conditions[wanted];
  const heads = page.schemes.map((scheme) => scheme.label);
  const rows = page.metrics.map((metric, at) => {
    const found = page.schemes.map((scheme) => page.values[scheme.key]?.[wanted]?.[at] ?? null);
    const scale = metric.unit === "%" ? 100 : 1;
    const text = (one) => (one === null ? "–" : `${short(scale * one[0])}${one[2] > 1 ? ` ± ${short(scale * one[1])}` : ""}`);
    const best = bestOf(found.map((one) => one?.[0] ?? null), metric.better);
    return { cells: [`${metric.label}${metric.unit ? ` (${metric.unit})` : ""}`, ...found.map(text)], best: best.map((place) => place + 1) };
  });
  const nets = page.schemes.map((scheme) => runs.find((run) => run.key === scheme.key)?.numbers.tables.net);
  for (const name of [...new Set(nets.flatMap((net) => Object.keys(net ?? {})))].sort()) {
    const values = nets.map((net) => net?.[name]?.[0] ?? null);
    const unit = nets.find((net) => net?.[name])[name][1];
    rows.push({ cells: [`${name}${unit === "1" ? "" : ` (${unit})`}`, ...values.map(short)], best: bestOf(values, page.better[name]).map((at) => at + 1) });
  }
  table("compared", [key || "", ...heads], rows);
  $("compared-figures").replaceChildren();
  if (runs.length) drawAll($("compared-figures"), COMPARISONS, runs);
}

/** A metric of every scheme against a coordinate of the conditions. */
function drawSweep() {
  const metric = page.metrics[Number($("sweep-metric").value)];
  const place = page.metrics.indexOf(metric);
  const name = $("sweep-x").value;
  const marks = [...new Set(page.conditions.map((one) => one.at[name]))];
  const numeric = marks.every((mark) => typeof mark === "number");
  if (numeric) marks.sort((a, b) => a - b);
  const x = numeric ? marks : marks.map((_, at) => at);
  const scale = metric.unit === "%" ? 100 : 1;
  // Rates and delays of different links have no common mean: each gets a line.
  const ratio = ["", "%"].includes(metric.unit);
  const others = (one) => (ratio ? [] : Object.keys(one.at).filter((key) => key !== name))
    .map((key) => `${key.replace(/_/g, " ")} ${one.at[key]}`).join(", ");
  const groups = [...new Set(page.conditions.map(others))];
  const lines = page.schemes.flatMap((scheme) => groups.map((group) => ({
    label: group ? `${scheme.label}, ${group}` : scheme.label, stroke: color(scheme.colors),
    values: marks.map((mark) => {
      const own = page.conditions.flatMap((one, at) => (one.at[name] === mark && others(one) === group ? [page.values[scheme.key]?.[at]?.[place]?.[0] ?? null] : []))
        .filter((value) => value !== null);
      return own.length ? scale * own.reduce((sum, value) => sum + value, 0) / own.length : null;
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
  page.metrics.forEach((metric, at) => $("sweep-metric").append(new Option(`${metric.label}${metric.unit ? ` (${metric.unit})` : ""}`, at)));
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
  let width = document.body.clientWidth;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (width === document.body.clientWidth) return;
    width = document.body.clientWidth;
    for (const { figure, resize } of shown) if (figure.isConnected) resize();
  })).observe(document.body);
}
