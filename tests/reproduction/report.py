"""Prints the tables of docs/studies/validation.md and docs/studies/ccperf.md that come from runs.

``python -m tests.reproduction.report [validation|ccperf] [--out DIRECTORY]``: a page's name prints its tables alone;
with a directory, every value of ccperf's and the figure of them go there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.reproduction import ccperf_tables, kernel_tcp, quic_stacks
from tests.reproduction.markdown import table


def kernel() -> str:
    lines = []
    for path in kernel_tcp.PATHS:
        for scheme in kernel_tcp.SEEDS:
            theirs = kernel_tcp.recorded(path, scheme)
            lines.append([path, f"{scheme}, kernel", f"{theirs.runs}", *_kernel_cells(theirs)])
            for mode in ("", "linux") if scheme == "cubic" else ("",):
                for ack_every in (1, 2):
                    seeds = 1 if path == "12mbps" else 0
                    ours = kernel_tcp.simulated(path, scheme, mode, ack_every, seeds)
                    words = [scheme, *([f"mode={mode}"] if mode else []), *(["ack_every 2"] if ack_every == 2 else [])]
                    lines.append(["", ", ".join(words), f"{ours.runs}", *_kernel_cells(ours)])
    head = [
        "path",
        "scheme",
        "runs",
        "Mbit/s",
        "p95 ms",
        "mean ms",
        "loss %",
        "drops",
        "retransmissions",
        "first drop s",
    ]
    return table(head, lines)


def _kernel_cells(one: kernel_tcp.Outcome) -> list[str]:
    mean = one.mean
    return [
        f"{mean['throughput_mbps']:.2f} ± {one.spread['throughput_mbps']:.2f}",
        f"{mean['p95_owd_ms']:.1f}",
        f"{mean['mean_owd_ms']:.1f}",
        f"{100 * mean['loss']:.2f}",
        f"{mean['queue_drops']:.0f}",
        f"{mean['retransmits']:.0f}",
        f"{mean['first_queue_drop_s']:.3f}",
    ]


def quinn() -> str:
    rows = []
    for path in (*quic_stacks.DROP_TAIL, quic_stacks.RANDOM_LOSS):
        for controller in ("reno", "cubic"):
            rows.append([f"`{path}`", f"{controller}, quinn", *_sawtooth_cells(quic_stacks.recorded(path, controller))])
            ours = [scheme for scheme, theirs in quic_stacks.CONTROLLER.items() if theirs == controller]
            rows.extend(["", scheme, *_sawtooth_cells(quic_stacks.simulated(path, scheme))] for scheme in ours)
    return table(["path", "scheme", "mean window", "Mbit/s", "period s", "kept at a cut"], rows)


def _sawtooth_cells(one: quic_stacks.Sawtooth) -> list[str]:
    return [f"{one.window:.1f}", f"{one.throughput_mbps:.2f}", f"{one.period_s:.2f}", f"{one.kept:.3f}"]


PAGES: Final[Mapping[str, Mapping[str, Callable[[], str]]]] = {
    "validation": {"kernel": kernel, "quinn": quinn},
    "ccperf": ccperf_tables.TABLES,
}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m tests.reproduction.report")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(PAGES)}; default: all")
    parser.add_argument("--out", type=Path, help="a directory for ccperf.csv and ccperf_deviations.png")
    arguments = parser.parse_args()
    if unknown := set(arguments.pages) - PAGES.keys():
        parser.error(f"no page {unknown.pop()}")
    for page in arguments.pages or PAGES:
        for name, make in PAGES[page].items():
            sys.stdout.write(f"## {name}\n\n{make()}\n\n")
    if arguments.out is not None:
        ccperf_tables.draw_figure(arguments.out / "ccperf_deviations.png")
        (arguments.out / "ccperf.csv").write_text(ccperf_tables.rows_as_csv(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
