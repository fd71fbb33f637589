"""The last step of set-up: import the package, simulate one second, print the result."""

from __future__ import annotations

import time

start = time.perf_counter()
from ccgym import NetworkPath, simulate  # noqa: E402  (their import is timed)

imported = time.perf_counter()
path = NetworkPath(rate="12mbps", rtt="20ms", queue="40p")
run = simulate(path, flows=["cubic"], duration="1s", seed=1)
simulated = time.perf_counter()

throughput = run.flows[0].throughput_mbps
if not 1.0 < throughput <= 12.0:
    raise SystemExit(f"one second of cubic over 12 Mbit/s, 20 ms gave {throughput} Mbit/s: the build is broken")
print(
    f"imported in {imported - start:.2f} s; one simulated second of cubic over 12 Mbit/s, 20 ms: "
    f"{throughput:.2f} Mbit/s in {(simulated - imported) * 1000:.0f} ms"
)
