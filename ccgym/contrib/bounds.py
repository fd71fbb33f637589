"""Bounds on the answers of an exported network for all inputs in a box.

Every value of the graph is an *affine form*: a center, plus a sum of symbols, each with any value in [−1, 1], times
coefficients. Sums and matrix products of affine forms are exact. An operation that is not affine is replaced by a
straight line, and the largest distance from this line becomes a new symbol (for tanh and sigmoid, the line of Singh et
al., "Fast and Effective Robustness Certification", NeurIPS 2018). So the bounds are *sound*: no input of the box gives
an answer outside the bounds. They are not tight: some answers within the bounds may be impossible. Values keep their
common symbols. So bounds on the difference of two scores are much closer than the difference of their bounds.

For a decision tree, all leaves that an input of the box reaches are visited: the set of possible actions
is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from ccgym.errors import ConfigError

Numbers = npt.NDArray[np.float64]

ROUNDING: Final = 1e-6
"""Widening of bounds, relative to max(1, |bound|): answers are float32, and float64 rounds, too."""


@dataclass(frozen=True)
class Form:
    """Numbers that depend on symbols from [−1, 1]."""

    center: Numbers
    """Values with all symbols zero; length n."""
    terms: Numbers
    """Coefficients, a row per symbol: k × n. Symbols after the last row have coefficient 0."""

    @property
    def radius(self) -> Numbers:
        """Largest distance of each number from its center."""
        found: Numbers = np.abs(self.terms).sum(axis=0)
        return found

    def bounds(self) -> tuple[Numbers, Numbers]:
        """Return minimum and maximum of each number, widened by :data:`ROUNDING`."""
        low, high = self.center - self.radius, self.center + self.radius
        return low - ROUNDING * np.maximum(1, np.abs(low)), high + ROUNDING * np.maximum(1, np.abs(high))

    def __add__(self, other: Form) -> Form:
        return Form(self.center + other.center, _sum(self.terms, other.terms, len(self.center), len(other.center)))

    def __neg__(self) -> Form:
        return Form(-self.center, -self.terms)

    def __sub__(self, other: Form) -> Form:
        return self + -other

    def times(self, factor: Numbers) -> Form:
        """Return each number times a constant."""
        return Form(self.center * factor, self.terms * factor)

    def through(self, matrix: Numbers) -> Form:
        """Return the row of numbers times a matrix."""
        return Form(self.center @ matrix, self.terms @ matrix)


def _sum(one: Numbers, other: Numbers, *widths: int) -> Numbers:
    made = np.zeros((max(len(one), len(other)), max(widths)))
    made[: len(one)] += one
    made[: len(other)] += other
    return made


class Network:
    """The graph of an exported policy, for evaluation over boxes.

    Args:
        content: The ``.onnx`` file.

    Raises:
        ConfigError: The graph has an operation that exported policies do not have.
    """

    def __init__(self, content: bytes) -> None:
        graph = onnx.load_model_from_string(content).graph
        self._constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        self._nodes = list(graph.node)
        if unknown := sorted({node.op_type for node in self._nodes} - _OPERATIONS.keys()):
            raise ConfigError(
                "policy-unsuitable", f"the operation {unknown[0]}", expected=f"one of {', '.join(_OPERATIONS)}"
            )

    def over(self, observation: Form, state: Numbers | None = None) -> Form:
        """Return the answer: an action, or a score per operation of a discrete policy.

        Args:
            observation: The possible observations.
            state: The state of a recurrent policy, as exact numbers.
        """
        known = {"observation": observation} | ({} if state is None else {"state": constant(state)})
        values = _Values(self._constants, known)
        for node in self._nodes:
            made = _OPERATIONS[node.op_type](values, node, *(values.form(name) for name in node.input))
            values.forms.update(zip(node.output, made if isinstance(made, list) else [made], strict=True))
        return values.forms["action"]


def box(center: npt.ArrayLike, radius: npt.ArrayLike) -> Form:
    """Return the form of numbers that are each independently within a radius of a center."""
    at = np.asarray(center, dtype=np.float64)
    return Form(at, np.diag(np.broadcast_to(np.asarray(radius, dtype=np.float64), at.shape)))


def constant(value: npt.ArrayLike) -> Form:
    """Return the form of constant numbers."""
    at = np.asarray(value, dtype=np.float64).reshape(-1)
    return Form(at, np.zeros((0, len(at))))


class _Values:
    """The computed forms of a graph's values; each new symbol gets the next number."""

    def __init__(self, constants: Mapping[str, Any], forms: dict[str, Form]) -> None:
        self.constants = constants
        self.forms = forms
        self._symbols = max(len(one.terms) for one in forms.values())

    def form(self, name: str) -> Form:
        """Return a value, computed or constant."""
        return self.forms[name] if name in self.forms else constant(self.constants[name])

    def uncertain(self, form: Form, radius: Numbers) -> Form:
        """Return a form with one new symbol per number."""
        terms = np.zeros((self._symbols + len(radius), len(radius)))
        terms[: len(form.terms)] = form.terms
        terms[self._symbols :] = np.diag(radius)
        self._symbols += len(radius)
        return Form(form.center, terms)

    def line(self, of: Form, slope: Numbers, low: Numbers, high: Numbers) -> Form:
        """Return ``slope · x`` plus any value from ``low`` to ``high``."""
        sloped = of.times(slope)
        return self.uncertain(Form(sloped.center + (low + high) / 2, sloped.terms), (high - low) / 2)


def _known(form: Form) -> Numbers:
    assert not form.terms.any(), "exported graphs limit and divide by constants only"
    return form.center


def _product(values: _Values, _: Any, left: Form, right: Form) -> Form:
    if not left.terms.any():
        left, right = right, left
    if not right.terms.any():
        return left.times(right.center)
    width = max(len(left.center), len(right.center))
    both = _sum(left.terms * right.center, right.terms * left.center, width)
    made = Form(left.center * right.center, both)
    return values.uncertain(made, np.broadcast_to(left.radius * right.radius, (width,)))


def _s_shaped(curve: Callable[[Numbers], Numbers], slope: Callable[[Numbers], Numbers]) -> Callable[..., Form]:
    """Return the operation for tanh or the sigmoid: on any interval, their slope is smallest at one end."""

    def apply(values: _Values, _: Any, of: Form) -> Form:
        low, high = of.center - of.radius, of.center + of.radius
        least = np.minimum(slope(low), slope(high))
        # The part above the line grows with x, since the curve is nowhere in the interval flatter than the line.
        return values.line(of, least, curve(low) - least * low, curve(high) - least * high)

    return apply


def _exponential(values: _Values, _: Any, of: Form) -> Form:
    low, high = of.center - of.radius, of.center + of.radius
    wide = high - low > 1e-12
    chord = np.where(wide, (np.exp(high) - np.exp(low)) / np.where(wide, high - low, 1), np.exp(low))
    touching = np.clip(np.log(np.maximum(chord, 1e-300)), low, high)
    above = np.maximum(np.exp(low) - chord * low, np.exp(high) - chord * high)
    return values.line(of, chord, np.exp(touching) - chord * touching, above)


def _larger(values: _Values, _: Any, one: Form, other: Form) -> Form:
    """Return the larger of a form and a constant."""
    kink = _known(other)
    low, high = one.center - one.radius - kink, one.center + one.radius - kink
    crossing = (low < 0) & (high > 0)
    slope = np.where(crossing, high / np.where(crossing, high - low, 1), (low >= 0).astype(np.float64))
    gap = np.where(crossing, -slope * low, 0.0)
    # max(x, kink) is the kink plus the part above it: between slope · (x − kink) and slope · (x − kink) plus the gap.
    base = kink * (1 - slope)
    return values.line(one, slope, base, base + gap)


def _split(values: _Values, node: Any, of: Form, _: Form) -> list[Form]:
    edges = np.cumsum([0, *values.constants[node.input[1]]])
    return [Form(of.center[low:high], of.terms[:, low:high]) for low, high in pairwise(edges)]


def _join(_: _Values, __: Any, *parts: Form) -> Form:
    rows = max(len(part.terms) for part in parts)
    padded = [np.pad(part.terms, ((0, rows - len(part.terms)), (0, 0))) for part in parts]
    return Form(np.concatenate([part.center for part in parts]), np.concatenate(padded, axis=1))


def _tree(values: _Values, node: Any, of: Form) -> list[Form]:
    """Return the scores: 1 for the only possible action; if several actions are possible, any score from 0.2 to 1 for
    each of them; 0 for all others."""
    given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    leaves = dict(zip(given["class_nodeids"], given["class_ids"], strict=True))
    features, thresholds = given["nodes_featureids"], given["nodes_values"]
    low, high = of.center - of.radius, of.center + of.radius
    reached, waiting = set(), [0]
    while waiting:
        at = waiting.pop()
        if at in leaves:
            reached.add(leaves[at])
            continue
        if low[features[at]] <= thresholds[at]:
            waiting.append(given["nodes_truenodeids"][at])
        if high[features[at]] > thresholds[at]:
            waiting.append(given["nodes_falsenodeids"][at])
    possible = np.isin(np.arange(len(given["classlabels_int64s"])), sorted(reached)).astype(np.float64)
    alone = len(reached) == 1
    scores = constant(possible) if alone else values.uncertain(constant(0.6 * possible), 0.4 * possible)
    return [scores, scores]  # the label is not used


def _sigmoid(x: Numbers) -> Numbers:
    found: Numbers = 0.5 * (1 + np.tanh(0.5 * x))
    return found


_OPERATIONS: Final[Mapping[str, Callable[..., Form | list[Form]]]] = {
    "Add": lambda _, __, one, other: one + other,
    "Cast": lambda _, __, of: of,
    "Concat": _join,
    "Div": lambda _, __, of, by: of.times(1 / _known(by)),
    "Exp": _exponential,
    "MatMul": lambda values, node, of, _: of.through(values.constants[node.input[1]]),
    "Max": _larger,
    "Min": lambda values, node, one, other: -_larger(values, node, -one, -other),
    "Mul": _product,
    "Sigmoid": _s_shaped(_sigmoid, lambda x: _sigmoid(x) * (1 - _sigmoid(x))),
    "Split": _split,
    "Sub": lambda _, __, one, other: one - other,
    "Tanh": _s_shaped(np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "TreeEnsembleClassifier": _tree,
}
"""Operations of exported graphs (:mod:`ccgym.training.onnx_graph`): functions of the computed values, the node, and the
forms of its inputs, which return the forms of its outputs."""
