// ccperf's in flight against the mean operating point: mean throughput and mean sRTT per flow, the joint point of all
// flows, and the optimum: one bandwidth-delay product in flight, the whole capacity, no queue.
FIGURES.push({
  title: "In flight against the mean operating point",
  draw(box, run) {
    const flows = run.flows.map((flow) => ({ ...flow.mean, label: flow.label, color: flow.color, mark: "circle" }));
    const joint = { ...run.joint, label: "joint", color: style("--ink"), mark: "diamond" };
    const optimum = run.optimum && { ...run.optimum, label: "optimum", color: "#d411b5", mark: "star" };
    const points = [...flows, ...(flows.length > 1 ? [joint] : []), ...(optimum ? [optimum] : [])];
    for (const [name, text] of [["throughput_mbps", "mean throughput (Mbit/s)"], ["srtt_ms", "mean sRTT (ms)"]]) {
      scatterChart(box, "mean in flight (packets)", text, points.map((one) => ({ ...one, x: one.in_flight, y: one[name] })));
    }
  },
});
