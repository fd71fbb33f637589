"""Write results in the formats of other programs.

==============  ====================================================================================================
``recorded``    a run with its packets, from the simulator, a results directory or Pantheon's logs
``pcap``        its packets as a capture: Wireshark, tcpdump, tcptrace
``qlog``        its flows as QUIC event logs: qvis
``flent``       its rates and delays: flent
``tables``      Parquet and Arrow tables of a whole directory
==============  ====================================================================================================

:func:`write_run` chooses the format by the name of the file; ``docs/reference/results.md`` describes the formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from ccgym.errors import ConfigError, shown
from ccgym.evaluation.exchange.flent import flent_bytes
from ccgym.evaluation.exchange.pcap import pcap_bytes
from ccgym.evaluation.exchange.qlog import qlog_bytes
from ccgym.evaluation.exchange.recorded import End, Recorded
from ccgym.files import atomic_write

__all__ = ["RUN_FORMATS", "Recorded", "write_run"]


class _Writer(Protocol):
    def __call__(self, run: Recorded, *, flow: int, at: End) -> bytes: ...


RUN_FORMATS: Final[Mapping[str, _Writer]] = {".pcap": pcap_bytes, ".sqlog": qlog_bytes, ".flent.gz": flent_bytes}
"""Formats of one run by the suffix of the file."""


def write_run(run: Recorded, file: Path, *, flow: int = 1, at: End = "sender") -> None:
    """Write a run in the format that the suffix of the file selects.

    Args:
        run: The run.
        file: A ``.pcap``, ``.sqlog`` or ``.flent.gz`` file.
        flow: Number of the flow; only for qlog, which has one connection per file.
        at: Where packets are captured: at the ``sender`` or at the ``receiver``; not for flent.

    Raises:
        ConfigError: The suffix is unknown, or there is no such flow.
        PlatformError: The file cannot be written.
    """
    writer = next((writer for suffix, writer in RUN_FORMATS.items() if file.name.endswith(suffix)), None)
    if writer is None:
        raise ConfigError(
            "unknown-suffix", shown(file.name), expected=f"a file that ends with {', '.join(RUN_FORMATS)}"
        )
    atomic_write(file, writer(run, flow=flow, at=at))
