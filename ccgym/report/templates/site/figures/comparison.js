// ccperf's comparison of schemes in one condition: the joint operating points of all, and their distributions.
COMPARISONS.push({
  title: "Joint operating points",
  draw(box, runs) {
    const points = runs.map((run) => ({ label: run.label, color: run.color, mark: "circle", x: run.joint.srtt_ms, y: run.joint.throughput_mbps }));
    const { optimum } = runs[0];
    if (optimum) points.push({ label: "optimum", color: "#d411b5", mark: "star", x: optimum.srtt_ms, y: optimum.throughput_mbps });
    scatterChart(box, "mean sRTT of all flows (ms)", "throughput of all flows (Mbit/s)", points);
  },
}, {
  title: "Throughput of all flows over time",
  draw(box, runs) {
    timeChart(box, "throughput (Mbit/s)", runs[0].ends, runs.map((run) => ({
      label: run.label, stroke: run.color, values: run.ends.map((_, k) => run.flows.reduce(
        (sum, flow) => sum + (flow.series.throughput_mbps[k] ?? 0), 0)) })));
  },
}, {
  title: "Distribution of the sRTT",
  draw(box, runs) {
    distributionChart(box, "sRTT (ms)", runs.map((run) => ({
      label: run.label, stroke: run.color, values: run.flows.flatMap((flow) => flow.series.srtt_ms) })));
  },
});
