"""Contenders and runs as data, the engine that measures them, and directories that survive whatever happens to them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import CcgymError, ConfigError, ResultsError, SchemeNotFoundError
from ccgym.evaluation.directory import (
    MANIFEST_FILE,
    MARKERS,
    Kind,
    claim,
    differences,
    held_parameters,
    refuse_other_kinds,
)
from ccgym.evaluation.engine import Reduced, Reduction, measure
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.kept_arrays import packed
from ccgym.evaluation.observer import Silent
from ccgym.evaluation.pantheon.packet_logs import fingerprint, what_is_wrong
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.run import Run, contender, contenders, parse_contenders, path_digest
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.store import Damage, RunStore, StoredRun, run_file
from ccgym.schemes.flow import FlowSpec
from tests.refusals import refused

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")


# --- Contenders ----------------------------------------------------------------------------------------------------


def test_a_scheme_alone_is_a_contender() -> None:
    one = contender("fixed_window:cwnd=100")
    assert (one.key, one.text, one.seed_text) == ("fixed_window_cwnd_100", "fixed_window:cwnd=100", one.text)
    assert one.flows == (FlowSpec(scheme="fixed_window", params={"cwnd": 100}),)
    assert one.choice is not None


def test_several_flows_are_a_contender() -> None:
    one = contender("bbr+cubic:beta=0.5@5s")
    assert [(flow.scheme, flow.start_ns) for flow in one.flows] == [("bbr", 0), ("cubic", 5 * 10**9)]
    assert (one.key, one.text) == ("bbr+cubic_beta_0.5_at_5s", "bbr+cubic:beta=0.5@5s")
    assert one.label == "TCP BBR + TCP Cubic (beta 0.5) from 5s"
    assert one.choice is None
    assert contender(one.text) == one
    assert [flow.scheme for flow in contender(["bbr", {"scheme": "cubic", "rtt": "40ms"}]).flows] == ["bbr", "cubic"]


def test_a_plus_in_a_number_or_a_path_separates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [flow.params for flow in contender("fixed_rate:rate_mbps=1e+1").flows] == [{"rate_mbps": 10.0}]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a+b").mkdir()
    with refused(ConfigError, "policy-missing at contender: a+b"):
        contender("./a+b")


def test_a_contender_may_have_a_name() -> None:
    given = {"name": "duel", "label": "A duel", "color": "black", "flows": ["bbr", {"scheme": "cubic", "start": "1s"}]}
    one = contender(given)
    assert (one.key, one.label, one.style.color, one.seed_text) == ("duel", "A duel", "black", "bbr+cubic@1s")


@pytest.mark.parametrize(
    ("given", "kind", "word"),
    [
        ("bbr+cubci", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ("bbr+", ConfigError, "text-malformed at --schemes"),
        ("bbr@5", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ([], ConfigError, "argument-missing at --schemes"),
        ({"name": "x", "flows": "bbr"}, ConfigError, "unknown-key at --schemes"),
        ({"name": "x", "flows": ["bbr"], "colour": "red"}, ConfigError, "unknown-key at --schemes"),
        ({"name": "a/b", "flows": ["bbr"]}, ConfigError, "name-invalid at --schemes: name"),
        (
            {"name": "x", "flows": ["bbr", {"scheme": "cubic", "strat": 5}]},
            ConfigError,
            "unknown-key at --schemes: flows[1]: strat",
        ),
    ],
)
def test_wrong_contenders(given: object, kind: type[CcgymError], word: str) -> None:
    with refused(kind, word):
        contender(given, "--schemes")


def test_no_two_contenders_look_alike() -> None:
    made = parse_contenders("bbr,bbr+cubic,bbr@1s,bbr@2s")
    assert len({(one.style.color, one.style.marker) for one in made}) == 4
    with refused(ConfigError, "duplicate"):
        parse_contenders("bbr+cubic,bbr + cubic")


# --- Runs ----------------------------------------------------------------------------------------------------------


def run(text: str = "cubic", seed: int = 1, **changes: Any) -> Run:
    made = Run(PATH, contender(text), 10**9, seed, Record(series=0), name=f"{text} {seed}")
    return replace(made, **changes)


def test_the_digest_is_of_all_that_decides_a_run_and_of_nothing_else() -> None:
    same = [run(), run(name="other", number=7), run(record=Record(series=0, acks=True, max_memory="1GB"))]
    assert len({one.digest for one in same}) == 1
    others = [
        run(seed=2), run("bbr"), run("cubic+cubic"), run("cubic@1ms"), run("cubic:beta=0.6"),
        run(duration_ns=2 * 10**9), run(backend="emulated"), run(record=Record(series="10ms")),
        run(path=NetworkPath(rate="12mbps", rtt="20ms", queue="21p", name="test")),
    ]  # fmt: skip
    assert len({one.digest for one in [*same, *others]}) == 1 + len(others)


def test_a_run_knows_the_content_of_its_trace(tmp_path: Path) -> None:
    trace = tmp_path / "link.trace"
    digests = set()
    for line in ("1", "2"):
        trace.write_text(f"{line}\n")
        digests.add(run(path=NetworkPath(trace=str(trace), rtt="20ms")).digest)
    assert len(digests) == 2


def test_seeds_depend_on_scheme_and_number_only() -> None:
    made = experiment()
    seeds = {one.name: one.seed for one in made.planned()}
    assert list(seeds) == ["cubic_run1", "bbr_run1", "cubic_run2", "bbr_run2"]
    assert len(set(seeds.values())) == 4
    (alone,) = experiment(schemes=parse_contenders("bbr"), runs=1).planned()
    assert alone.seed == seeds["bbr_run1"]
    assert {one.seed for one in experiment(seed=2).planned()}.isdisjoint(seeds.values())


def test_every_flow_of_a_contender_is_started_again() -> None:
    (made,) = experiment(schemes=parse_contenders("bbr+cubic@100ms"), runs=1, flows=2, interval_ns=10**9).planned()
    assert [(flow.scheme, flow.start_ns) for flow in made.contender.flows] == [
        ("bbr", 0), ("cubic", 10**8), ("bbr", 10**9), ("cubic", 11 * 10**8),
    ]  # fmt: skip


def test_a_trace_that_is_written_anew_gives_another_run(tmp_path: Path) -> None:
    file = tmp_path / "mine.trace"
    file.write_text("1\n2\n")
    path = NetworkPath(trace=str(file), rtt="20ms", queue="40p")
    before = path.compile().facts["capacity"], path_digest(path)
    file.write_text("1\n2\n2\n")
    after = path.compile().facts["capacity"], path_digest(path)
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False]


# --- Measuring -----------------------------------------------------------------------------------------------------


def throughput(one: Run, record: RunRecord) -> dict[str, Any]:
    return {"mbps": [flow.throughput_mbps for flow in record.flows]}


NUMBERS = Reduction("numbers", 1, throughput)


class Listener(Silent):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def notice(self, text: str) -> None:
        self.told.append(text)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.told.append((what, total, done))

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        self.told.append(note)


def test_outcomes_are_in_the_order_of_the_runs_and_equal_runs_are_run_once() -> None:
    listener = Listener()
    asked = [run("bbr"), run(), run("bbr", name="again")]
    outcomes = measure(asked, reduce=NUMBERS, observer=listener)
    assert [outcome.run.name for outcome in outcomes] == ["bbr 1", "cubic 1", "again"]
    assert outcomes[0].stored == outcomes[2].stored != outcomes[1].stored
    assert listener.told[0] == ("simulating", 2, 0)
    assert sorted(listener.told[1:]) == ["bbr 1", "cubic 1"]
    assert measure([], reduce=NUMBERS) == []


def test_another_reduction_runs_again(tmp_path: Path) -> None:
    with RunStore(tmp_path) as store:
        measure([run()], reduce=NUMBERS, store=store)
        for other in (replace(NUMBERS, version=2), replace(NUMBERS, name="others")):
            assert not measure([run()], reduce=other, store=store)[0].kept


def test_a_reduction_may_miss_what_a_run_left_elsewhere(tmp_path: Path) -> None:
    answers: list[str | None] = [None, "", "its log is gone"]
    picky = replace(NUMBERS, missing=lambda one, stored: answers.pop(0))
    with RunStore(tmp_path) as store:
        measure([run()], reduce=NUMBERS, store=store)
        kept = [measure([run()], reduce=picky, store=store, observer=(listener := Listener()))[0].kept for _ in "123"]
    assert kept == [True, False, False]
    assert listener.told[0] == "cubic 1: its log is gone; running it again"


# --- The store -----------------------------------------------------------------------------------------------------


def arrays(one: Run, record: RunRecord) -> Reduced:
    return Reduced(throughput(one, record), packed({"numbers": np.arange(3)}))


def kept_run(store: RunStore, reduce: Any = arrays) -> tuple[Path, Callable[[], StoredRun | Damage | None]]:
    """A run in a store, with arrays or without: its file, and how to load it."""
    reduction = Reduction("arrays", 1, reduce)
    (outcome,) = measure([run()], reduce=reduction, store=store)
    assert outcome.arrays_file == (outcome.file if reduce is arrays else "")
    return store.directory / outcome.file, lambda: store.load(run(), reduction.text)


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty, _fifo, _device, Path.unlink])
@pytest.mark.parametrize("reduce", [arrays, throughput])
def test_damage_is_noticed(tmp_path: Path, damage: Callable[[Path], None], reduce: Any) -> None:
    with RunStore(tmp_path) as store:
        file, load = kept_run(store, reduce)
        assert isinstance(load(), StoredRun)
        damage(file)
        found = load()
    assert found is None if damage is Path.unlink else isinstance(found, Damage)


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty, Path.unlink])
@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_run_of_the_version_before_is_kept_and_its_damage_is_noticed(
    tmp_path: Path, damage: Callable[[Path], None], suffix: str
) -> None:
    with RunStore(tmp_path) as store:
        file, load = kept_run(store)
        with np.load(file) as archive:
            file.with_suffix(".json").write_bytes(archive["run.json"])
        file.write_bytes(packed({"numbers": np.arange(3)}))
        assert isinstance(load(), StoredRun)
        damage(file.with_suffix(suffix))
        assert isinstance(load(), Damage)
        measure([run()], reduce=Reduction("arrays", 1, arrays), store=store)
        assert [one.name for one in store.runs.iterdir()] == [file.name], "made again, it is one file"


def test_an_edited_number_is_noticed(tmp_path: Path) -> None:
    with RunStore(tmp_path) as store:
        file, load = kept_run(store, throughput)
        file.write_text(re.sub(r'"mbps": \[\d', '"mbps": [9', file.read_text()))
        found = load()
    assert isinstance(found, Damage)
    assert "checksum" in found.reason


@pytest.mark.parametrize(("other", "reduction"), [(run(), "arrays/2"), (run(seed=2), "arrays/1")])
def test_a_renamed_file_is_not_another_run(tmp_path: Path, other: Run, reduction: str) -> None:
    with RunStore(tmp_path) as store:
        file, _ = kept_run(store)
        file.rename(store.directory / run_file(other, reduction, arrays=True))
        found = store.load(other, reduction)
    assert isinstance(found, Damage)


# --- Packet logs ---------------------------------------------------------------------------------------------------


def _cut(log: Path) -> None:
    log.write_text("12345")


def _edit(log: Path) -> None:
    log.write_text("1234567899")


def _edit_and_set_the_time_back(log: Path) -> None:
    before = log.stat()
    _edit(log)
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))


def _exchange(log: Path) -> None:
    other = log.with_name("other")
    other.write_text("0987654321")
    other.replace(log)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (_cut, "is cut off or was edited"),
        (_edit, "was edited"),
        (_edit_and_set_the_time_back, "was edited"),
        (_exchange, "was edited"),
        (Path.unlink, "is missing"),
    ],
)
def test_a_log_that_is_not_what_was_written_is_noticed(
    tmp_path: Path, harm: Callable[[Path], None], reason: str
) -> None:
    log = tmp_path / "cubic_datalink_run1.log"
    log.write_text("1234567890")
    known = fingerprint(log)
    assert what_is_wrong(log, known) is None
    harm(log)
    assert what_is_wrong(log, known) == reason


def test_a_copied_log_is_still_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("1234567890")
    known = fingerprint(tmp_path / "there")
    shutil.copy(tmp_path / "there", tmp_path / "here")
    assert what_is_wrong(tmp_path / "here", known) is None


# --- Whose a directory is --------------------------------------------------------------------------------------------


def experiment(**changes: Any) -> Experiment:
    fields: dict[str, Any] = {"schemes": parse_contenders("cubic,bbr"), "runs": 2, "runtime_ns": 2 * 10**9, **changes}
    return Experiment(**{"path": PATH, **fields})


def claimed(directory: Path, made: Experiment, may_differ: tuple[str, ...] = ()) -> None:
    with RunStore(directory, "evaluation"):
        claim(directory, made.parameters(), may_differ=may_differ)


@pytest.mark.parametrize(
    "change",
    [
        {"runs": 3},
        {"seed": 5},
        {"schemes": contenders(["cubic"])},
        {"schemes": contenders([{"name": "cubic", "flows": ["bbr"]}, "bbr"])},
        {"runtime_ns": 3 * 10**9},
        {"path": NetworkPath(rate="13mbps", rtt="20ms", queue="20p", name="test")},
    ],
)
def test_another_experiment_in_the_same_directory_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    claimed(tmp_path, experiment())
    with refused(ResultsError, "directory-taken"):
        claimed(tmp_path, experiment(**change))
    claimed(tmp_path, experiment(**change), tuple(experiment(**change).parameters()))
    assert held_parameters(tmp_path) == json.loads(json.dumps(experiment(**change).parameters()))


def test_differences_name_the_place() -> None:
    assert differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "d": 4}) == [
        "a.b: 1 there, 3 here",
        "c: only there",
        "d: only here",
    ]


@pytest.mark.parametrize("kind", list(MARKERS))
@pytest.mark.parametrize("other", list(MARKERS))
def test_two_kinds_of_results_are_never_mixed(kind: Kind, other: Kind, tmp_path: Path) -> None:
    (tmp_path / MARKERS[other][0]).touch()
    if kind == other:
        refuse_other_kinds(tmp_path, kind)
        return
    with refused(ResultsError, f"directory-taken at {tmp_path}"):
        refuse_other_kinds(tmp_path, kind)


@pytest.mark.parametrize("text", ["", "{", '{"format": "other"}', "[]", "[" * 100_000, '{"hash": ' + "1" * 5001 + "}"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST_FILE).write_text(text)
    assert held_parameters(tmp_path) == {}
    with refused(ResultsError, "directory-taken"):
        claimed(tmp_path, experiment())


def test_results_without_a_manifest_are_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "0123.json").write_text("{}")
    with refused(ResultsError, "directory-taken"):
        claimed(tmp_path, experiment())
