// The three kinds of charts on experiments' pages: over time, distributions, points. Figures are in figures/, one each.
const FIGURES = [];
const COMPARISONS = [];
const shown = [];
const waiting = []; // charts whose places are there: they are drawn together, when it is known how wide those are

function drawWaiting() {
  for (const paint of waiting.splice(0)) paint();
}

function caption(box, text) {
  const place = make("div");
  const figure = make("figure", { className: "chart" });
  figure.setAttribute("aria-label", text);
  place.append(make("p", { className: "muted", textContent: text }), figure);
  box.append(place);
  return figure;
}

function lineChart(figure, x, lines, options) {
  const dashes = lines.map((line, at) => (lines.findIndex((one) => one.stroke === line.stroke) < at ? [6, 4] : undefined));
  const series = lines.map((line, at) => ({ label: line.label, stroke: line.stroke, dash: dashes[at], width: 1.6,
    points: { show: false }, value: (_, value) => short(value), ...options.line }));
  const chart = new uPlot({
    width: figure.clientWidth, height: options.height, legend: { live: true }, axes: options.axes ?? chartAxes(52),
    series: [{ label: options.at, value: (_, value) => short(value) }, ...series], scales: options.scales,
    cursor: { drag: { x: true, y: false }, points: { size: 6 }, ...options.cursor },
  }, [x, ...lines.map((line) => line.values)], figure);
  shown.push({ figure, resize: () => chart.setSize({ width: figure.clientWidth, height: options.height }) });
}

function timeChart(box, text, ends, lines) {
  const known = lines.filter((line) => line.values.some((value) => value !== null));
  if (!known.length) return;
  const most = Math.max(...known.flatMap((line) => line.values.filter((value) => value !== null)));
  const figure = caption(box, text);
  waiting.push(() => lineChart(figure, ends, known, { at: "time (s)", height: 200,
    scales: { x: { time: false }, y: { range: [0, 1.06 * most || 1] } }, cursor: { sync: { key: "time" } } }));
}

function distributionChart(box, text, lines) {
  const found = lines.map((line) => ({ ...line, sorted: Float64Array.from(line.values.filter((one) => one !== null)).sort() }))
    .filter((line) => line.sorted.length);
  if (!found.length) return;
  const x = quantileGrid(found.map((line) => line.sorted));
  const figure = caption(box, `eCDF of ${text}`);
  waiting.push(() => lineChart(figure, x, found.map((line) => ({ ...line, values: shareBelow(line.sorted, x) })), {
    at: text, height: 240, scales: { x: { time: false }, y: { range: [0, 1] } },
    line: { paths: uPlot.paths.stepped({ align: 1 }) } }));
}

const MARKS = { circle: "M5 0A5 5 0 1 1-5 0A5 5 0 1 1 5 0Z", diamond: "M0-7L6 0L0 7L-6 0Z",
  star: "M0-9L2.1-2.9L8.6-2.8L3.4 1.1L5.3 7.3L0 3.6L-5.3 7.3L-3.4 1.1L-8.6-2.8L-2.1-2.9Z" };

function scatterChart(box, across, up, points) {
  points = points.filter((one) => Number.isFinite(one.x) && Number.isFinite(one.y));
  if (!points.length) return;
  const figure = caption(box, `${up} against ${across}`);
  const paint = () => {
    const [width, height] = [Math.max(280, figure.clientWidth), 280];
    const [left, right, top, bottom] = [56, 16, 12, 44];
    const [x1, y1] = [1.12 * Math.max(...points.map((one) => one.x)) || 1, 1.12 * Math.max(...points.map((one) => one.y)) || 1];
    const least = Math.min(...points.map((one) => one.x));
    const x0 = least > 0.6 * x1 ? least - 0.3 * (x1 - least) : 0;
    const at = (x, y) => [left + (width - left - right) * (x - x0) / (x1 - x0), height - bottom - (height - top - bottom) * y / y1];
    const svg = drawn("svg", { class: "plot", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${up} against ${across}` });
    const text = (x, y, content, anchor, more = {}) => {
      const element = drawn("text", { x, y, "text-anchor": anchor, ...more });
      element.textContent = content;
      svg.append(element);
    };
    for (const value of ticks(x0, x1, Math.max(3, Math.floor(width / 90)))) {
      const [x] = at(value, 0);
      svg.append(drawn("line", { x1: x, x2: x, y1: top, y2: height - bottom, class: "grid" }));
      text(x, height - bottom + 17, minus(String(value)), "middle");
    }
    for (const value of ticks(0, y1, 5)) {
      const [, y] = at(x0, value);
      svg.append(drawn("line", { x1: left, x2: width - right, y1: y, y2: y, class: "grid" }));
      text(left - 7, y + 4, minus(String(value)), "end");
    }
    text((left + width - right) / 2, height - 6, across, "middle");
    text(0, 0, up, "middle", { transform: `translate(13 ${(top + height - bottom) / 2}) rotate(-90)` });
    for (const one of points) {
      const [x, y] = at(one.x, one.y);
      const mark = drawn("path", { d: MARKS[one.mark], transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, fill: one.color });
      const title = drawn("title", {});
      title.textContent = `${one.label}: ${short(one.x)}, ${short(one.y)}`;
      mark.append(title);
      svg.append(mark);
    }
    const names = points.map((one) => {
      const sign = drawn("svg", { width: 14, height: 14, viewBox: "-9 -9 18 18" }, drawn("path", { d: MARKS[one.mark], fill: one.color }));
      return make("i", {}, sign, ` ${one.label}`);
    });
    figure.replaceChildren(svg, make("div", { className: "key" }, ...names));
  };
  waiting.push(paint);
  shown.push({ figure, resize: paint });
}
