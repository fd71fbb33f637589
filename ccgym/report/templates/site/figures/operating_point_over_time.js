// ccperf's time series of the operating point: segments in flight, sRTT and throughput over time, a line per flow.
FIGURES.push({
  title: "Operating point over time",
  draw(box, run) {
    const panels = [["throughput", "Mbit/s", "throughput_mbps"], ["sRTT", "ms", "srtt_ms"], ["in flight", "packets", "in_flight"]];
    for (const [title, unit, name] of panels) {
      const lines = run.flows.map((flow) => ({ label: flow.label, stroke: flow.color, values: flow.series[name] }));
      timeChart(box, `${title} (${unit})`, run.ends, lines);
    }
    timeChart(box, "queue of the bottleneck (packets)", run.ends, [{ label: "queue", stroke: style("--muted"), values: run.queue }]);
  },
});
