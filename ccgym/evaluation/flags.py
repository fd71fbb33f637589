"""Checks of results after a run: warnings and notes about suspicious numbers, with their likely causes.

Precise results can still be meaningless. A student's report once measured a broken trace for sixty seconds
six times; four of these rules would have reported it. Each flag has a command that shows the problem,
and names the likely cause if it follows from the measured numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from ccgym.evaluation.backends import RECORDED
from ccgym.evaluation.collapse import collapsed
from ccgym.evaluation.pantheon import stats_file
from ccgym.evaluation.path_facts import PathFacts
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.scheme_summary import SchemeSummary
from ccgym.invocation import as_typed, command
from ccgym.schemes.reading import read_scheme
from ccgym.schemes.registry import registry
from ccgym.schemes.scheme import ExternalScheme

STARVED_FRACTION: Final = 0.20
"""Greedy flows should carry at least this fraction of the computed capacity."""

DELAY_FACTOR: Final = 20.0
"""A delay-based scheme should stay below this multiple of the path's own one-way delay."""

NEAR: Final = 0.05
"""Two numbers are treated as equal if they differ by less than this fraction of the second."""

LONGER: Final = 5
"""Runs this many times as long show whether the length of the run limits a scheme."""

LONG_IN_RTTS: Final = 5.0
"""Gaps and queues matter when they are longer than this many base round-trip times."""

UNFAIR_JAIN: Final = 0.8
"""Jain's index below which unequal shares are reported: for two flows, one got three times as much as the other."""

BACKLOG_LOSS: Final = 0.02
"""Minimum loss (a fraction) for a note that it consists of packets in flight at the end of the run."""

BACKLOG_TEXT: Final = (
    "loss, but nothing was dropped: these packets were in flight when the run ended, and Pantheon counts them as lost"
)

DELAY_BASED: Final = frozenset({"vegas", "copa", "ledbat", "fast", "swift", "timely"})
"""Schemes that control their rate by delay and so should not fill queues."""


@dataclass(frozen=True)
class Flag:
    """A warning or note about results."""

    level: Literal["warning", "note"]
    """``warning``: the number may be misleading. ``note``: read the number with care."""
    code: str
    """Stable name of the rule, such as ``starved``."""
    subject: str
    """Scheme, path or experiment."""
    message: str
    cause: str
    """The likely cause; empty if only another run can show it."""
    command: str
    """A command that shows the problem."""


@dataclass(frozen=True)
class Cause:
    """A cause of very low throughput, confirmed by another run."""

    name: str
    told: str
    """Throughput of the other run, as text."""
    varied: str
    """The parameter to vary to see the effect, as ``--sweep`` accepts it."""


def flags(
    results: ResultSet, facts: PathFacts | None, causes: Mapping[str, Cause] = MappingProxyType({})
) -> list[Flag]:
    """Return all flags of one experiment, warnings first.

    Args:
        results: The experiment.
        facts: Known properties of its path; None if the path is unknown.
        causes: Causes of low throughput, by scheme, from :func:`ccgym.evaluation.counterfactual.causes`.
    """
    found = [*_experiment_flags(results), *(() if facts is None else _path_flags(facts))]
    for summary in results.schemes:
        found += _run_flags(summary, facts, results)
        found += _unfair(summary, facts, results)
        if facts is not None:
            found += _scheme_flags(summary, facts, results, causes)
    return sorted(found, key=lambda flag: flag.level != "warning")


def _again(results: ResultSet, facts: PathFacts | None, scheme: str, run: int, *options: str) -> str:
    """Return the command that repeats a scheme's first runs up to this one, with packet logs. If the path is unknown,
    return the command that shows Pantheon's statistics file of the run."""
    if facts is None:
        return f"cat {stats_file(scheme, run)}"
    where = [f"--backend {results.backend}"] if results.real else []
    options = (f"--runs {run}", *options)
    words = [command("evaluate"), facts.options, *where, f"--schemes {_text(results, scheme)}", *options]
    return " ".join(words)


def _text(results: ResultSet, key: str) -> str:
    """Return the text that selects a scheme on the command line."""
    keys = (style.key for style in results.styles)
    return str(dict(zip(keys, results.parameters["schemes"], strict=False)).get(key, key))


def _algorithm(results: ResultSet, key: str) -> str:
    """Return the algorithm of a scheme: its name without parameters, and without the prefix of kernel TCP, a QUIC
    library or an external program."""
    text = _text(results, key)
    scheme, name = read_scheme(text), text.split(":", 1)[0]
    if isinstance(scheme, ExternalScheme):
        name = Path(scheme.name.removeprefix(scheme.PREFIX)).stem
    return name if name in DELAY_BASED else name.split("_", 1)[0]


def _path_flags(facts: PathFacts) -> Iterator[Flag]:
    declared, capacity = facts.declared_mbps, facts.capacity_mbps
    if declared and capacity and abs(capacity / declared - 1) > NEAR:
        yield Flag(
            level="warning",
            code="capacity-off-declared",
            subject=facts.name,
            message=f"the link could carry {capacity:.2f} Mbit/s; its declared rate is {declared:g} Mbit/s",
            cause="the trace does not have the rate in its name, or only a part of it was played",
            command=f"ccgym paths show {facts.trace}",
        )


def _experiment_flags(results: ResultSet) -> Iterator[Flag]:
    notes = [note for cell in results.cells for note in (cell.record.path_report or {}).get("notes", ())]
    for note in dict.fromkeys(notes):
        yield Flag(
            level="note",
            code="path-note",
            subject=f"backend {results.backend}",
            message=note,
            cause=f"{notes.count(note)} of {len(results.cells)} runs report it",
            command="jq '.cells[].record.path_report.notes' results.json",
        )
    if results.left:
        yield Flag(
            level="note",
            code="time-was-up",
            subject="all schemes",
            message=f"{results.left} of {results.left + len(results.cells)} runs not started: the time budget ran out",
            cause="the limit that --budget sets; schemes whose runs take equally long have equally many runs",
            command="the same command, which continues",
        )
    if results.parameters["runs"] == 1 and results.cells:
        yield Flag(
            level="note",
            code="single-run",
            subject="all schemes",
            message="one run per scheme: the table has no spread",
            cause="if the path or a scheme is random, runs differ; one run cannot show by how much",
            command="the same command with --runs 5"
            if results.backend != RECORDED
            else "Pantheon's test.py with --run-times 5",
        )


def _run_flags(summary: SchemeSummary, facts: PathFacts | None, results: ResultSet) -> Iterator[Flag]:
    """Yield flags that single runs of a scheme show on any path."""
    label, key = summary.style.label, summary.style.key
    limited = summary.limited_runs
    if limited:
        yield Flag(
            level="warning",
            code="emulator-limited",
            subject=label,
            message=f"{len(limited)} of {len(summary.runs)} runs: the machine could not hold the path's schedule: "
            f"{limited[0].limited}",
            cause="too few processors for this rate, or other programs kept them busy: these numbers partly measure "
            "this machine",
            command="ccgym doctor; the same evaluation with --repeat-limited 5 tries such runs again",
        )
    ignored = [cell for cell in summary.runs if cell.invalid is not None]
    if ignored:
        yield Flag(
            level="warning",
            code="ignored-runs",
            subject=label,
            message=f"{len(ignored)} of {len(summary.runs)} runs do not count: {ignored[0].invalid}",
            cause="the scheme stalled, or sent almost nothing (Pantheon ignores such runs)",
            command=_again(results, facts, key, ignored[0].run, "--logs all"),
        )
    throughputs = [cell.record.total.throughput_mbps for cell in summary.valid_runs]
    places = collapsed(throughputs)
    if places:
        runs = [summary.valid_runs[place].run for place in places]
        worst, others = min(throughputs[place] for place in places), max(throughputs)
        yield Flag(
            level="warning",
            code="collapsed",
            subject=label,
            message=f"{'run' if len(runs) == 1 else 'runs'} {', '.join(map(str, runs))} of {len(summary.runs)} carried "
            f"{worst:.2f} Mbit/s{'' if len(runs) == 1 else ' and little more'}, others up to {others:.2f}",
            cause="the scheme got stuck in these runs: at their start, or in a state that it does not leave; the mean "
            "describes none of the runs",
            command=_again(results, facts, key, runs[0], "--logs all"),
        )


def _unfair(summary: SchemeSummary, facts: PathFacts | None, results: ResultSet) -> Iterator[Flag]:
    """Yield a flag if several flows share one bottleneck unequally."""
    jain = summary.jain
    if jain is None or jain.mean >= UNFAIR_JAIN:
        return
    flows = [(flow, flow.throughput_mbps.mean) for flow in summary.flows if flow.throughput_mbps is not None]
    total = sum(rate for _, rate in flows)
    ordered = sorted(flows, key=lambda one: one[1])
    shown = [*ordered[:1], *ordered[-1:]] if len(ordered) > 4 else ordered
    rates = ", ".join(f"flow {flow.number} ({flow.scheme}) {rate:.2f} Mbit/s" for flow, rate in shown)
    yield Flag(
        level="warning",
        code="unfair-shares",
        subject=summary.style.label,
        message=f"its flows share {total:.2f} Mbit/s unequally: {rates}; Jain's index {jain.mean:.2f}",
        cause="",
        command=_again(results, facts, summary.style.key, 1, "--logs all"),
    )


def is_starved(summary: SchemeSummary) -> bool:
    """Return whether greedy flows of a scheme used only a small part of the capacity."""
    greedy = summary.of_frames("bit_rate_mbps") is None
    return greedy and summary.utilization is not None and summary.utilization.mean < STARVED_FRACTION


def _scheme_flags(
    summary: SchemeSummary, facts: PathFacts, results: ResultSet, causes: Mapping[str, Cause]
) -> Iterator[Flag]:
    """Yield flags that follow from a scheme's numbers and the properties of this path."""
    label, key = summary.style.label, summary.style.key
    name = _algorithm(results, key)
    throughput, delay, utilization = summary.throughput_mbps, summary.delay_p95_ms, summary.utilization
    if throughput is None or delay is None:
        return
    if utilization is not None and is_starved(summary):
        cause = causes.get(key)
        yield Flag(
            level="warning",
            code="starved",
            subject=label,
            message=f"greedy flows carried {throughput.mean:.2f} Mbit/s, "
            f"{100 * utilization.mean:.1f} % of the capacity{_known(summary, facts, results)}"
            + ("" if cause is None else f"; {cause.told}"),
            cause="" if cause is None else cause.name,
            command=f"ccgym paths show {facts.trace}"
            if _gap_matters(facts) and cause is None
            else _counterfactual(summary, facts, results, _varied(summary, facts) if cause is None else cause.varied),
        )
    if name in DELAY_BASED and facts.one_way_delay_ms > 0 and delay.mean > DELAY_FACTOR * facts.one_way_delay_ms:
        yield Flag(
            level="warning",
            code="delay-not-its-own",
            subject=label,
            message=f"p95 delay {delay.mean:.0f} ms, over {DELAY_FACTOR:g} times the path's "
            f"{facts.one_way_delay_ms:g} ms",
            cause="a delay-based scheme does not build such queues: the link causes the delay"
            + (f", its trace pauses for {facts.largest_gap_ms:g} ms" if _gap_matters(facts) else ""),
            command=f"ccgym paths show {facts.trace}" if facts.trace else _again(results, facts, key, 1),
        )
    if _gap_matters(facts) and facts.largest_gap_ms and abs(delay.mean / facts.largest_gap_ms - 1) <= NEAR:
        yield Flag(
            level="warning",
            code="delay-is-the-gap",
            subject=label,
            message=f"p95 delay {delay.mean:.0f} ms is the trace's largest gap, {facts.largest_gap_ms:g} ms",
            cause="packets wait for the next burst of deliveries, with any scheme",
            command=f"ccgym paths show {facts.trace}",
        )
    backlog = all(lost_nothing(cell.record, facts.random_loss) for cell in summary.runs)
    if summary.loss is not None and summary.loss.mean > BACKLOG_LOSS and backlog:
        yield Flag(
            level="note",
            code="loss-is-backlog",
            subject=label,
            message=f"{100 * summary.loss.mean:.1f} % {BACKLOG_TEXT}",
            cause="the queue had room for all that the scheme sent; slow start, for example, ends at the first loss; "
            "until then it sends twice what the link carries",
            command="the same path with a queue of one bandwidth-delay product, e.g. queue='1bdp'",
        )
    queued = delay.mean - facts.one_way_delay_ms
    if (
        facts.drain_ms
        and facts.drain_ms > LONG_IN_RTTS * facts.base_rtt_ms
        and abs(queued / facts.drain_ms - 1) <= NEAR
    ):
        yield Flag(
            level="note",
            code="delay-is-the-queue",
            subject=label,
            message=f"p95 delay {delay.mean:.0f} ms is a full queue, which takes {facts.drain_ms:.0f} ms to drain",
            cause=f"the buffer is {facts.drain_ms / max(facts.base_rtt_ms, 1e-3):.0f} round-trip times deep, and the "
            "scheme fills it",
            command="the same path with a queue of one bandwidth-delay product, e.g. queue='1bdp'",
        )


def lost_nothing(record: RunRecord, random_loss: float) -> bool:
    """Return whether no queue dropped a packet in a run and no sender declared one lost.

    Args:
        record: The run.
        random_loss: Probability of random loss in the data direction.
    """
    links = (record.link, *record.links.values())
    lost = sum(link.drops or 0 for link in links) + sum(flow.lost_packets or 0 for flow in record.flows)
    return random_loss == 0 and lost == 0


def _gap_matters(facts: PathFacts) -> bool:
    return facts.largest_gap_ms is not None and facts.largest_gap_ms > max(100.0, LONG_IN_RTTS * facts.base_rtt_ms)


def _known(summary: SchemeSummary, facts: PathFacts, results: ResultSet) -> str:
    """Return facts about a scheme with low throughput. Only another run can show which of them is the cause."""
    known = []
    if _gap_matters(facts):
        known.append(f"the trace delivers nothing for up to {facts.largest_gap_ms:g} ms")
    if facts.random_loss > 0:
        known.append(f"the path loses {100 * facts.random_loss:g} % of packets at random")
    if summary.loss:
        known.append(f"{100 * summary.loss.mean:.2f} % of the bytes were lost")
    if facts.base_rtt_ms:
        round_trips = 1e3 * summary.runs[0].record.duration_s / facts.base_rtt_ms
        known.append(f"a run lasts {round_trips:.0f} round trips")
    if _bounded(results, summary.style.key):
        known.append("the scheme limits its own window or rate")
    return f"; known: {', '.join(known)}" if known else ""


def _bounded(results: ResultSet, key: str) -> bool:
    """Return whether a scheme limits its own window or rate, independently of the path."""
    entry = registry().get(_text(results, key).split(":", 1)[0])
    return entry is not None and bool(entry["capabilities"]["bounded"])


def _varied(summary: SchemeSummary, facts: PathFacts) -> str:
    """Return the sweep that shows whether random loss (or, without any, the length of the runs) limits a scheme."""
    length = summary.runs[0].record.duration_s
    return f"loss=0,{facts.random_loss:g}" if facts.random_loss > 0 else f"runtime={length:g}s,{LONGER * length:g}s"


def _counterfactual(summary: SchemeSummary, facts: PathFacts, results: ResultSet, varied: str) -> str:
    where = f" --backend {results.backend}" if results.real else ""
    return (
        f"{command('evaluate')} {facts.options}{where} --schemes {_text(results, summary.style.key)} --sweep {varied}"
    )


def flag_dicts(found: Iterable[Flag]) -> tuple[Mapping[str, str], ...]:
    """Return flags as plain data."""
    return tuple({**asdict(flag), "command": as_typed(flag.command)} for flag in found)
