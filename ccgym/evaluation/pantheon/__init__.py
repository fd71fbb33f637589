"""Pantheon's result files, by their exact names and formats.

Pantheon's analysis, and users' scripts for its output, can read the files that this module writes. Formats:
StanfordSNR/pantheon @23e738c, ``src/experiments/test.py``, ``src/analysis/plot.py``, ``src/helpers/utils.py``.

====================================  =================================================================================
``pantheon_metadata.json``            parameters of the test: sorted keys, indent 4
``pantheon_perf.json``                ``{scheme: {run: {"all" | flow: {"tput", "delay", "loss"}}}}``, one line
``<scheme>_stats_run<k>.log``         start and end, then the statistics as text
``<scheme>_datalink_run<k>.log``      merged tunnel log of the data direction
``<scheme>_acklink_run<k>.log``       merged tunnel log of the ACKs
``<scheme>_mm_datalink_run<k>.log``   mm-link log of the data direction (paths with a mahimahi trace)
``<scheme>_mm_acklink_run<k>.log``    mm-link log of the ACKs
``config.yml``                        names and plot styles of the schemes; Pantheon reads it as ``src/config.yml``
====================================  =================================================================================

===================  ==========================================
``write``            writes all files except the packet logs
``packet_logs``      writes and checks packet logs
``directory``        the content of a directory of Pantheon
``analysis``         reads such a directory as a result set
``logs``             reads Pantheon's and mahimahi's logs
``raw_logs``         reads, merges and writes the tunnel's raw logs
===================  ==========================================

Facts that Pantheon does not store (seeds, capacity, versions) are never added here; they go to ``results.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.metrics import PantheonMetrics, RunMetrics

if TYPE_CHECKING:
    from ccgym.schemes.style import SchemeStyle

METADATA_FILE = "pantheon_metadata.json"
PERF_FILE = "pantheon_perf.json"
CONFIG_FILE = "config.yml"

LINKS: Final = ("datalink", "acklink")
"""The directions of a run, as in file names."""


def stats_file(scheme: str, run: int) -> str:
    """Return the name of the statistics file of a run."""
    return f"{scheme}_stats_run{run}.log"


def tunnel_log_file(scheme: str, run: int, link: str = "datalink") -> str:
    """Return the name of a merged tunnel log; ``link`` is ``datalink`` or ``acklink``."""
    return f"{scheme}_{link}_run{run}.log"


def mm_log_file(scheme: str, run: int, link: str = "datalink") -> str:
    """Return the name of an mm-link log; ``link`` is ``datalink`` or ``acklink``."""
    return f"{scheme}_mm_{link}_run{run}.log"


def figure_file(scheme: str, run: int, kind: str, link: str = "datalink") -> str:
    """Return the name of a figure of a run; ``kind`` is ``throughput`` or ``delay``."""
    return f"{scheme}_{link}_{kind}_run{run}.png"


def utc_text(epoch_s: float) -> str:
    """Return a time in UTC as in statistics files and reports: ``2025-01-02 03:04:05``."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def statistics_text(metrics: RunMetrics) -> str:
    """Return the block that starts with ``-- Total of …``.

    Line order matters: Pantheon's ``report.py`` reads the three lines after each ``Flow n``. An unknown number has no
    line, for example if no packet left the path.
    """
    count = len(metrics.flows)
    lines = [f"-- Total of {count} flow{'' if count == 1 else 's'}:"]
    utilization = metrics.utilization
    if metrics.capacity_mbps is not None:
        lines.append(f"Average capacity: {metrics.capacity_mbps:.2f} Mbit/s")
    lines += _part_lines(metrics.total, utilization)
    for flow, part in metrics.flows.items():
        lines.append(f"-- Flow {flow}:")
        lines += _part_lines(part, None)
    return "\n".join(lines) + "\n"


def printed_number(metrics: PantheonMetrics, name: str) -> float | None:
    """Return a number as rounded by :func:`statistics_text`: Pantheon's report reads and averages such numbers.

    Args:
        metrics: the numbers of a flow, or of all flows.
        name: ``throughput_mbps``, ``delay_p95_ms`` or ``loss`` (in percent).
    """
    value: float | None = getattr(metrics, name)
    return None if value is None else float(_FORMATS[name](value))


_FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "throughput_mbps": "{:.2f}".format,
    "delay_p95_ms": "{:.3f}".format,
    "loss": lambda fraction: f"{100 * fraction:.2f}",
}


def _part_lines(metrics: PantheonMetrics, utilization: float | None) -> list[str]:
    share = "" if utilization is None else f" ({100 * utilization:.1f}% utilization)"
    lines = [f"Average throughput: {_FORMATS['throughput_mbps'](metrics.throughput_mbps)} Mbit/s{share}"]
    if metrics.delay_p95_ms is not None:
        lines.append(f"95th percentile per-packet one-way delay: {_FORMATS['delay_p95_ms'](metrics.delay_p95_ms)} ms")
    if metrics.loss is not None:
        lines.append(f"Loss rate: {_FORMATS['loss'](metrics.loss)}%")
    return lines


def stats_text(
    metrics: RunMetrics | None,
    *,
    start_epoch_s: float | None,
    end_epoch_s: float | None,
    generated_epoch_s: float,
    offsets_ms: Mapping[str, float] | None = None,
) -> str:
    """Return the content of ``<scheme>_stats_run<k>.log``.

    Args:
        metrics: the run's numbers. None for a run that does not count: Pantheon's file then has no statistics, and
            ``report.py`` counts and averages only files with statistics.
        start_epoch_s: start of the first flow, seconds since the epoch; None if unknown.
        end_epoch_s: end of the flows, seconds since the epoch; None if unknown.
        generated_epoch_s: time of the computation of the statistics, seconds since the epoch.
        offsets_ms: for a run between two hosts, the clock offsets of ``Local`` and ``Remote``, ms.
    """
    known = (("Start", start_epoch_s), ("End", end_epoch_s))
    times = "".join(f"{which} at: {utc_text(at)}\n" for which, at in known if at is not None)
    times += "".join(f"{which} clock offset: {offset} ms\n" for which, offset in (offsets_ms or {}).items())
    if metrics is None:
        return times
    return (
        f"{times}\n"
        f"# Below is generated by plot.py at {utc_text(generated_epoch_s)}\n"
        "# Datalink statistics\n"
        f"{statistics_text(metrics)}"
    )


def perf_entry(metrics: RunMetrics) -> dict[str, dict[str, float | None]]:
    """Return one run's value in ``pantheon_perf.json``: Mbit/s, ms, fraction. Flow 0 is left out."""
    entry = {"all": _perf(metrics.total)}
    entry.update({str(flow): _perf(part) for flow, part in metrics.flows.items() if flow != 0})
    return entry


def _perf(metrics: PantheonMetrics) -> dict[str, float | None]:
    return {"tput": metrics.throughput_mbps, "delay": metrics.delay_p95_ms, "loss": metrics.loss}


def perf_json(schemes: Iterable[str], valid_runs: Mapping[tuple[str, int], RunMetrics]) -> str:
    """Return the content of ``pantheon_perf.json``; a scheme without a valid run maps to ``{}``.

    Args:
        schemes: all schemes of the experiment, in order.
        valid_runs: the runs that count, by scheme and run number.
    """
    perf: dict[str, dict[str, Any]] = {scheme: {} for scheme in schemes}
    for (scheme, run), metrics in sorted(valid_runs.items()):
        perf[scheme][str(run)] = perf_entry(metrics)
    return json.dumps(perf)


def config_yml(styles: Iterable[SchemeStyle]) -> str:
    """Return the content of ``config.yml``: names and plot styles of schemes for Pantheon's analysis.

    Pantheon reads it only from its own ``src/``.
    """
    import yaml

    schemes = {style.key: {"name": style.label, "color": style.color, "marker": style.marker} for style in styles}
    return _CONFIG_HEAD + str(yaml.safe_dump({"schemes": schemes}, sort_keys=False))


_CONFIG_HEAD: Final = """\
# Pantheon's plot.py and report.py accept this directory with --data-dir after this command, which adds its schemes:
#   cp config.yml PANTHEON/src/config.yml
# They read the packet logs of every run, which evaluate writes with --logs all; runs without logs count as failed.
"""


def metadata_json(schemes: Iterable[str], **facts: Any) -> str:
    """Return the content of ``pantheon_metadata.json``; ``facts`` are further entries, left out if None."""
    metadata = {
        "start_run_id": 1,
        "cc_schemes": sorted(schemes),
        **{name: _whole(value) if isinstance(value, float) else value for name, value in facts.items()},
    }
    return json.dumps({k: v for k, v in metadata.items() if v is not None}, sort_keys=True, indent=4)


def _whole(value: float) -> int | float:
    """Return an integer, as Pantheon's options are, if the value is whole; otherwise keep the fraction of a second."""
    return int(value) if value.is_integer() else value
