"""The top of a decision tree: its first splits, and the most frequent actions below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ccgym.report.figures import figure
from ccgym.report.layout import add_title
from ccgym.report.style import INK, MUTED, new_figure

WIDTH_IN: Final = 12.0
LEVEL_IN: Final = 1.15
MAX_LEVELS: Final = 5
"""Max rows of splits: more would not be legible on a page."""
_PALETTE: Final = ("#b2182b", "#ef8a62", "#d9d9d9", "#67a9cf", "#2166ac")


@dataclass(frozen=True)
class DecisionTree:
    """A decision tree in the form that figures draw."""

    nodes: Sequence[Mapping[str, Any]]
    """``{"split": {feature, threshold, at_most, above}}`` or ``{"leaf": action}``, the root first."""
    visits: npt.NDArray[np.float64]
    """Number of training decisions that reached each node."""
    features: Sequence[str]
    """Names of the inputs."""
    actions: Sequence[str]
    """Names of the actions."""

    def shares(self) -> npt.NDArray[np.float64]:
        """Return the share of each action in the decisions of each node: (nodes, actions), rows sum to 1."""
        counts = np.zeros((len(self.nodes), len(self.actions)))
        for place in range(len(self.nodes) - 1, -1, -1):  # children come after their parents
            node = self.nodes[place]
            if "leaf" in node:
                counts[place, node["leaf"]] = max(self.visits[place], 1e-9)
            else:
                split = node["split"]
                counts[place] = counts[split["at_most"]] + counts[split["above"]]
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


@figure("decision_tree", "the top of a decision tree", page="command")
def tree_figure(tree: DecisionTree, *, title: str = "", levels: int = 4) -> Figure:
    """Draw the first splits of a tree, and below each branch a bar with the share of each action in its decisions.
    Call within :func:`ccgym.report.style.house_style`.

    Args:
        tree: The tree.
        title: Its name.
        levels: Rows of splits, at most :data:`MAX_LEVELS`.
    """
    drawing, axes = new_figure(WIDTH_IN, LEVEL_IN * (levels + 1) + 0.9)
    axes.set_position((0.01, 0.02, 0.98, 0.9))
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(-levels - 0.55, 0.45))
    _draw(axes, tree, tree.shares(), 0, 0.5, 0, levels)
    for action, (name, color) in enumerate(zip(tree.actions, _colors(len(tree.actions)), strict=True)):
        left = 0.02 + 0.075 * action
        axes.add_patch(_box(left, 0.2, 0.018, 0.13, color))
        axes.text(left + 0.023, 0.265, name, va="center", color=INK, fontsize=9)
    leaves = sum("leaf" in node for node in tree.nodes)
    add_title(drawing, f"{title}: the first splits of a tree with {leaves:,} leaves".removeprefix(": "))
    return drawing


def _draw(
    axes: Axes, tree: DecisionTree, shares: npt.NDArray[np.float64], place: int, x: float, level: int, levels: int
) -> None:
    node, width = tree.nodes[place], 0.9 / 2**level
    if "leaf" in node or level == levels:
        _bar(axes, tree, shares[place], x, -level + 0.18, min(0.86 * 1.0 / 2**level, 0.12), leaf="leaf" in node)
        return
    split = node["split"]
    words = f"{tree.features[split['feature']]}\n≤ {split['threshold']:.3g}"
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": MUTED, "linewidth": 0.8}
    axes.text(x, -level, words, ha="center", va="center", fontsize=9 if level < 3 else 7, color=INK, zorder=3, bbox=box)
    for child, side, word in ((split["at_most"], -1, "yes"), (split["above"], 1, "no")):
        there = x + side * width / 4 * 1.08
        part = tree.visits[child] / max(tree.visits[0], 1e-9)
        axes.plot([x, there], [-level, -level - 0.78], color=MUTED, linewidth=0.6 + 5 * part, zorder=1)
        if level < 3:
            plain = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            words = f"{word}, {100 * part:.0f} %"
            middle, below = (x + there) / 2, -level - 0.44
            axes.text(middle, below, words, ha="center", va="center", fontsize=7, color=INK, zorder=2, bbox=plain)
        _draw(axes, tree, shares, child, there, level + 1, levels)


def _bar(
    axes: Axes, tree: DecisionTree, shares: npt.NDArray[np.float64], x: float, top: float, width: float, *, leaf: bool
) -> None:
    """Draw the shares of the actions, and the name of the most frequent action."""
    left = x - width / 2
    for share, color in zip(shares, _colors(len(tree.actions)), strict=True):
        axes.add_patch(_box(left, top - 0.14, share * width, 0.14, color))
        left += share * width
    most = int(shares.argmax())
    words = tree.actions[most] if leaf else f"{tree.actions[most]}\n{100 * shares[most]:.0f} %"
    axes.text(x, top - 0.19, words, ha="center", va="top", fontsize=7, color=INK)


def _box(left: float, bottom: float, width: float, height: float, color: str) -> Rectangle:
    return Rectangle((left, bottom), width, height, facecolor=color, edgecolor="none", zorder=3)


def _colors(count: int) -> list[str]:
    return [_PALETTE[round(place * (len(_PALETTE) - 1) / max(1, count - 1))] for place in range(count)]
