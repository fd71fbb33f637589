"""Rows of ccperf's tables, and of our own ns-3 runs of its commands, recomputed through the public interface.

One preset describes every run: ns-3's dumbbell with its access links (:meth:`Experiment.path`), and flows with ns-3's
transport, an acknowledgement per packet, ccperf's send buffer of 4 MB and a three-way handshake before the first byte.
One table gives the schemes. Nothing is fitted to a row.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

import ccgym
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.simulate import Record
from ccgym.experiments.expand import Scenario, conditions, generator
from ccgym.experiments.load import load_experiment
from ccgym.schemes.flow import FlowSpec

DATA: Final = Path(__file__).parent / "data"
NS3: Final = "ccperf_ns3_reproduction.csv.gz"

SCHEMES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "TcpNewReno": ("reno", {"mode": "ns3"}),
    "TcpCubic": ("cubic", {"mode": "ns3"}),
    "TcpVegas": ("vegas", {"mode": "ns3"}),
    "TcpBbr": ("bbr", {}),
}
"""ccperf's names of the schemes; TcpBbr of ns-3.37 is not a usable target (data/README.md) and not judged."""
JUDGED: Final = ("TcpNewReno", "TcpCubic", "TcpVegas")

LIMITS: Final = {"throughput-like": 0.03, "rest": 0.10}
"""The largest deviation of a value."""
_THROUGHPUT_LIKE: Final = re.compile(r"mean_(agg_)?(throughput|delivery_rate|sending_rate|utilization_bw)_l\d")

DURATION: Final = "15s"
SAMPLING_S: Final = 0.01
BIN_S: Final = 0.06
"""Bins of throughput of our ns-3 runs, whatever the round trip; ours are four base round trips, the same at 15 ms."""
DRAWS: Final = 40
"""Seeds of an experiment with random loss; without one, seeds change nothing."""


def _published() -> dict[str, Scenario]:
    """The experiments that are known by a published command line, as ``configs/experiments/ccperf.yaml`` has them."""
    found = load_experiment("ccperf")
    made = conditions(found.experiments[0])
    return {str(one.at["experiment"]): one.make(generator(0)) for one in made}


PUBLISHED: Final = _published()


@dataclass(frozen=True)
class Experiment:
    """One ccperf run: parameters and schemes."""

    name: str
    """As in the table, e.g. ``reno_fairness#85``."""
    algorithms: tuple[str, ...]
    """ccperf's name of each flow's scheme."""
    access: str = "10gbps"
    """Rate of the access links."""

    @property
    def label(self) -> str:
        """Short name for tables."""
        return f"{self.name} {', '.join(a.removeprefix('Tcp') for a in self.algorithms)}"

    @property
    def parameters(self) -> dict[str, Any]:
        """``bw``, ``rtts`` (ms, one per flow) and ``qlen``; of published ones the ``rtts`` alone."""
        if self.name in PUBLISHED:
            found: dict[str, Any] = {"rtts": (15,)}
        else:
            match = re.search(r"bw=(\d+)Mbps rtts?=([\d;ms]+) qlen=(\d+p)", self.name)
            assert match is not None, self.name
            rtts = tuple(int(rtt.removesuffix("ms")) for rtt in match[2].split(";"))
            found = {"bw": f"{match[1]}mbps", "rtts": rtts, "qlen": match[3]}
        if len(found["rtts"]) == 1:
            found["rtts"] = found["rtts"] * len(self.algorithms)
        return found

    def bottleneck(self) -> ccgym.NetworkPath:
        """The link that all flows share, without any delay."""
        if self.name in PUBLISHED:
            path = PUBLISHED[self.name].path
            return ccgym.NetworkPath(chain=[element for element in path.chain if element.kind != "delay"])
        given = self.parameters
        # ns-3's point-to-point header has 2 bytes, and one packet waits in the device.
        return ccgym.NetworkPath(rate=given["bw"], queue=given["qlen"], rtt="0ms", overhead=2, device_packets=1)

    def path(self) -> ccgym.NetworkPath:
        """ns-3's dumbbell: each flow has a link of its own at both ends, and half of its round trip in each."""
        trips = list(enumerate(self.parameters["rtts"], 1))
        before = {f"sender_{number}": access_link(rtt, self.access) for number, rtt in trips}
        behind = {f"receiver_{number}": access_link(rtt, self.access) for number, rtt in trips}
        return ccgym.NetworkPath(links={**before, "bottleneck": self.bottleneck(), **behind}, name=self.name)

    def flows(self) -> list[FlowSpec]:
        """All connect at 0, as ns-3's do."""
        return [flow(algorithm, number) for number, algorithm in enumerate(self.algorithms, 1)]

    @property
    def judged(self) -> bool:
        """Whether its values are: one draw of random loss says little, and ns-3's TcpBbr nothing."""
        return not self.random and set(self.algorithms) <= set(JUDGED)

    @property
    def random(self) -> bool:
        """Whether it draws random losses, so that one run is one sample of many."""
        return self.bottleneck().loss > 0

    def runs(self) -> list[RunRecord]:
        """The run, or for a random experiment :data:`DRAWS` of them."""
        seeds = range(1, DRAWS + 1) if self.random else (42,)
        # Of published runs the spacing of packets, too.
        path, flows, keep = self.path(), self.flows(), Record(packets=self.name in PUBLISHED and not self.random)
        return [ccgym.simulate(path, flows, DURATION, seed, keep) for seed in seeds]


def access_link(rtt_ms: float, rate: str) -> ccgym.NetworkPath:
    """One at either end of a flow of this round trip. At 10 Gbit/s its 1.2 µs per packet decide in which order packets
    of several flows meet, and on which millisecond a round trip is rounded."""
    queue = "100000p"
    return ccgym.NetworkPath(
        rate=rate, queue=queue, reverse_rate=rate, reverse_queue=queue, rtt=f"{rtt_ms / 2}ms", overhead=2
    )


def flow(algorithm: str, number: int) -> FlowSpec:
    """The one preset of all flows."""
    scheme, params = SCHEMES[algorithm]
    return FlowSpec.model_validate(
        {
            "scheme": scheme,
            "params": params,
            "profile": "ns3",
            "route": [f"sender_{number}", "bottleneck", f"receiver_{number}"],
            "ack_every": 1,
            "send_buffer": "4MB",
        }
    )


@dataclass(frozen=True)
class Row:
    """One value of a table and ours."""

    experiment: Experiment
    scope: str
    """``flow_1``, ``btl_forward`` or ``net``."""
    metric: str
    theirs: float
    ours: float
    rounding: float = 0.0
    """Half of the last digit that theirs is printed with, where that is coarse."""
    caution: str = ""
    """Why it is not judged; empty if it is."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells rows of one source apart."""
        return self.experiment.label, self.scope, self.metric

    @property
    def limit(self) -> float:
        """The deviation that is allowed."""
        return LIMITS["throughput-like" if _THROUGHPUT_LIKE.fullmatch(self.metric) else "rest"]

    @property
    def deviation(self) -> float:
        """Ours − theirs, relative; against a zero, 0 when ours is zero too, else infinite."""
        if self.theirs == 0:
            return 0.0 if self.ours == 0 else float("inf")
        return (self.ours - self.theirs) / abs(self.theirs)

    @property
    def holds(self) -> bool:
        """Whether ours lies within the limit, or within it of a value that is printed like theirs."""
        return abs(self.ours - self.theirs) <= self.limit * abs(self.theirs) + self.rounding

    @property
    def scheme(self) -> str:
        """The flow's, of what is of one; else the first flow's, which is the tested one."""
        place = int(self.scope.removeprefix("flow_")) - 1 if self.scope.startswith("flow_") else 0
        return self.experiment.algorithms[place]


def values(runs: Sequence[RunRecord]) -> dict[tuple[str, str], float]:
    """Every metric by scope and name, the mean over the runs."""
    found: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        if any(table["cov_throughput_l4"].bin_s != BIN_S for table in run.ccperf().flows):
            for key, value in _in_bins_of_ns3(run).items():
                found.setdefault(key, []).append(value)
        for scope, table in run.ccperf().scopes().items():
            for name, metric in table.items():
                if metric.value is not None and (name != "cov_throughput_l4" or metric.bin_s == BIN_S):
                    found.setdefault((scope, name), []).append(metric.value)
    return {key: fmean(parts) for key, parts in found.items()}


def _in_bins_of_ns3(run: RunRecord) -> dict[tuple[str, str], float]:
    """The variation of each flow's throughput: what depends on the bin in a run of longer round trips."""
    found = {}
    for number, flow in enumerate(run.series["flows"], 1):
        steps = round(BIN_S / SAMPLING_S)
        per_bin = np.diff(np.concatenate(([0], flow["read_bytes"]))[::steps].astype(float))
        found[(f"flow_{number}", "cov_throughput_l4")] = float(per_bin.std() / per_bin.mean())
    return found


@cache
def simulated(experiment: Experiment) -> dict[tuple[str, str], float]:
    """Our values for an experiment; computed once."""
    return values(experiment.runs())


def _table(name: str) -> Iterator[dict[str, str]]:
    opened = gzip.open if name.endswith(".gz") else open
    with opened(DATA / name, "rt", newline="") as file:
        yield from csv.DictReader(file)


def ns3_experiments() -> list[Experiment]:
    """The runs of ns-3, in the order of the table."""
    return list(dict.fromkeys(Experiment(row["experiment"], tuple(row["algs"].split("|"))) for row in _table(NS3)))


def ns3_metrics() -> list[str]:
    """The metrics of these runs, by name."""
    return sorted({row["metric"] for row in _table(NS3)})


@cache
def ns3_rows() -> list[Row]:
    """Every value of our ns-3 runs, and ours."""
    rows = []
    for row in _table(NS3):
        experiment = Experiment(row["experiment"], tuple(row["algs"].split("|")))
        ours = simulated(experiment)[(row["scope"], row["metric"])]
        theirs = float(row["value_ns3_3_37"])
        rows.append(Row(experiment, row["scope"], row["metric"], theirs, ours, caution=row["caution"]))
    return rows


def published_rows(number: int) -> list[Row]:
    """Every published value of experiment 85 or 21, and ours."""
    rows = []
    for row in _table("ccperf_published.csv"):
        if int(row["experiment_number"]) == number and row["scope"] != "net_mismatched":
            flows = 2 if number == 85 else 1
            experiment = Experiment(f"{row['experiment_page']}#{number}", (row["cca"],) * flows)
            ours = simulated(experiment)[(row["scope"], row["metric"])]
            rows.append(Row(experiment, row["scope"], row["metric"], float(row["value"]), ours, rounding=0.005))
    return rows


def fast_access() -> dict[Experiment, dict[str, tuple[float, float]]]:
    """Runs of ns-3 with access links of 100 Gbit/s: Mbit/s and retransmissions of each flow."""
    found: dict[Experiment, dict[str, tuple[float, float]]] = {}
    for row in _table("ccperf_ns3_fast_access.csv"):
        experiment = Experiment(row["experiment"], tuple(row["algs"].split("|")), "100gbps")
        numbers = float(row["throughput_mbps"]), float(row["retransmissions"])
        found.setdefault(experiment, {})[row["scope"]] = numbers
    return found


def other_runs_values() -> int:
    """How many values on the page of experiment 21 are of another run, of ten flows, which it does not describe."""
    return sum(row["scope"] == "net_mismatched" for row in _table("ccperf_published.csv"))


def loss_draws(algorithm: str) -> list[float]:
    """Throughputs of 30 runs of ns-3 of loss_resilience#7, Mbit/s; they differ in the losses drawn only."""
    return [float(row["throughput_mbps"]) for row in _table("ccperf_ns3_loss_draws.csv") if row["cca"] == algorithm]
