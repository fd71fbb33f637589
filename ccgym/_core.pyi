"""The native core (Rust, crates/ccgym-py), typed."""

import os
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "BatchSimulator",
    "SimResult",
    "Trace",
    "__version__",
    "check_scheme",
    "schemes",
    "simulate",
    "simulate_many",
]

__version__: str

@final
class Trace:
    """A mahimahi delivery trace: immutable, parsed once, shared by every simulation."""

    @staticmethod
    def parse(text: bytes, name: str) -> Trace:
        """Parse the text of a trace file. Raises ValueError("name:line: found …, expected …; …")."""

    @staticmethod
    def from_ms(times: npt.NDArray[np.uint64], name: str) -> Trace:
        """A trace from milliseconds. Raises ValueError as `parse` does."""

    @property
    def name(self) -> str:
        """The name given at construction."""

    @property
    def times_ms(self) -> npt.NDArray[np.uint64]:
        """A copy of the lines, milliseconds."""

    @property
    def mean_rate_bps(self) -> float:
        """12000 · lines / last: bits per second of full 1500-byte IP packets."""

    def __len__(self) -> int: ...

@final
class SimResult:
    """Outcome of one simulation."""

    def summary(self) -> str:
        """Counters of the run, as JSON."""

    def packets(self, direction: Literal["data", "ack"]) -> dict[str, npt.NDArray[Any]]:
        """Every packet in order of entry: entered_ns, left_ns (2⁶⁴−1: lost or in flight), size, flow (from 0)."""

    def series(self) -> dict[str, Any]:
        """Sampled series: {"t_ns": …, "flows": [{…}, …], "link": {…}}."""

    def link_events(self, direction: Literal["up", "down"]) -> dict[str, npt.NDArray[Any]]:
        """Events of the first link of a direction: kind, time_ns, size, flow, arrival_ns."""

    def write_tunnel_log(
        self, path: str | os.PathLike[str], direction: Literal["data", "ack"], start_epoch_ms: float
    ) -> None:
        """Write Pantheon's merged tunnel log of a direction. Raises OSError."""

    def write_mm_log(self, path: str | os.PathLike[str], direction: Literal["up", "down"], header: str) -> None:
        """Write mahimahi's log of the first link of a direction below `header`. Raises OSError."""

@final
class BatchSimulator:
    """N independent simulators; one flow of each is observed and, if its scheme is `external`, steered."""

    def __new__(cls, specs: list[str], traces: dict[str, Trace], threads: int = 0, flow: int = 0) -> BatchSimulator: ...
    @staticmethod
    def columns() -> list[str]:
        """Names of the columns that `step` writes."""

    def __len__(self) -> int: ...
    def reset(self, index: int, spec: str) -> None:
        """Replace simulator `index` by a fresh one."""

    def control(self, cwnd: npt.NDArray[np.uint64], pacing: npt.NDArray[np.uint64]) -> None:
        """Set window (bytes) and pacing rate (bits per second; 0: unpaced) of the observed flow in each simulator."""

    def step(self, steps_ns: npt.NDArray[np.uint64], out: npt.NDArray[np.float64]) -> list[bool]:
        """Advance simulator i by `steps_ns[i]`, write its statistics to row i of `out`; whether each run has ended."""

def simulate(spec_json: str, traces: dict[str, Trace]) -> SimResult:
    """Run one simulation, the GIL released. Raises ValueError when the specification cannot be run."""

def simulate_many(specs: list[str], traces: dict[str, Trace], threads: int) -> list[SimResult]:
    """Run many simulations on `threads` threads (0: one per core); results in order, the same on any number."""

def check_scheme(name: str, params_json: str) -> None:
    """Raise ValueError unless the scheme exists and takes these parameters (JSON object)."""

def schemes() -> str:
    """The registry as JSON: one object per scheme."""
