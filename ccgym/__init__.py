"""A simulator and Gymnasium environment for congestion-control research.

The same path, transport, links, senders and schemes run in two kinds of time: in virtual time (the simulator) and in
real time (the emulated path). A first example::

    import ccgym

    path = ccgym.NetworkPath.named("77.72mbps")
    run = ccgym.simulate(path, flows=["cubic"], duration=30, seed=1)
    run.flows[0].throughput_mbps, run.flows[0].delay_p95_ms, run.flows[0].loss
    run.plot("cubic.png")

Names are loaded when first used, so importing ``ccgym`` takes little time and never loads torch. The environments are
registered in Gymnasium (``gymnasium.make("ccgym/Aurora-v0")``) when both packages are imported, in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ccgym.envs.registration import register_with_gymnasium
from ccgym.errors import (
    CcgymError,
    ConfigError,
    PathNotFoundError,
    PlatformError,
    RealPathError,
    ResultsError,
    SchemeNotFoundError,
    SimulationError,
    TraceFormatError,
    UnitError,
)
from ccgym.lazy import lazy

if TYPE_CHECKING:
    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.compare import Comparison, compare
    from ccgym.evaluation.simulate import Job, Record, RunRecord, simulate, simulate_many
    from ccgym.report.run_plot import plot_results, plot_run
    from ccgym.tracetools.check import Finding, check_trace

__all__ = [
    "CcgymError",
    "Comparison",
    "ConfigError",
    "Finding",
    "Job",
    "NetworkPath",
    "PathNotFoundError",
    "PlatformError",
    "RealPathError",
    "Record",
    "ResultsError",
    "RunRecord",
    "SchemeNotFoundError",
    "SimulationError",
    "TraceFormatError",
    "UnitError",
    "__version__",
    "check_trace",
    "compare",
    "plot_results",
    "plot_run",
    "simulate",
    "simulate_many",
]

_LAZY: Final = {
    "Comparison": "ccgym.evaluation.compare",
    "Finding": "ccgym.tracetools.check",
    "Job": "ccgym.evaluation.simulate",
    "NetworkPath": "ccgym.config.path",
    "Record": "ccgym.evaluation.simulate",
    "RunRecord": "ccgym.evaluation.simulate",
    "check_trace": "ccgym.tracetools.check",
    "compare": "ccgym.evaluation.compare",
    "plot_results": "ccgym.report.run_plot",
    "plot_run": "ccgym.report.run_plot",
    "simulate": "ccgym.evaluation.simulate",
    "simulate_many": "ccgym.evaluation.simulate",
}

__version__: str


_load, _names = lazy(__name__, _LAZY)


def __getattr__(name: str) -> object:
    if name != "__version__":
        return _load(name)
    from importlib.metadata import PackageNotFoundError, version

    try:
        value = version("ccgym")
    except PackageNotFoundError:  # run from a checkout that was never installed
        value = "0+unknown"
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_names(), "__version__"})


register_with_gymnasium()
