"""Our shell and mahimahi's mm-link, fed the same stream through every queue; and our shell against the simulator.

Both get 1500-byte packets at constant spacing, 14 Mbit/s into 12. mm-link runs live where it starts, as root; what it
did when `record_shell.py` was run is in `recorded/shell`, and is compared with everywhere. Arrivals differ
by fractions of a millisecond from run to run, so drops are counted, not identified. With the very same arrivals, both
are compared with the simulator: our shell line by line.
"""

from __future__ import annotations

import gzip
import importlib
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ccgym import _core
from ccgym.config.path import NetworkPath
from tests.real_time import undecided

RECORD = Path(__file__).resolve().parents[1] / "differential" / "record"


def tool(name: str) -> ModuleType:
    """A program of the folder `record`, as a module. They import each other from their own folder, by names that
    programs elsewhere have, too: those are forgotten again.
    """
    before = set(sys.modules)
    sys.path.insert(0, str(RECORD))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(RECORD))
        for module in set(sys.modules) - before:
            if str(RECORD) in str(getattr(sys.modules[module], "__file__", None)):
                del sys.modules[module]


shells = tool("record_shell")

CASES = {case.name: case for case in shells.CASES}
REPEATED = 3  # runs of a queue: where in a millisecond a run begins moves its delays by up to 2 ms
AT_ONCE = 4
# A stall of the machine makes packets late. One that outlasts the shortest queue here, 5 ms, costs throughput and
# changes drops. Above this, runs with other arrivals are not compared; those with the same arrivals are, but for
# BY_THE_CLOCK.
DISTURBED_MS = 5.0
# Only a sender that could not keep its own times shows that it was the machine. In the recorded runs, of which the
# disturbed ones were left out, it was late by 2.7 ms at most.
SENDER_LATE_MS = 2.8
CHANCE_SEEDS = range(1, 21)

DROPS, FEW_DROPS = 0.01, 2  # relative; below 200 drops a hundredth is less than two packets, and two may differ
DELAY_MS = 1.0
MEASURES = ("delay_mean_ms", "delay_p95_ms", "delay_max_ms")
# PIE draws, and mm-link takes no seed. Runs of one shell spread, as a standard deviation, by 5 of 300 drops, by 1.8 ms
# of mean delay and 3 ms of p95 and maximum; these are three to four deviations of a difference of means of three runs.
# The recording has many more runs and is held to DROPS and DELAY_MS.
CHANCE_DROPS = 0.05
CHANCE_MS = {"delay_mean_ms": 6.0, "delay_p95_ms": 9.0, "delay_max_ms": 11.0}
# CoDel decides by delays of single packets: one run of it swings with arrivals that a stall shifts by a few ms.
CODEL_DROPS, CODEL_MS = 0.03, 4.0
# Taking a packet out, these look at the clock, and where mm-link stood still that is later than the opportunity which
# its log names: what it decided then does not follow from its log.
BY_THE_CLOCK = ("codel", "pie")

on_real_network = pytest.mark.real("netns")
_mm_link_starts = pytest.mark.real("netns", "root", "mm-link", "unshare", "nsenter", "setpriv", "sysctl", "ip")


def beside_mm_link(test: Any) -> Any:
    """Of `make test-all`: in `make test` its recording stands for mm-link."""
    return pytest.mark.long(_mm_link_starts(test))


def of_cases(cases: Sequence[Any]) -> pytest.MarkDecorator:
    """A test for each of these."""
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name.replace(" ", "-"))


every_case = of_cases(shells.CASES)
every_case_without_chance = of_cases([case for case in shells.CASES if not case.chance])


def runs_of(shell: str) -> dict[str, list[Any]]:
    """Logs of one shell."""
    jobs = [(case, shell, seed) for case in CASES.values() for seed in range(1, REPEATED + 1)]
    logs: dict[str, list[Any]] = {name: [] for name in CASES}
    for (case, *_), log in zip(jobs, shells.run_all(jobs, AT_ONCE, DISTURBED_MS)):
        logs[case.name].append(log)
    return logs


@pytest.fixture(scope="module")
def ours() -> dict[str, list[Any]]:
    """Logs of our shell."""
    return runs_of(shells.OURS)


@pytest.fixture(scope="module")
def theirs() -> dict[str, list[Any]]:
    """Logs of mm-link, run now."""
    return runs_of(shells.THEIRS)


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, list[dict[str, float]]]]:
    """Figures of the recorded runs: by queue, by shell."""
    summary = json.loads(gzip.decompress(shells.SUMMARY.read_bytes()))
    for entry in summary["cases"]:
        case = CASES[entry["name"]]
        same = {"queue": case.queue, "arguments": case.arguments, "gap_ns": case.gap_ns, "packets": case.packets}
        assert {key: entry[key] for key in same} == same, "the recording is of another stream: record it again"
    return {entry["name"]: entry["runs"] for entry in summary["cases"]}


def figures(case: Any, logs: Sequence[Any]) -> list[dict[str, float]]:
    """The figures of runs whose stream arrived as it was meant; undecided where the machine stalled each time."""
    for log in logs:
        assert len(log.arrivals_ms) == case.packets, f"{len(log.arrivals_ms)} of {case.packets} packets arrived"
        if log.undisturbed(case, DISTURBED_MS):
            continue
        late_ms = log.sent["lateness_max_us"] / 1000
        seen = f"arrivals up to {log.jitter_ms(case):.1f} ms off, {log.strays} packets of others"
        if late_ms > SENDER_LATE_MS:
            undecided(f"the machine disturbed {shells.ATTEMPTS} runs: {seen}, sent up to {late_ms:.1f} ms late")
        pytest.fail(f"{case.name}: in each of {shells.ATTEMPTS} runs {seen}, though the sender kept its times")
    return [log.summary(case) for log in logs]


def agree(
    case: Any,
    ours: Sequence[Mapping[str, float]],
    theirs: Sequence[Mapping[str, float]],
    relative: float = DROPS,
    within_ms: Callable[[str], float] = lambda measure: DELAY_MS,
) -> None:
    """Compare the means of runs."""

    def means(measure: str) -> tuple[float, float]:
        return statistics.fmean(run[measure] for run in ours), statistics.fmean(run[measure] for run in theirs)

    our_drops, their_drops = means("drops")
    allowed = max(relative * their_drops, FEW_DROPS)
    assert abs(our_drops - their_drops) <= allowed, f"{case.name}: {our_drops} drops, mm-link {their_drops}"
    for measure in MEASURES:
        our_ms, their_ms = means(measure)
        assert abs(our_ms - their_ms) <= within_ms(measure), f"{case.name}: {measure} {our_ms}, mm-link {their_ms}"


def agree_live(case: Any, ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]]) -> None:
    """Compare few runs, with the tolerance that chance needs."""
    if case.chance:
        agree(case, ours, theirs, CHANCE_DROPS, CHANCE_MS.__getitem__)
    elif case.queue == "codel":
        agree(case, ours, theirs, CODEL_DROPS, lambda measure: CODEL_MS)
    else:
        agree(case, ours, theirs)


# --- Against mm-link ----------------------------------------------------------------------------------------------


@on_real_network
@every_case
def test_our_shell_does_as_mm_link_did(case: Any, ours: dict[str, list[Any]], recorded: dict[str, Any]) -> None:
    agree_live(case, figures(case, ours[case.name]), recorded[case.name][shells.THEIRS])


@beside_mm_link
@every_case
def test_our_shell_does_as_mm_link_does(case: Any, ours: dict[str, list[Any]], theirs: dict[str, list[Any]]) -> None:
    agree_live(case, figures(case, ours[case.name]), figures(case, theirs[case.name]))


@beside_mm_link
def test_each_packet_waits_as_long_as_in_mm_link(ours: dict[str, list[Any]], theirs: dict[str, list[Any]]) -> None:
    """Where nothing is dropped, the k-th packet of one is the k-th of the other. Both logs have whole milliseconds."""
    case = CASES["infinite"]
    figures(case, [*ours[case.name], *theirs[case.name]])
    pairs = zip(ours[case.name][0].delays_ms, theirs[case.name][0].delays_ms, strict=True)
    off = sorted(abs(our_ms - their_ms) for our_ms, their_ms in pairs)
    assert off[int(0.98 * len(off))] <= 1, f"98 % within {off[int(0.98 * len(off))]} ms"
    # What remains are packets of which one stream or the other came late, which may be by so much.
    assert off[-1] <= 1 + DISTURBED_MS


# --- Against the simulator ----------------------------------------------------------------------------------------


def from_base(log: Any) -> list[tuple[str, ...]]:
    """The lines of a log in trace time."""
    return [(str(int(words[0]) - log.base_ms), *words[1:]) for words in log.lines]


def simulated(case: Any, log: Any, seed: int, folder: Path) -> list[tuple[str, ...]]:
    """What the simulator's link logs, in trace time, when a packet enters at each recorded arrival."""
    trace = folder / "trace"
    trace.write_text("".join(f"{ms}\n" for ms in shells.TRACE_MS))
    words = [word if word != "trace" else str(trace) for word in case.words("") if not word.startswith("--uplink-log")]
    path = NetworkPath.from_mahimahi(words).compile()
    payload = shells.IP_BYTES - shells.HEADERS
    # A flow per packet: each begins at its arrival and has one packet to send.
    flow = {
        "scheme": "fixed_window",
        "profile": "udp",
        "source": {"kind": "bytes", "bytes": payload},
        "mss": payload,
        "header": shells.HEADERS,
    }
    lines = from_base(log)
    spec = {
        "seed": seed,
        "duration": (int(lines[-1][0]) + 1) * 10**6,
        "uplink": path.uplink,
        "downlink": [],
        "flows": [{**flow, "start": int(line[0]) * 10**6} for line in lines if line[1] == "+"],
        "record": {"link_events": True},
    }
    written = folder / "simulated.log"
    _core.simulate(json.dumps(spec), path.traces).write_mm_log(written, "up", "")
    lines = shells.with_drops(written.read_text()).splitlines()
    return [tuple(line.split()) for line in lines if line and not line.startswith("#")]


@on_real_network
@every_case
def test_our_log_is_the_simulators(case: Any, ours: dict[str, list[Any]], tmp_path: Path) -> None:
    """Every line, drops by chance included: the shell decides as the simulator does."""
    for log in ours[case.name]:
        measured, expected = from_base(log), simulated(case, log, log.seed, tmp_path)
        different = [(a, b) for a, b in zip(measured, expected) if a != b]
        assert different == []
        assert {words[1] for words in expected[len(measured) :]} <= {"#"}  # the simulator stops a millisecond later
        assert sum(words[1] == "d" for words in measured) == log.drops


@on_real_network
@every_case_without_chance
def test_our_log_follows_the_documented_rules(case: Any, ours: dict[str, list[Any]]) -> None:
    """Every line as a second, independent model of mm-link has it; it has no PIE."""
    replay = tool("replay_mm_link").replay
    for log in ours[case.name]:
        document = {
            "queue": case.queue,
            "queue_args": case.arguments,
            "trace": {"ms": shells.TRACE_MS},
            "base_timestamp_ms": log.base_ms,
            "once": False,
        }
        lines = [" ".join(words) for words in log.lines if words[1] != "d"]
        assert replay(document, lines) == lines


@beside_mm_link
@every_case
def test_mm_link_does_as_the_simulator(case: Any, theirs: dict[str, list[Any]], tmp_path: Path) -> None:
    """mm-link's arrivals through our link: the same stream to the millisecond, even where this machine stalled."""
    logs = theirs[case.name]
    if case.queue in BY_THE_CLOCK:
        figures(case, logs)
    expected = [
        replace(log, lines=tuple(simulated(case, log, seed, tmp_path)), base_ms=0).summary(case)
        for log in logs
        for seed in (CHANCE_SEEDS if case.chance else [1])
    ]
    agree_live(case, expected, [log.summary(case) for log in logs])
