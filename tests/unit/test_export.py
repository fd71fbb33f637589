"""From a trained policy to a graph: torch in float32 and float64, the native core, the card, and what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from ccgym.errors import ConfigError
from ccgym.schemes import policies
from ccgym.schemes.policy_card import PolicyCard
from ccgym.training.parity import TOLERANCE, Parity, ParityError, Trajectories, actions_of, differences
from ccgym.training.torch_policy import Normalizer, TorchPolicy
from tests.refusals import refused

FEATURES = 2
STEADY = Path(__file__).parent / "data" / "policies" / "steady.onnx"

AGENT: dict[str, Any] = {
    "name": "steady",
    "clock": {"kind": "rtt", "multiple": 1.0},
    "observation": {
        "features": [
            {"signal": "latency_ratio", "clip": [1.0, 100.0], "empty": 1.0},
            {"signal": "loss_fraction", "clip": [0.0, 1.0]},
        ]
    },
    "action": {"map": {"kind": "signed_multiply", "delta": 0.05}, "target": "rate"},
    "reward": {"terms": [{"term": "loss", "weight": -1.0}]},
    "startup": {"kind": "rate", "rate": 1_000_000},
}
"""An agent with two features and one action."""


def torch_policy(
    actions: spaces.Space[Any] | None = None,
    *,
    recurrent: bool = False,
    normalizer: Normalizer | None = None,
    **settings: Any,
) -> TorchPolicy:
    """A policy with random weights, large enough for answers all over the range."""
    torch.manual_seed(1)
    make = RecurrentActorCriticPolicy if recurrent else ActorCriticPolicy
    box = spaces.Box(-1, 1, (1,), np.float32)
    policy = make(spaces.Box(-100, 100, (FEATURES,), np.float32), actions or box, lambda _: 0.0, **settings)
    with torch.no_grad():
        for weights in policy.parameters():
            weights.mul_(2.0)
        policy.action_net.weight.mul_(20.0)
    return TorchPolicy(policy, normalizer)


def steady_policy() -> TorchPolicy:
    """A policy that can be understood: faster while the queue adds less than a fifth of the round trip."""
    space = spaces.Box(-100, 100, (FEATURES,), np.float32)
    policy = ActorCriticPolicy(space, spaces.Box(-1, 1, (1,), np.float32), lambda _: 0.0, net_arch=[1])
    with torch.no_grad():
        first, last = policy.mlp_extractor.policy_net[0], policy.action_net
        first.weight.copy_(torch.tensor([[-10.0, -10.0]]))
        first.bias.fill_(12.0)
        last.weight.fill_(1.0)
        last.bias.fill_(0.0)
    return TorchPolicy(policy)


def card_of(policy: TorchPolicy, network: bytes, **changes: Any) -> PolicyCard:
    agent = json.loads(json.dumps(AGENT))
    if policy.bounds is None:
        agent["action"]["map"] = {"kind": "discrete", "operations": ["/2", "+0", "*2"]}
    values: dict[str, Any] = {
        "name": "steady",
        "label": "Steady",
        "color": "teal",
        "marker": "D",
        "summary": "Sends faster until the queue adds a fifth of the round trip.",
        "reference": "none: a test",
        "agent": agent,
        "policy": policy.shape,
        "onnx_sha256": hashlib.sha256(network).hexdigest(),
        "training": {"config": {"name": "steady"}},
    }
    return PolicyCard(**{**values, **changes})


def native(policy: TorchPolicy) -> Any:
    network = policy.onnx("test")
    return policies.from_parts(network, card_of(policy, network), Path("test.onnx")).native


def test_the_committed_policy_is_what_is_built() -> None:
    """The policy that the tests of evaluation run, which need no torch."""
    network = steady_policy().onnx("steady")
    card = card_of(steady_policy(), network)
    assert STEADY.read_bytes() == network
    assert STEADY.with_suffix(".json").read_text(encoding="utf-8") == card.to_json()


# --- The graph -----------------------------------------------------------------------------------------------------

NORMALIZER = Normalizer(np.array([1.5, -3.0]), np.array([0.7, 1e-4]), 10.0)
THREE = spaces.Discrete(3)

POLICIES: dict[str, Callable[[], TorchPolicy]] = {
    "tanh": lambda: torch_policy(net_arch=[32, 16]),
    "relu": lambda: torch_policy(net_arch=[16], activation_fn=nn.ReLU),
    "elu": lambda: torch_policy(net_arch=[16], activation_fn=nn.ELU),
    "silu": lambda: torch_policy(net_arch=[16], activation_fn=nn.SiLU),
    "leaky relu": lambda: torch_policy(net_arch=[16], activation_fn=nn.LeakyReLU),
    "sigmoid": lambda: torch_policy(net_arch=[16], activation_fn=nn.Sigmoid),
    "linear": lambda: torch_policy(net_arch=[]),
    "normalized": lambda: torch_policy(normalizer=NORMALIZER),
    "discrete": lambda: torch_policy(THREE, net_arch=[16]),
    "lstm": lambda: torch_policy(recurrent=True, lstm_hidden_size=8, net_arch=[]),
    "two-layer lstm": lambda: torch_policy(
        THREE, recurrent=True, lstm_hidden_size=8, n_lstm_layers=2, net_arch=[16], normalizer=NORMALIZER
    ),
    "critic without lstm": lambda: torch_policy(recurrent=True, lstm_hidden_size=4, enable_critic_lstm=False),
}


@pytest.mark.parametrize("name", POLICIES)
def test_native_answers_are_torch_s(name: str) -> None:
    policy = POLICIES[name]()
    exported = native(policy)
    rng = np.random.default_rng(5)
    states: list[Any] = [None, None, None]
    seen = []
    for _ in range(50):
        # Three flows at a time, each with a state of its own.
        observations = (rng.normal(size=(3, FEATURES)) * 3).astype(np.float32)
        exact, states[0] = policy.decide(observations, states[0])
        trained, states[1] = policy.decide_as_trained(observations, states[1])
        found, states[2] = exported.decide(observations, states[2])
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, actions_of(exact, 1))
        assert differences(trained, found).max() <= TOLERANCE
        if policy.shape.state_size:
            np.testing.assert_array_equal(states[2], states[0])
        else:
            assert states[2] is None
        seen.append(found)
    assert np.ptp(seen) > 0.1


def test_answers_stay_in_the_action_s_bounds() -> None:
    policy = torch_policy(spaces.Box(np.float32([-1]), np.float32([0.25]), dtype=np.float32), net_arch=[])
    observations = (np.random.default_rng(2).normal(size=(200, FEATURES)) * 50).astype(np.float32)
    answers, _ = native(policy).decide(observations, None)
    assert (answers.min(), answers.max()) == (-1.0, 0.25)


def test_a_feature_far_away_is_clipped_as_in_training() -> None:
    policy = torch_policy(normalizer=NORMALIZER)
    far = np.array([[1e30, -1e30]], dtype=np.float32)
    limit = np.array([[1.5 + 7.0, -3.0 - 1e-3]])
    exact, _ = policy.decide(far)
    np.testing.assert_array_equal(exact, native(policy).decide(far, None)[0])
    np.testing.assert_allclose(exact, policy.decide(limit.astype(np.float32))[0], atol=1e-3)


def test_the_graph_runs_elsewhere() -> None:
    """The same answers from the reference evaluator of the format's authors."""
    from onnx.reference import ReferenceEvaluator

    policy = POLICIES["two-layer lstm"]()
    session = ReferenceEvaluator(policy.onnx("test"))
    observations = np.random.default_rng(3).normal(size=(4, FEATURES)).astype(np.float32)
    state = np.zeros((4, policy.shape.state_size), dtype=np.float32)
    answers, after = session.run(None, {"observation": observations, "state": state})
    expected, expected_after = policy.decide(observations)
    np.testing.assert_allclose(answers, expected, rtol=1e-6)
    np.testing.assert_allclose(after, expected_after, rtol=1e-6)


# --- What cannot be exported ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"activation_fn": nn.Softplus}, "policy-unsuitable"),
        ({"use_sde": True, "squash_output": True}, "policy-unsuitable"),
        ({"actions": spaces.MultiDiscrete([2, 2])}, "policy-unsuitable"),
        ({"recurrent": True, "lstm_kwargs": {"bias": False}}, "policy-unsuitable"),
        ({"normalizer": Normalizer(np.zeros(5), np.ones(5), 10.0)}, "shape-mismatch"),
    ],
)
def test_parts_that_cannot_be_exported(change: dict[str, Any], word: str) -> None:
    with refused(ConfigError, word):
        torch_policy(**change)


# --- Parity --------------------------------------------------------------------------------------------------------

FINE = Parity(5, 100, 3e-7, 0, (Trajectories("a", "a"), Trajectories("b", "b")))


def test_parity_passes_or_says_why() -> None:
    FINE.require("run")
    assert FINE.as_dict()["max_abs_difference"] == 3e-7
    for change in (
        {"max_abs_difference": 2e-5},
        {"max_abs_difference": float("inf")},
        {"max_abs_difference": float("nan")},
        {"inexact": 1},
        {"trajectories": (Trajectories("a", "b"),)},
    ):
        with refused(ParityError, "policy-differs at run"):
            replace(FINE, **change).require("run")  # type: ignore[arg-type]


def test_scores_become_the_number_of_an_operation() -> None:
    scores = np.array([[0.1, 0.3, 0.2], [5.0, 5.0, -1.0]], dtype=np.float32)
    np.testing.assert_array_equal(actions_of(scores, 1), [[1.0], [0.0]])
    np.testing.assert_array_equal(actions_of(scores, 3), scores)


def test_differences() -> None:
    trained = np.array([[0.5], [-200.0]], dtype=np.float32)
    np.testing.assert_allclose(differences(trained, trained + 1), [[1.0], [0.005]])
    scores = np.array([[0.0, 4.0, 3.0], [0.5, 0.25, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(differences(scores, np.float32([[2], [0]])), [[0.25], [0.0]])
