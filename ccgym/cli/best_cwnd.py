"""``ccgym paths best-cwnd``: search the best constant window of paths, and write them to a table. Experts read
``traces/best_windows.csv``.

Exit status: 0, the table is written; for other values see :mod:`ccgym.cli.common`. Paths that are already in the
table, measured in the same way, are not searched again. After an interruption, the same command continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Command
from ccgym.cli.common import console, error_console, print_table, say
from ccgym.cli.options import RUNTIME, SEED
from ccgym.errors import located

if TYPE_CHECKING:
    from ccgym.config.best_windows import WindowRow
    from ccgym.evaluation.best_cwnd import Search

DEFAULT_OUT: Final = Path("results", "best_windows.csv")
"""Default file of the table. ``traces/best_windows.csv`` of a checkout is written only if --out names it."""
PANTHEON_EMULATORS: Final = 18
"""The paths are named pantheon-1 and so on."""

_DESCRIPTION: Final = """\
Search the best constant window of paths by simulation, print it next to the published one, and
write it into a table. Experts of kind best_window read their target from traces/best_windows.csv,
which is written only if --out names it. Without PATH: the 30 links that Indigo was trained on,
and Pantheon's other emulators.
"""

_EXAMPLES: Final = """\
  ccgym paths best-cwnd                                 the whole table; existing rows are kept
  ccgym paths best-cwnd --out traces/best_windows.csv   the table of a checkout, which experts read
  ccgym paths best-cwnd 77.72mbps --again               one path again
  ccgym paths best-cwnd --runs 2 --runtime 10s --out windows.csv
"""


def _best_cwnd(arguments: argparse.Namespace) -> int:
    from ccgym.config.best_windows import read_table
    from ccgym.evaluation.best_cwnd import Search, is_of

    search = Search(arguments.runs, arguments.runtime_ns, arguments.seed)
    names = _names(arguments.paths)
    rows = read_table(arguments.out)
    missing = [name for name in names if arguments.again or name not in rows or not is_of(rows[name], search)]
    _write(arguments.out, rows)  # before the work, in case it cannot be written
    _search(missing, search, rows, arguments.out)
    _show([rows[name] for name in names])
    say(f"table     {arguments.out}")
    return 0


def _names(given: Sequence[str]) -> list[str]:
    """Return each path once, by its canonical name or, without a name, as given."""
    from ccgym.config.catalog import path_names
    from ccgym.config.distributions import presets
    from ccgym.config.path import NetworkPath

    emulators = (f"pantheon-{number}" for number in range(1, PANTHEON_EMULATORS + 1))
    wanted = given or [*emulators, *presets()["indigo"]["names"]]
    with located("PATH"):
        for name in given:
            NetworkPath.from_any(name)
    return list(dict.fromkeys(path_names().get(name.removesuffix(".trace"), name) for name in wanted))


def _search(names: Sequence[str], search: Search, rows: dict[str, WindowRow], out: Path) -> None:
    """Search the best windows of paths, and write the table after each path."""
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.best_cwnd import window_row

    with Progress(error_console()) as progress:
        progress.begin("paths", len(names))
        for name in names:
            row = rows[name] = window_row(name, search)
            _write(out, rows)
            progress.advance("paths", note=name)
            if not console().is_terminal:
                say(f"{name}: {row.window} packets, {row.throughput_mbps:.4g} Mbit/s, {row.delay_p95_ms:.4g} ms")


def _write(out: Path, rows: dict[str, WindowRow]) -> None:
    from ccgym.config.best_windows import table_text
    from ccgym.config.path import NetworkPath
    from ccgym.files import atomic_write

    # In the catalog's order, so that the file does not depend on the order of the searches.
    order = {name: place for place, name in enumerate(NetworkPath.names())}
    text = table_text(sorted(rows.values(), key=lambda row: order.get(row.path, len(order))))
    atomic_write(out, text, parents=True)


def _show(rows: Sequence[WindowRow]) -> None:
    measured = ("published", "power", "window", "Mbit/s", "p95 delay (ms)", "lost")
    texts = [
        (
            row.path,
            "–" if row.published is None else str(row.published),
            str(row.power_window),
            str(row.window),
            f"{row.throughput_mbps:.2f}",
            f"{row.delay_p95_ms:.1f}",
            f"{100 * row.loss:.2f} %",
        )
        for row in rows
    ]
    print_table(("path", *measured), texts, measured)


BEST_CWND: Final = Command(
    "best-cwnd",
    "search the best constant windows, for experts that have the path's parameters",
    _best_cwnd,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    options={
        "[PATH...] as paths": "paths, as in `ccgym evaluate --trace`",
        "--runs N = 5": "runs per window, if seeds differ",
        **RUNTIME,
        **SEED,
        f"-o, --out FILE = {DEFAULT_OUT}": "file of the table",
        "--again": "also search paths that are already in the table",
    },
)
