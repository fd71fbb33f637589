"""The figure of a decision tree, and the command that draws it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from ccgym.cli.main import main
from ccgym.report.figures.decision_tree import DecisionTree, tree_figure
from ccgym.report.style import house_style
from tests.unit.test_distill import exported, grown, policy_of

SPLIT = {"feature": 0, "threshold": 0.25, "at_most": 1, "above": 2}
NODES = [
    {"split": SPLIT},
    {"leaf": 2},
    {"split": {**SPLIT, "feature": 1, "threshold": 1.5, "at_most": 3, "above": 4}},
    {"leaf": 0},
    {"leaf": 1},
]
TREE = DecisionTree(NODES, np.array([100.0, 60.0, 40.0, 10.0, 30.0]), ["queue", "loss"], ["/2", "+0", "*2"])


def texts(levels: int) -> list[str]:
    with house_style():
        drawn = tree_figure(TREE, title="Mine", levels=levels)
    return [text.get_text() for text in drawn.findobj(Text) if text.get_text()]  # type: ignore[attr-defined]


def test_shares_are_of_the_decisions_below() -> None:
    assert TREE.shares()[0].tolist() == pytest.approx([0.1, 0.3, 0.6])
    assert TREE.shares()[2].tolist() == pytest.approx([0.25, 0.75, 0.0])
    assert TREE.shares()[3].tolist() == [1.0, 0.0, 0.0]


def test_questions_answers_and_what_is_done() -> None:
    words = texts(2)
    for wanted in ("queue\n≤ 0.25", "loss\n≤ 1.5", "yes, 60 %", "no, 40 %", "yes, 10 %", "/2", "+0", "*2"):
        assert wanted in words
    assert any("3 leaves" in text and "Mine" in text for text in words)


def test_what_is_not_drawn_is_summed_up() -> None:
    words = texts(1)
    assert "loss\n≤ 1.5" not in words
    assert "+0\n75 %" in words


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A tree on disk, with its card."""
    policy = exported(policy_of(grown(1)[0]))
    file = tmp_path / "mine.onnx"
    file.write_bytes(policy_of(grown(1)[0]).onnx("tree"))
    file.with_suffix(".json").write_text(policy.card.to_json(), encoding="utf-8")
    return file


def test_the_command_draws(file: Path, tmp_path: Path) -> None:
    assert main(["plot", "tree", str(file), "-o", str(tmp_path / "deep" / "tree.png")]) == 0
    assert (tmp_path / "deep" / "tree.png").stat().st_size > 10_000
