"""Trees: scikit-learn's, ours, and the native core's decide alike; rounds of distillation; what is refused."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from gymnasium import spaces
from sklearn.tree import DecisionTreeClassifier

from ccgym.contrib.bounds import Network, box
from ccgym.errors import ConfigError
from ccgym.schemes import policies
from ccgym.schemes.policy_card import PolicyCard
from ccgym.training.tree_policy import TreePolicy, rounded_down
from tests.refusals import refused
from tests.trainings import learner
from tests.unit.test_dagger import Labeled, a_round

FEATURES, ACTIONS = 4, 5
AGENT: dict[str, Any] = {
    "name": "tree",
    "clock": {"kind": "fixed", "interval": 10_000_000},
    "observation": {"features": [{"signal": "cwnd", "clip": [-1e6, 1e6]}], "history": FEATURES},
    "action": {"map": {"kind": "discrete", "operations": ["/2", "-1", "+0", "+1", "*2"]}, "target": "cwnd"},
    "reward": {"terms": [{"term": "loss", "weight": -1.0}]},
    "startup": {"kind": "window", "packets": 10},
}


def grown(seed: int, scale: float = 1.0, **settings: Any) -> tuple[DecisionTreeClassifier, np.ndarray]:
    """A tree of random labels that depend on the features, and the features."""
    rng = np.random.default_rng(seed)
    seen = (scale * rng.standard_normal((3000, FEATURES))).astype(np.float32)
    seen[::7] = np.round(seen[::7] / scale) * scale  # many equal values
    wanted = np.digitize(seen[:, 0] * seen[:, 1] + rng.normal(0, scale**2, 3000), scale**2 * np.array([-1, 0, 0.5, 1]))
    return DecisionTreeClassifier(random_state=seed, **{"min_samples_leaf": 3, **settings}).fit(seen, wanted), seen


def policy_of(tree: DecisionTreeClassifier | None = None) -> TreePolicy:
    made = TreePolicy(spaces.Box(-1e6, 1e6, (FEATURES,), np.float32), spaces.Discrete(ACTIONS))
    if tree is not None:
        made.become(tree)
    return made


def exported(policy: TreePolicy, **changes: Any) -> policies.LearnedPolicy:
    network = policy.onnx("tree")
    card = PolicyCard(
        name="tree", label="Tree", color="olive", marker="^", summary="A tree.", reference="none", agent=AGENT,
        policy=policy.shape, onnx_sha256=hashlib.sha256(network).hexdigest(), **changes,
    )  # fmt: skip
    return policies.from_parts(network, card, Path("tree.onnx"))


def at_the_thresholds(tree: DecisionTreeClassifier, seen: np.ndarray) -> np.ndarray:
    """Observations whose features are thresholds, or the float32 next to one: where rounding would show."""
    inner = tree.tree_.children_left >= 0
    rows = seen[np.random.default_rng(0).integers(0, len(seen), inner.sum() * 3)].copy()
    near = tree.tree_.threshold[inner].astype(np.float32)
    values = np.concatenate([near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))])
    rows[np.arange(len(rows)), np.tile(tree.tree_.feature[inner], 3)] = values
    return rows


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("seed", [1, 2])
def test_scikit_learn_ours_and_the_native_core_decide_alike(seed: int, scale: float) -> None:
    tree, seen = grown(seed, scale)
    policy = policy_of(tree)
    rows = np.concatenate([seen, at_the_thresholds(tree, seen)])
    wanted = tree.predict(rows)
    assert np.array_equal(policy.choose(rows), wanted)
    actions, state = exported(policy).native.decide(rows, None)
    assert np.array_equal(actions[:, 0], wanted)
    assert state is None
    assert len(set(wanted.tolist())) == ACTIONS
    scores, _ = policy.decide(rows)
    assert np.array_equal(scores.argmax(axis=1), wanted)
    assert policy.predict(rows[0])[0] == wanted[0]


def test_onnx_runtime_reads_the_file_too() -> None:
    """It is a file of the standard, not one of ours alone."""
    onnxruntime = pytest.importorskip("onnxruntime")
    tree, seen = grown(3)
    file = policy_of(tree).onnx("tree")
    onnx.checker.check_model(onnx.load(io.BytesIO(file)), full_check=True)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["action"], {"observation": seen})
    assert np.array_equal(scores.argmax(axis=1), tree.predict(seen))


def test_what_a_tree_can_choose_over_a_box_is_exact() -> None:
    tree, seen = grown(7)
    policy = policy_of(tree)
    network = Network(policy.onnx("tree"))
    rng = np.random.default_rng(1)
    sizes = set()
    for row in seen[:40].astype(np.float64):
        assert network.over(box(row, 0.0)).center.argmax() == policy.choose(row[None].astype(np.float32))[0]
        radius = 0.05 * np.abs(row)
        low, high = network.over(box(row, radius)).bounds()
        points = (row + radius * rng.uniform(-1, 1, (2000, FEATURES))).astype(np.float32)
        chosen = set(policy.choose(points).tolist())
        possible = set(np.flatnonzero(high > 0.1).tolist())
        assert chosen <= possible
        assert low[sorted(possible)].min() > high[sorted(set(range(ACTIONS)) - possible)].max(initial=0.0)
        sizes.add(len(possible))
    assert {1, 2} <= sizes


def test_thresholds_are_rounded_down() -> None:
    thresholds = np.array([0.1, 0.5, -0.1, 1e-50, -1e-50, 16777217.0, 0.0])
    rounded = rounded_down(thresholds)
    assert rounded.dtype == np.float32
    assert (rounded <= thresholds).all()
    assert (np.nextafter(rounded, np.float32(np.inf)) > thresholds).all()


def test_leaves_that_agree_are_merged() -> None:
    tree, seen = grown(4)
    policy = policy_of(tree)
    assert policy.leaves < tree.get_n_leaves()
    assert policy.depth <= tree.get_depth()
    feature, action = policy.feature.numpy(), policy.action.numpy()
    for node in np.flatnonzero(feature >= 0):
        below = [int(policy.at_most[node]), int(policy.above[node])]
        assert min(below) > node
        assert not (feature[below] < 0).all() or action[below[0]] != action[below[1]]
    assert int(policy.decisions[0]) == len(seen)
    assert ((policy.share > 0) & (policy.share <= 1)).all()


def test_a_tree_of_one_leaf_holds() -> None:
    policy = policy_of()
    assert (policy.leaves, policy.depth) == (1, 0)
    rows = np.zeros((3, FEATURES), np.float32)
    assert exported(policy).native.decide(rows, None)[0].tolist() == [[2.0]] * 3


def test_weights_of_another_size_are_taken_over() -> None:
    tree, seen = grown(5)
    one, other = policy_of(tree), policy_of()
    other.load_state_dict(one.state_dict())
    assert np.array_equal(other.choose(seen), one.choose(seen))
    assert all(torch.equal(one.state_dict()[name], value) for name, value in other.state_dict().items())


def test_actions_must_be_a_list() -> None:
    with refused(ConfigError, "agent-unsuitable at algorithm.name: distill"):
        TreePolicy(spaces.Box(-1, 1, (2,), np.float32), spaces.Box(-1, 1, (1,), np.float32))


def test_acknowledgements_are_part_of_the_card() -> None:
    policy = policy_of()
    one, other = exported(policy), exported(policy, ack_every=2)
    assert one.digest != other.digest
    assert one.card.ack_every == 1


# --- Rounds ----------------------------------------------------------------------------------------------------------


def test_a_tree_learns_in_rounds() -> None:
    env = Labeled([10, 5, 10, 2], silent=lambda step: step % 9 == 4)
    model = learner("distill", env, min_leaf=1, min_split=2, n_steps=10)
    first = a_round(model, env)
    assert {int(action) for row in first for action in row} == {1, 2}
    for _ in range(4):
        a_round(model, env)
    policy = model.policy
    assert isinstance(policy, TreePolicy)
    assert policy.leaves == 2
    assert model.buffer.decisions == 5 * 40
    assert policy.choose(np.array([[0.9, 0.0], [-0.9, 0.5]], np.float32)).tolist() == [2, 1]
