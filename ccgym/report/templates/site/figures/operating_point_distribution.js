// ccperf's distribution of the operating point: eCDFs of throughput and sRTT, a curve per flow.
FIGURES.push({
  title: "Distribution of the operating point",
  draw(box, run) {
    for (const [title, unit, name] of [["throughput", "Mbit/s", "throughput_mbps"], ["sRTT", "ms", "srtt_ms"]]) {
      distributionChart(box, `${title} (${unit})`, run.flows.map((flow) => ({
        label: flow.label, stroke: flow.color, values: flow.series[name] })));
    }
  },
});
