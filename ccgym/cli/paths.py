"""``ccgym paths``: list, show, make, check and convert paths and the delivery traces of their links."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import Final

from ccgym.cli.best_cwnd import BEST_CWND
from ccgym.cli.command import Command, Options, attributes
from ccgym.cli.common import console, print_table, say, say_json
from ccgym.cli.options import AS_JSON, draw, given
from ccgym.errors import ConfigError, shown
from ccgym.units import parse_rate, parse_time

_PATHS: Final = """\
A path is everything between sender and receiver: delay, loss, a queue, and a link with its rate.
A trace is one part of a path: the times when the link may send a packet, without delay and queue
(ccgym paths --traces). An option --trace accepts a path by name or file, or a trace as a path without
other elements. In an agent's YAML file, paths: is a distribution from which each episode draws a path.
"""


def _list(arguments: argparse.Namespace) -> int:
    from ccgym.config.catalog import catalog

    if arguments.traces:
        return _list_traces()
    entries = catalog().paths
    if arguments.json:
        say_json({name: {"title": e.title, "aliases": e.aliases, "source": e.source} for name, e in entries.items()})
        return 0
    rows = [(name, entry.title, ", ".join(entry.aliases)) for name, entry in entries.items()]
    print_table(("name", "description", "other names"), rows)
    return 0


def _list_traces() -> int:
    from ccgym.config.catalog import catalog

    content = catalog()
    rows = []
    for name, entry in content.traces.items():
        kind = "file" if entry.rule is None else f"made: {entry.rule.kind}"
        mean = 12 * entry.lines / entry.last_ms
        rows.append((name, f"{mean:.5g}", f"{entry.last_ms / 1e3:g}", str(entry.lines), kind, entry.license))
    recorded = content.recorded
    for name in recorded.names:
        there = Path(recorded.directory, f"{name}.up").is_file()
        kind = "recorded" if there else f"recorded: install {recorded.package}"
        rows.append((f"{name}.up, .down", "", "", "", kind, recorded.license))
    measured = ("Mbit/s", "period (s)", "lines")
    print_table(("name", *measured, "kind", "license"), rows, measured)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from ccgym.config.path import NetworkPath

    path = NetworkPath.from_any(arguments.path)
    if arguments.spec:
        say_json(path.compile().as_dict())
        return 0
    if arguments.mahimahi:
        say(path.to_mahimahi(materialize=True))
        return 0
    say(path.describe())
    findings = path.check()
    for finding in findings:
        say(str(finding))
    for name in path.trace_names():
        _show_trace(name, arguments)
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def _show_trace(name: str, arguments: argparse.Namespace) -> None:
    """Print key figures and a sketch of a trace."""
    from ccgym.config.catalog import resolve_trace
    from ccgym.tracetools.inspect import sparkline, summarize

    source = resolve_trace(name)
    trace = source.load()
    times = trace.times_ms
    summary = summarize(times)
    low, middle, high = summary.rate_percentiles_mbps
    half, most, nearly = summary.gap_percentiles_ms
    seconds = summary.period_ms / 1e3
    rows = [
        ("from", str(source.file) if source.file is not None else "made by the rule in paths.yaml"),
        ("lines", f"{summary.lines} at {summary.distinct_times} instants"),
        ("period", f"{summary.period_ms} ms"),
        ("mean rate", f"{summary.mean_rate_mbps:.6g} Mbit/s of full packets"),
        (f"per {summary.bin_ms} ms", f"5th {low:.4g}, median {middle:.4g}, 95th percentile {high:.4g} Mbit/s"),
        ("gaps", f"median {half:g}, 95th {most:g}, 99th percentile {nearly:g} ms"),
        ("largest gap", f"{summary.largest_gap_ms} ms at {summary.largest_gap_at_ms / 1e3:g} s"),
        ("stalled", f"{summary.stalled_share:.1%} of the time in gaps of more than 100 ms"),
        ("largest burst", f"{summary.largest_burst} in the millisecond {summary.largest_burst_at_ms}"),
    ]
    say(f"\ntrace {source.name}")
    for label, text in rows:
        say(f"  {label:<14} {text}")
    say()
    line = sparkline(times, min(100, max(20, console().width - 4)))
    say(f"  {line}")
    say(f"  0{f'{seconds:g} s':>{max(9, len(line) - 1)}}")
    if arguments.out is not None:
        from ccgym.report.figures.trace import trace_figure

        draw(lambda: trace_figure(times, source.name), arguments)


def _step(text: str) -> tuple[int, int]:
    start, equals, rate = text.partition("=")
    if not equals:
        raise ConfigError("text-malformed", shown(text), expected="TIME=RATE, like 3.75s=256mbps")
    # Only here, a link may have rate 0: a path has a positive rate.
    closed = rate.strip().casefold() in ("0", "0bps", "0mbps")
    return parse_time(start), 0 if closed else parse_rate(rate)


def _named(name: str) -> object:
    from ccgym.config.catalog import resolve_trace

    return resolve_trace(name).load().times_ms


def _write(times: object, output: str | None) -> int:
    import numpy as np

    from ccgym.tracetools.inspect import summarize
    from ccgym.tracetools.text import trace_text, write_trace

    lines = np.asarray(times, dtype=np.uint64)
    if output is None:
        sys.stdout.buffer.write(trace_text(lines))
        return 0
    folder = Path(output).parent
    if not folder.is_dir():
        raise ConfigError(
            "folder-missing",
            f"there is no folder {shown(str(folder))}",
            where="--output",
            expected="a file in an existing folder",
            hint=f"check the spelling, or create the folder first: mkdir -p {shlex.quote(str(folder))}",
        )
    write_trace(output, lines)
    summary = summarize(lines)
    say(f"{output}: {summary.lines} lines, {summary.period_ms} ms, {summary.mean_rate_mbps:.6g} Mbit/s")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from ccgym.config.catalog import resolve_trace
    from ccgym.tracetools.check import find_mistakes

    failed = False
    for name in arguments.traces:
        source = resolve_trace(name)
        nominal = source.entry.nominal_rate if source.entry is not None else None
        rate = nominal if arguments.rate is None else arguments.rate
        findings = find_mistakes(source.load(), rate, arguments.rtt, name=os.path.basename(name))
        findings = [finding for finding in findings if finding.code not in source.intended]
        for finding in findings:
            say(str(finding))
        if not findings:
            say(f"{name}: no problems found")
        failed = failed or any(arguments.strict or finding.severity == "error" for finding in findings)
    return 1 if failed else 0


def _convert(arguments: argparse.Namespace) -> int:
    from ccgym.tracetools.convert import convert
    from ccgym.tracetools.text import read_bytes

    text = read_bytes(arguments.input).decode("utf-8", "replace")
    times = convert(text, arguments.form, time_unit=arguments.time_unit, name=arguments.input)
    return _write(times, arguments.output)


_OUTPUT: Final = {"-o, --output FILE": "output file (default: standard output)"}
_DURATION: Final = {"--duration TIME = 60s as duration_ns": "length and period"}
_RATE: Final = {"--rate RATE as rate_bps required": "mean rate in full packets, such as 50mbps or 570kbps"}
_RANDOM: Final = {"--seed N = 1": "seed of the random numbers"}


def _rule(name: str, help: str, options: Options) -> Command:
    """Return the command that makes a trace by a rule of :mod:`ccgym.tracetools.generate`."""

    def make(arguments: argparse.Namespace) -> int:
        from ccgym.tracetools import generate

        rule = _named if name == "named" else getattr(generate, name)
        return _write(rule(**given(arguments, *attributes(options))), arguments.output)

    return Command(name, help, make, {**options, **_OUTPUT}, {"steps": _step})


_MAKE: Final = Command(
    "make",
    "make a trace by a rule",
    description="Make a trace by a rule. The same arguments make the same file on every machine.",
    examples="""\
  ccgym paths make constant --rate 50mbps -o 50mbps.trace
  ccgym paths make poisson --rate 2.64mbps --cold-start 5s --seed 7 -o poisson.trace
  ccgym paths make stepped --step 0s=16mbps --step 3.75s=256mbps --duration 15s -o step.trace
  ccgym paths make cellular --rate 6mbps --seed 3 --duration 120s -o cellular.trace
""",
    commands=(
        _rule("constant", "evenly spaced: Pantheon's rule", {**_RATE, **_DURATION}),
        _rule(
            "poisson",
            "exponential gaps: Pantheon's -poisson",
            {
                **_RATE,
                **_RANDOM,
                **_DURATION,
                "--cold-start TIME = 0s as cold_start_ns": "begin with a packet per 100 ms for this time, below --rate",
            },
        ),
        _rule(
            "stepped",
            "a rate that changes at given times",
            {**_DURATION, "--step TIME=RATE... as steps required": "rate from TIME; the first at 0s; may be repeated"},
        ),
        _rule(
            "cellular",
            "a random walk with outages, by Sprout's model of cellular links; its mean is --rate",
            {
                **_RATE,
                **_RANDOM,
                **_DURATION,
            },
        ),
        _rule("named", "write a trace of the catalog as a file", {"NAME": "a trace of ccgym paths --traces"}),
    ),
)

COMMAND: Final = Command(
    "paths",
    run=_list,
    description=_PATHS,
    examples="""\
  ccgym paths                                  the named paths; --traces: the traces
  ccgym paths show 77.72mbps
  ccgym paths show 'mm-delay 20 mm-link 12mbps.trace 12mbps.trace'
  ccgym paths show Verizon-LTE-short.up --plot verizon.png
  ccgym paths make constant --rate 50mbps -o 50mbps.trace
  ccgym paths check 50mbps_10ms.trace --rate 50mbps --rtt 10ms
  ccgym paths convert log.txt --from time-bytes -o log.trace
""",
    options={
        "--traces": "list the named delivery traces instead",
        **AS_JSON,
    },
    commands=(
        Command(
            "show",
            "describe a path and its traces, with their problems; status 1 if there are errors",
            _show,
            options={
                "PATH": "a name, a mahimahi command line, or a YAML or trace file",
                "| --spec": "print the input of the native core, as JSON",
                "| --mahimahi": "print a mahimahi command line with real trace files",
                "--plot FIGURE as out": "draw a trace's rate and delivered bytes over time (.png, .svg or .pdf)",
            },
        ),
        _MAKE,
        Command(
            "check",
            "check traces for errors; status 1 if there are errors",
            _check,
            description="Check traces for errors, as ccgym does before every evaluation.",
            options={
                "TRACE... as traces": "names or files",
                "--rate RATE": "the expected rate (default: the rate in the name)",
                "--rtt TIME": "the path's round-trip time",
                "--strict": "treat warnings as errors",
            },
        ),
        Command(
            "convert",
            "convert another format to a trace",
            _convert,
            description="Make a trace from a text file with columns.\n\n"
            "  time-bytes   time, bytes delivered since the previous line\n"
            "  time-rate    time, Mbit/s from this time\n"
            "  kbit-per-ms  kilobits of one millisecond per line, as mahimahi's mm-rate-to-events\n"
            "  times        a time per line, with decimals, spaces or Windows line endings\n",
            options={
                "FILE as input": "the file to convert",
                "--from FORMAT as form required": "one of the above",
                "--time-unit UNIT = auto": "s, ms or auto",
                **_OUTPUT,
            },
            reads={"input": str},
        ),
        BEST_CWND,
    ),
)
