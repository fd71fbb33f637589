// ccperf's plane of mean operating points: mean throughput against mean sRTT, a mark per flow.
FIGURES.push({
  title: "Plane of mean operating points",
  draw(box, run) {
    const points = run.flows.map((flow) => ({
      label: flow.label, color: flow.color, mark: "circle", x: flow.mean.srtt_ms, y: flow.mean.throughput_mbps }));
    if (run.optimum) {
      points.push({ label: "optimum", color: "#d411b5", mark: "star", x: run.optimum.srtt_ms, y: run.optimum.throughput_mbps });
    }
    scatterChart(box, "mean sRTT (ms)", "mean throughput (Mbit/s)", points);
  },
});
