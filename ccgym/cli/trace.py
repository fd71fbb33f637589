"""``ccgym trace``: make, show, check, convert and list delivery traces."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import Final

from ccgym.cli.common import HelpFormatter, console, option, print_table, say
from ccgym.errors import ConfigError, shown
from ccgym.units import NS_PER_MS, parse_rate, parse_time

_EXAMPLES: Final = """\
examples:
  ccgym trace make constant --rate 50mbps -o 50mbps.trace
  ccgym trace make poisson --rate 2.64mbps --cold-start 5s --seed 7 -o poisson.trace
  ccgym trace make stepped --step 0s=16mbps --step 3.75s=256mbps --duration 15s -o step.trace
  ccgym trace make cellular --rate 6mbps --seed 3 --duration 120s -o cellular.trace
  ccgym trace show 77.72mbps
  ccgym trace show Verizon-LTE-short.up --plot verizon.png
  ccgym trace check 50mbps_10ms.trace --rate 50mbps --rtt 10ms
  ccgym trace convert log.txt --from time-bytes -o log.trace
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``trace`` and what belongs to it."""
    parser = commands.add_parser(
        "trace",
        help="make, show, check, convert and list delivery traces",
        description="Delivery traces in mahimahi's format: one line per packet of 1500 bytes that may leave, "
        "the time in ms.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_make(actions)
    _add_show(actions)
    _add_check(actions)
    _add_convert(actions)
    lister = actions.add_parser("list", help="list the traces that have a name")
    lister.set_defaults(run=_list)


def _add_make(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    make = actions.add_parser(
        "make",
        help="make a trace",
        description="Make a trace by a rule. The same arguments make the same file on every machine.",
        formatter_class=HelpFormatter,
    )
    rules = make.add_subparsers(title="rules", metavar="RULE", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: standard output)")
    shared.add_argument("--duration", default="60s", metavar="TIME", help="length and period (default: 60s)")
    rate = argparse.ArgumentParser(add_help=False)
    rate.add_argument(
        "--rate", required=True, metavar="RATE", help="mean rate in full packets, such as 50mbps or 570kbps"
    )
    seed = argparse.ArgumentParser(add_help=False)
    seed.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the random numbers (default: 1)")

    rules.add_parser(
        "constant",
        parents=[rate, shared],
        help="evenly spaced: Pantheon's rule",
    ).set_defaults(run=_make, rule="constant")
    poisson = rules.add_parser("poisson", parents=[rate, seed, shared], help="exponential gaps: Pantheon's -poisson")
    poisson.add_argument(
        "--cold-start", default="0s", metavar="TIME", help="begin with a packet per 100 ms for this long, below --rate"
    )
    poisson.set_defaults(run=_make, rule="poisson")
    stepped = rules.add_parser("stepped", parents=[shared], help="a rate that changes at given times")
    stepped.add_argument(
        "--step", action="append", required=True, metavar="TIME=RATE", help="from TIME on; the first at 0s; repeat"
    )
    stepped.set_defaults(run=_make, rule="stepped")
    cellular = rules.add_parser(
        "cellular",
        parents=[rate, seed, shared],
        help="a random walk with outages, after Sprout's model of cellular links; its mean is --rate",
    )
    cellular.add_argument(
        "--volatility",
        type=float,
        default=0.4,
        metavar="X",
        help="walk of the rate in 1 s, relative to its middle (0.4)",
    )
    cellular.add_argument(
        "--outage-escape", type=float, default=10.0, metavar="HZ", help="rate at which outages end (10 per second)"
    )
    cellular.set_defaults(run=_make, rule="cellular")
    named = rules.add_parser("named", parents=[], help="write a trace of the catalog as a file")
    named.add_argument("name", help="a name from `ccgym trace list`")
    named.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: standard output)")
    named.set_defaults(run=_make_named)


def _add_show(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    show = actions.add_parser(
        "show", help="print key figures and a sketch, or draw a picture", formatter_class=HelpFormatter
    )
    show.add_argument("trace", help="a name from `ccgym trace list`, or a file")
    show.add_argument("--bin", metavar="TIME", help="bin of the rate percentiles (default: 500ms)")
    show.add_argument("--plot", metavar="FILE", help="draw rate and delivered bytes over time (.png, .svg or .pdf)")
    show.set_defaults(run=_show)


def _add_check(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    check = actions.add_parser(
        "check",
        help="look for mistakes; status 1 if there are errors",
        description="Look for mistakes in traces, as ccgym does before every evaluation.",
        formatter_class=HelpFormatter,
    )
    check.add_argument("traces", nargs="+", metavar="TRACE", help="names or files")
    check.add_argument("--rate", metavar="RATE", help="the rate they should have (default: the one in the name)")
    check.add_argument("--rtt", metavar="TIME", help="the path's round-trip time")
    check.add_argument("--strict", action="store_true", help="take warnings for errors")
    check.set_defaults(run=_check)


def _add_convert(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    convert = actions.add_parser(
        "convert",
        help="make a trace of another format",
        description="Make a trace of a text file of columns.\n\n"
        "  time-bytes   time, bytes delivered since the line before\n"
        "  time-rate    time, Mbit/s from then on\n"
        "  kbit-per-ms  kilobits of one millisecond per line, as mahimahi's mm-rate-to-events\n"
        "  times        a time per line, with decimals, blanks or Windows line endings\n",
        formatter_class=HelpFormatter,
    )
    convert.add_argument("input", help="the file")
    convert.add_argument("--from", dest="form", required=True, metavar="FORMAT", help="one of the above")
    convert.add_argument("--time-unit", default="auto", metavar="UNIT", help="s, ms or auto (default)")
    convert.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: standard output)")
    convert.set_defaults(run=_convert)


def _make(args: argparse.Namespace) -> int:
    from ccgym.tracetools import generate

    duration = option("--duration", parse_time, args.duration)
    if args.rule == "stepped":
        return _write(generate.stepped([_step(text) for text in args.step], duration), args.output)
    rate = option("--rate", parse_rate, args.rate)
    if args.rule == "constant":
        return _write(generate.constant(rate, duration), args.output)
    if args.rule == "poisson":
        cold = option("--cold-start", parse_time, args.cold_start)
        return _write(generate.poisson(rate, duration, seed=args.seed, cold_start_ns=cold), args.output)
    return _write(
        generate.cellular(
            rate, duration, seed=args.seed, volatility=args.volatility, outage_escape_hz=args.outage_escape
        ),
        args.output,
    )


def _step(text: str) -> tuple[int, int]:
    start, equals, rate = text.partition("=")
    if not equals:
        raise ConfigError("text-malformed", shown(text), expected="TIME=RATE, like 3.75s=256mbps", where="--step")
    # Only here may a link be shut: a path has a rate.
    closed = rate.strip().casefold() in ("0", "0bps", "0mbps")
    return option("--step", parse_time, start), 0 if closed else option("--step", parse_rate, rate)


def _make_named(args: argparse.Namespace) -> int:
    from ccgym.config.catalog import resolve_trace

    return _write(resolve_trace(args.name).load().times_ms, args.output)


def _write(times: object, output: str | None) -> int:
    import sys

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
            expected="a file in a folder that is there",
            hint=f"is it spelled right? otherwise make it first: mkdir -p {shlex.quote(str(folder))}",
        )
    write_trace(output, lines)
    summary = summarize(lines)
    say(f"{output}: {summary.lines} lines, {summary.period_ms} ms, {summary.mean_rate_mbps:.6g} Mbit/s")
    return 0


def _show(args: argparse.Namespace) -> int:
    from ccgym.config.catalog import resolve_trace
    from ccgym.tracetools.check import find_mistakes
    from ccgym.tracetools.inspect import sparkline, summarize

    source = resolve_trace(args.trace)
    trace = source.load()
    width = None if args.bin is None else max(1, option("--bin", parse_time, args.bin) // NS_PER_MS)
    times = trace.times_ms
    summary = summarize(times, width)
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
    say(source.name)
    for label, text in rows:
        say(f"  {label:<14} {text}")
    say()
    line = sparkline(times, min(100, max(20, console().width - 4)))
    say(f"  {line}")
    say(f"  0{f'{seconds:g} s':>{max(9, len(line) - 1)}}")
    for finding in find_mistakes(times, None, None, name=os.path.basename(args.trace)):
        if finding.code not in source.intended:
            say(str(finding))
    if args.plot:
        from ccgym.report.figures import figure_path, require_drawing

        file = option("--plot", figure_path, args.plot)
        require_drawing("matplotlib.figure")
        from ccgym.report.figures.trace import trace_figure
        from ccgym.report.style import house_style, save

        with house_style():
            save(trace_figure(times, source.name), file)
        say(f"drawn into {args.plot}")
    return 0


def _check(args: argparse.Namespace) -> int:
    from ccgym.config.catalog import resolve_trace
    from ccgym.tracetools.check import find_mistakes

    rate = None if args.rate is None else option("--rate", parse_rate, args.rate)
    rtt = None if args.rtt is None else option("--rtt", parse_time, args.rtt)
    failed = False
    for name in args.traces:
        source = resolve_trace(name)
        nominal = source.entry.nominal_rate if source.entry is not None else None
        findings = find_mistakes(source.load(), nominal if rate is None else rate, rtt, name=os.path.basename(name))
        findings = [finding for finding in findings if finding.code not in source.intended]
        for finding in findings:
            say(str(finding))
        if not findings:
            say(f"{name}: nothing to remark")
        failed = failed or any(args.strict or finding.severity == "error" for finding in findings)
    return 1 if failed else 0


def _convert(args: argparse.Namespace) -> int:
    from ccgym.tracetools.convert import convert
    from ccgym.tracetools.text import read_bytes

    text = read_bytes(args.input).decode("utf-8", "replace")
    return _write(convert(text, args.form, time_unit=args.time_unit, name=args.input), args.output)


def _list(args: argparse.Namespace) -> int:
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
