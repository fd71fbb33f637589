"""The search for rule tables (tools/remy.py)."""

from __future__ import annotations

import importlib
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.schemes.choice import SchemeChoice
from ccgym.schemes.origins import check
from tests.unit.test_tools import TOOLS

pytestmark = pytest.mark.long

sys.path.insert(0, str(TOOLS))  # a folder of scripts and no package
remy: Any = importlib.import_module("remy")
sys.path.remove(str(TOOLS))
OURS = TOOLS.parent / "schemes" / "src" / "taova" / "ours.dna"


def memories(*receipts: tuple[int | None, ...]) -> list[tuple[float, ...]]:
    """The memories after packets that were sent, arrived and were acknowledged at these milliseconds; None: lost."""
    ns = [[remy.NEVER if ms is None else round(ms * 1e6) for ms in receipt] for receipt in receipts]
    sent, arrived, back = (np.array(column, dtype=np.uint64) for column in zip(*ns, strict=True))
    found: list[tuple[float, ...]] = remy.remembered(sent, arrived, back[arrived != remy.NEVER])
    return found


@pytest.mark.parametrize(
    ("receipts", "expected"),
    [
        ([(0, 50, 100)], (0, 0, 0, 0)),
        ([(0, 50, 100), (8, 66, 116)], (1, 2, 1.08, 0.0625)),
        ([(0, 50, 100), (4, None, None), (8, 66, 208)], (0, 0, 2, 0)),
        ([(0, 50, 100), (4, None, None), (8, 66, 208), (16, 82, 216)], (2, 4, 2, 0.125)),
        ([(0, 50, 100), (8, 66, 116), (300, 350, 400)], (0, 0, 0, 0)),
    ],
)
def test_memories_are_those_of_the_scheme(receipts: list[tuple[int | None, ...]], expected: tuple[float, ...]) -> None:
    """The cases of ``memory.rs``, and a sender that begins anew after a pause."""
    assert memories(*receipts)[-1] == pytest.approx(expected)


def test_the_start_is_a_table(tmp_path: Path) -> None:
    state = remy.start()
    file = tmp_path / "start.dna"
    file.write_bytes(remy.encode(state.tree, state.rules))
    assert check(SchemeChoice("taova", {"table": str(file)})).files["table"].given == str(file)
    points = np.array([[0, 0, 0, 0], [0.3, 0.3, 1.0, 0.3], [0.3, 0.3, 1.3, 0.3], [9e4, 9e4, 9e4, 9e4]])
    assert [sum(rule.holds(points)[i] for rule in state.rules) for i in range(4)] == [1, 1, 1, 1]


def test_a_division_shares_the_box() -> None:
    rule = remy.Rule((0.0,) * 4, (8.0,) * 4, 10, 0.9, 1.0)
    low, high = rule.divided(1, 2.0)
    assert (low.lower, low.upper) == (rule.lower, (8.0, 2.0, 8.0, 8.0))
    assert (high.lower, high.upper) == ((0.0, 2.0, 0.0, 0.0), rule.upper)
    tree = remy._branched([[[0] * 4, [9] * 4], [0, 1]], 1, [[[0] * 4, [9] * 4], [1, 2]])
    assert tree[1] == [0, [[[0] * 4, [9] * 4], [1, 2]]]


def test_the_score_is_log_throughput_less_log_delay() -> None:
    judge = remy.Judge(2, 2, 1)
    runs = remy.simulate_many(judge._jobs({"scheme": "cubic"}), record=remy.Record(packets=True, series="0s"))
    values = []
    for run in runs:
        for flow in run.counters["flows"]:
            mbps = flow["received_unique_bytes"] * 8 / 2e6
            values.append(math.log(mbps / (150 + run.link.mean_queue_delay_ms)))
    assert judge.scores([{"scheme": "cubic"}] * 2) == pytest.approx([np.mean(values)] * 2)


def test_a_search_improves_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    judge = remy.Judge(3, 2, 1)
    whole = remy.Search(judge, remy.start(), tmp_path)
    for _ in range(6):
        whole.round()
    state = whole.state
    assert state.history == sorted(state.history)
    assert state.history[-1] > judge.scores([whole.flow(0, remy.start().tree, remy.start().rules)])[0]
    parts = remy.start()
    for _ in range(6):
        file = tmp_path / "state.json"
        file.write_text(json.dumps(asdict(parts)))
        search = remy.Search(judge, remy.load(file), tmp_path)
        search.round()
        parts = search.state
    assert parts == state
    assert remy.listing(state, "command").startswith(f"# command\n# round 6, score {state.score:.4f}")


def test_the_committed_table_is_that_of_its_listing() -> None:
    """Each rule of the listing is in the file, with its numbers."""
    lines = OURS.with_suffix(".txt").read_text().splitlines()
    content = OURS.read_bytes()
    assert len(lines[3:]) == int(lines[1].split()[-2])
    for line in lines[3:]:
        words = line.split()
        multiple, gap = float(words[3]), float(words[8])
        for value in (multiple, gap):
            assert remy._double(32, value)[2:] in content, line
