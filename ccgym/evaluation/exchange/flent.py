"""Write a run as flent's data file, so that flent plots it like its own test ``tcp_nup``.

Each flow is an upload of that test (``TCP upload::1``, Mbit/s of IP packets that left the path in steps of 0.1 s), with
their sum and average. ``Ping (ms) ICMP`` contains instead the mean one-way delay of the packets that left in a
step, propagation and queueing together. Format: flent 2.3, version 4 (``flent/resultset.py``).
"""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym import _core
from ccgym.evaluation.exchange.recorded import End, Recorded

FORMAT_VERSION: Final = 4
TEST: Final = "tcp_nup"
STEP_S: Final = 0.1
PING: Final = "Ping (ms) ICMP"


def flent_bytes(run: Recorded, *, flow: int = 0, at: End = "sender") -> bytes:
    """Return the content of a ``.flent.gz`` file.

    Args:
        run: The run.
        flow: Not used: the file contains all flows.
        at: Not used: rates are always measured where packets leave the path.
    """
    steps = max(1, round(run.duration_s / STEP_S))
    places = np.minimum((run.data.left_ns[run.data.arrived] / (STEP_S * 1e9)).astype(np.int64), steps - 1)
    sizes, flows = run.data.size[run.data.arrived], run.data.flow[run.data.arrived]
    rates = {
        f"TCP upload::{number}": _rate(places[flows == number], sizes[flows == number], steps)
        for number in range(1, len(run.schemes) + 1)
    }
    delays = (run.data.left_ns - run.data.entered_ns)[run.data.arrived] / 1e6
    counts = np.bincount(places, minlength=steps)
    sums = np.bincount(places, weights=delays, minlength=steps)
    ping = [float(total / count) if count else None for total, count in zip(sums, counts, strict=True)]
    total = np.sum(list(rates.values()), axis=0)
    results: dict[str, list[float | None]] = {
        "TCP upload avg": (total / len(rates)).round(6).tolist(),
        "TCP upload sum": total.round(6).tolist(),
        PING: ping,
        **{name: values.round(6).tolist() for name, values in rates.items()},
    }
    began = datetime.fromtimestamp(run.started_epoch_s, UTC)
    document: dict[str, Any] = {
        "version": FORMAT_VERSION,
        "x_values": (np.arange(1, steps + 1) * STEP_S).round(6).tolist(),
        "results": results,
        # flent draws these; it reads averages and sums from the results.
        "raw_values": {
            name: [
                {"t": run.started_epoch_s + (step + 1) * STEP_S, "val": value}
                for step, value in enumerate(values)
                if value is not None
            ]
            for name, values in results.items()
            if name in rates or name == PING
        },
        "metadata": {
            "NAME": TEST,
            "TITLE": run.name,
            "NOTE": f"ccgym {_core.__version__}: {', '.join(run.schemes)}; one-way delay instead of ping",
            "TIME": _text(began),
            "T0": _text(began),
            "LENGTH": run.duration_s,
            "TOTAL_LENGTH": run.duration_s,
            "STEP_SIZE": STEP_S,
            "DATA_FILENAME": f"{run.name}.flent.gz",
            "HOST": "receiver",
            "HOSTS": ["receiver"],
            "LOCAL_HOST": "sender",
            "IP_VERSION": 4,
            "FAILED_RUNNERS": 0,
            "TEST_PARAMETERS": {"upload_streams": str(len(run.schemes))},
            "SERIES_META": {name: _series_meta(name) for name in results},
        },
    }
    return gzip.compress(json.dumps(document).encode(), mtime=0)


def _rate(places: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], steps: int) -> npt.NDArray[np.float64]:
    return np.bincount(places, weights=sizes, minlength=steps) * 8 / 1e6 / STEP_S


def _series_meta(name: str) -> dict[str, Any]:
    return {"UNITS": "ms" if name == PING else "Mbits/s"}


def _text(at: datetime) -> str:
    """Return a time like ``2026-01-02T03:04:05.000000Z``."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
