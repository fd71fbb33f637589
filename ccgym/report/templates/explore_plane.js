// The plane of throughput and delay in explore.html: an SVG. It uses functions of explore.js; explore.html.j2 puts both
// into one function.
const pointOf = (run) => (run.numbers[1] === null || run.numbers[0] === null ? null : [run.numbers[1], run.numbers[0]]);
const meanOf = (scheme) => (scheme.numbers[0] && scheme.numbers[1] ? [scheme.numbers[1][0], scheme.numbers[0][0]] : null);

/** Return the ellipse of one standard deviation around the mean of points, as a polygon. */
function ellipse(points) {
  const count = points.length;
  const [mx, my] = [0, 1].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / count);
  const over = (f) => points.reduce((sum, [x, y]) => sum + f(x - mx, y - my), 0) / (count - 1);
  const [xx, yy, xy] = [over((x) => x * x), over((_, y) => y * y), over((x, y) => x * y)];
  // The Cholesky factor of the covariance.
  const a = Math.sqrt(xx);
  const b = a ? xy / a : 0;
  const c = Math.sqrt(Math.max(0, yy - b * b));
  return Array.from({ length: 72 }, (_, k) => {
    const [cos, sin] = [Math.cos(k * Math.PI / 36), Math.sin(k * Math.PI / 36)];
    return [mx + a * cos, my + b * cos + c * sin];
  });
}

function drawPlane() {
  const figure = $("plane-figure");
  const width = figure.clientWidth;
  const height = Math.round(Math.max(300, Math.min(540, 0.55 * width)));
  const visible = schemes.filter((scheme) => !state.hidden.has(scheme.key));
  const all = visible.flatMap((scheme) => [...scheme.runs.map(pointOf), scheme.published]).filter(Boolean);
  const delays = all.map((point) => point[0]);
  const positive = delays.length > 0 && Math.min(...delays) > 0;
  $("log").disabled = !positive;
  const log = $("log").checked && positive;
  const view = state.view ?? wholeView(all, delays, log);
  // More delay is to the left, as in Pantheon's figures.
  const plot = svgPlot(width, height, { x: [view.x1, view.x0], y: [view.y0, view.y1], log,
    across: "95th percentile of the one-way delay (ms)", up: "throughput (Mbit/s)",
    label: "throughput against 95th-percentile one-way delay; the tables above have the numbers" });
  const { svg, place, inner } = plot;
  plot.text(width - MARGIN.right - 4, inner.y + 12, "better ↗", "end");
  const clip = drawn("clipPath", { id: "inside" }, drawn("rect", { ...inner, y: inner.y - 8, height: inner.height + 8 }));
  const marks = drawn("g", { "clip-path": "url(#inside)" });
  svg.append(clip, marks);
  const layers = [[], [], []];
  for (const scheme of visible) {
    const paint = color(scheme.colors);
    const points = scheme.runs.filter((run) => run.ignored === null).map(pointOf).filter(Boolean);
    if (points.length > 1 && scheme.numbers[0]?.[1] !== null) {
      layers[0].push(drawn("path", { class: "ellipse", fill: paint, stroke: paint,
        d: `M${ellipse(points).map((point) => place(point).map((v) => v.toFixed(1)).join(" ")).join("L")}Z` }));
    }
    for (const run of scheme.runs) {
      const point = pointOf(run);
      if (point) layers[1].push(mark(scheme, place(point), 3.4, run, point, run.ignored === null ? 0.6 : 0.25));
    }
    if (scheme.published) layers[2].push(mark(scheme, place(scheme.published), 6, null, scheme.published, 1, true));
    const mean = meanOf(scheme);
    if (mean) layers[2].push(mark(scheme, place(mean), 7, scheme, mean, 1));
  }
  marks.append(...layers.flat());
  figure.replaceChildren(svg, make("div", { id: "tip", hidden: true }));
  planeZoom(plot);
}

function wholeView(all, delays, log) {
  if (!all.length) return { x0: 0, x1: 1, y0: 0, y1: 1 };
  let [x0, x1] = [Math.min(...delays), Math.max(...delays)];
  const room = log ? Math.max(1.02, (x1 / x0) ** 0.08) : Math.max(0.08 * (x1 - x0), 0.01 * x1, 0.5);
  [x0, x1] = log ? [x0 / room, x1 * room] : [x0 - room, x1 + room];
  return { x0, x1, y0: 0, y1: 1.08 * Math.max(...all.map((point) => point[1])) || 1 };
}

/** Draw a marker; a click opens `entity`, which is null for published results. */
function mark(scheme, [x, y], size, entity, point, opacity, hollow = false) {
  const paint = color(scheme.colors);
  const filled = scheme.mark.filled && !hollow;
  const large = size > 5;
  const element = drawn("path", {
    d: scheme.mark.path, class: "mark", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})`, opacity,
    fill: filled ? paint : "none", "vector-effect": "non-scaling-stroke", "pointer-events": "all",
    stroke: filled ? (large ? style("--paper") : "none") : paint, "stroke-width": filled ? 1 : large ? 2 : 1.4,
  });
  const title = entity ? entity.title + (entity.runs ? `, mean of ${entity.counted.length}` : "") : `${scheme.label}, published`;
  const ignored = entity?.ignored ? `\ndoes not count: ${entity.ignored}` : "";
  element.addEventListener("pointerenter", () => {
    const tip = $("tip");
    tip.textContent = `${title}: ${short(point[1])} Mbit/s, ${short(point[0])} ms${ignored}`;
    tip.hidden = false;
    const room = $("plane-figure").clientWidth - tip.offsetWidth;
    Object.assign(tip.style, { left: `${Math.max(0, Math.min(x + 10, room))}px`, top: `${y + 12}px` });
  });
  element.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  if (entity) {
    element.dataset.entity = entity.name;
    element.addEventListener("click", () => open(entity));
  }
  return element;
}

/** Zoom to a rectangle that the user draws with the mouse. */
function planeZoom({ svg, at, inner }) {
  let start = null;
  const box = drawn("rect", { class: "box", width: 0, height: 0 });
  svg.append(box);
  const inside = (value, low, size) => Math.max(low, Math.min(value, low + size));
  const under = (event) => {
    const corner = svg.getBoundingClientRect();
    return [inside(event.clientX - corner.left, inner.x, inner.width), inside(event.clientY - corner.top, inner.y, inner.height)];
  };
  const span = (now) => [0, 1].map((axis) => [Math.min(start[axis], now[axis]), Math.abs(start[axis] - now[axis])]);
  svg.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0 || event.target.classList.contains("mark")) return;
    event.preventDefault();
    start = under(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!start) return;
    const [[x, width], [y, height]] = span(under(event));
    for (const [name, value] of Object.entries({ x, y, width, height })) box.setAttribute(name, value);
  });
  svg.addEventListener("pointerup", (event) => {
    if (!start) return;
    const [[x, width], [y, height]] = span(under(event));
    start = null;
    if (width < 8 || height < 8) return drawPlane();
    const [[x1, y1], [x0, y0]] = [at(x, y), at(x + width, y + height)];
    state.view = { x0, x1, y0, y1 };
    drawPlane();
  });
  svg.addEventListener("dblclick", wholePlane);
}

function wholePlane() {
  state.view = null;
  drawPlane();
}

function fillLegend() {
  $("legend").replaceChildren(...schemes.filter((scheme) => scheme.unavailable === null).map((scheme) => {
    const paint = color(scheme.colors);
    const sign = drawn("svg", { width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": true }, drawn("path", {
      d: scheme.mark.path, transform: "scale(6)", "vector-effect": "non-scaling-stroke", "stroke-width": 2,
      fill: scheme.mark.filled ? paint : "none", stroke: scheme.mark.filled ? "none" : paint }));
    const button = make("button", { type: "button" }, sign, scheme.label);
    button.setAttribute("aria-pressed", !state.hidden.has(scheme.key));
    button.addEventListener("click", () => {
      state.hidden[state.hidden.has(scheme.key) ? "delete" : "add"](scheme.key);
      button.setAttribute("aria-pressed", !state.hidden.has(scheme.key));
      drawPlane();
      observeCdf();
    });
    return button;
  }));
}
