"""Certificates: properties of a policy for every observation in a box, not only for tried observations.

There are two properties, similar to Canopy (arXiv 2412.10915, EuroSys 2026):

- *congested*: if the RTT was at least :data:`CONGESTED` times the minimum RTT, the decision does not raise
  rate or window;
- *clean*: if the RTT was at most :data:`CLEAN` times the minimum RTT, and nothing was lost, the decision does not lower
  them.

The policy runs episodes on paths of its own training, every second one with a Cubic flow. In every second
stretch of :data:`STRETCH` decisions, other actions replace its actions, toward a queue or toward an empty queue, so
that states that the policy avoids occur, too. Observations with a completely congested, or clean, history are the
centers of boxes. In a box, every measured number of the observation has any value within some percent of its center.
:mod:`ccgym.contrib.bounds` then bounds all answers of the network over the box. A box is *proven* if no answer
violates the property, *refuted* if a tried answer does, and otherwise *open*: the bounds are too wide for a decision.
For a network without memory, a proof covers every observation in the box. For a recurrent network, it covers only the
visited state; effects of noise on the state over several decisions are not covered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym import _core
from ccgym.config.agent import read_agent
from ccgym.contrib.bounds import Form, Network, box
from ccgym.envs.config import EnvironmentConfig
from ccgym.envs.settings import Settings
from ccgym.envs.simulated_batch import SimulatedBatch
from ccgym.errors import ConfigError
from ccgym.files import atomic_write
from ccgym.schemes.flow import flow_spec
from ccgym.schemes.policies import LearnedPolicy, card_file, read_card
from ccgym.training.config import DeploymentConfig

Floats = npt.NDArray[np.float32]

CONGESTED: Final = 2.0
"""Minimum ratio of an interval's mean RTT to the minimum RTT so far for a congested interval."""
CLEAN: Final = 1.05
"""Maximum of the same ratio for a clean interval."""
PASSES: Final = 0.95
"""Minimum fraction of proven boxes to pass."""
STRETCH: Final = 30
"""Number of successive decisions that are the policy's own, or are replaced."""
TOWARD: Final = (2.5, 1.02)
"""Targets of replaced decisions: mean RTT over the minimum RTT so far."""
ENDLESS: Final = 20.0
"""Maximum RTT over the minimum RTT: then an episode is stopped, since nothing limits its queue."""
PUSH: Final = 1.1
"""Size of the change in a replaced decision, if the policy has such an operation."""
TRIED: Final = 16
"""Number of a box's corners to search for a counterexample."""

_SEEN: Final = ("mean_rtt_s", "min_rtt_s", "loss_fraction")

WORDS: Final[Mapping[str, str]] = {
    "congested": f"after RTTs of at least {CONGESTED:g} × the minimum, the decision does not raise rate or window",
    "clean": f"after RTTs of at most {CLEAN:g} × the minimum, without loss, the decision does not lower rate or window",
}
"""Descriptions of the properties."""


@dataclass(frozen=True)
class Property:
    """Result for one property."""

    boxes: int
    """Number of examined boxes."""
    held: float
    """Fraction of the boxes whose center, a real observation, has the property."""
    proven: float
    """Fraction of the boxes that have the property everywhere."""
    refuted: float
    """Fraction of the boxes with a found violation."""

    @property
    def open(self) -> float:
        """Fraction of the boxes with bounds that are too wide for a decision."""
        return abs(1 - self.proven - self.refuted)

    @property
    def passed(self) -> bool | None:
        """Whether enough boxes are proven; None if the policy never was in such a state."""
        return self.proven >= PASSES if self.boxes else None


@dataclass(frozen=True)
class Certificate:
    """Results for a policy."""

    noise: float
    """Half the width of a box, as a fraction of the number in its center."""
    episodes: int
    decisions: int
    """Number of decisions in all episodes; the centers were drawn from them."""
    seed: int
    sound_for: str
    """Coverage of a proof: ``observation``, or for a recurrent policy ``observation at the visited state``."""
    properties: Mapping[str, Property]

    def as_dict(self) -> dict[str, Any]:
        """Return the entries for the card."""
        return {**asdict(self), "properties": {name: asdict(one) for name, one in self.properties.items()}}


@dataclass(frozen=True)
class Visits:
    """Decisions of a policy, one row each."""

    observations: Floats
    states: Floats
    """State of a recurrent policy before the decision; no columns without memory."""
    holds: Mapping[str, npt.NDArray[np.bool_]]
    """By property: whether all intervals of the observation were congested, or clean."""


def certify(
    policy: LearnedPolicy, *, episodes: int = 64, boxes: int = 500, noise: float = 0.05, seed: int = 1
) -> Certificate:
    """Bound a policy's answers around states that it reaches on paths of its own training.

    Args:
        policy: The policy.
        episodes: Number of episodes to run it in.
        boxes: Maximum number of boxes per property; they are drawn at random.
        noise: Half the width of a box, as a fraction of the number in its center.
        seed: Seed of paths and draws.

    Raises:
        ConfigError: Its card does not contain its training, or its actions have no direction.
    """
    network = Network(policy.file.read_bytes())
    settings = settings_of(policy)
    breaks = _breaks(policy.card.agent["action"]["map"])
    visited = visit(policy, settings, episodes, seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    measured = ~_exact(settings)
    found = {}
    for name in WORDS:
        places = np.flatnonzero(visited.holds[name])
        chosen = np.sort(rng.permutation(places)[:boxes])
        found[name] = _examined(
            visited, chosen, breaks[name], network, policy, noise * measured.astype(np.float64), rng
        )
    recurrent = policy.card.policy.state_size > 0
    return Certificate(
        noise=noise,
        episodes=episodes,
        decisions=len(visited.observations),
        seed=seed,
        sound_for="observation at the visited state" if recurrent else "observation",
        properties=found,
    )


def settings_of(policy: LearnedPolicy) -> Settings:
    """Return the training environment of a policy, with the agent of its deployment.

    Raises:
        ConfigError: Its card does not contain the environment.
    """
    content = policy.card.training.get("config")
    if not isinstance(content, Mapping):
        raise ConfigError(
            "card-invalid",
            "the card does not contain the training of the policy",
            where=str(card_file(policy.file)),
            expected="training.config, with the distribution of paths",
            hint="export the policy from its run directory: `ccgym train export RUN_DIR`",
        )
    # Read only the needed entries: an older version may have other names for the rest.
    deployment = DeploymentConfig.model_validate(content.get("deployment") or {})
    environment = EnvironmentConfig.model_validate(content["environment"])
    settings = Settings.of(environment, deployment.applied_to(read_agent(content["agent"]))).at(1.0)
    return replace(settings, learners=settings.learners[:1], curriculum=None)


def visit(policy: LearnedPolicy, settings: Settings, episodes: int, seed: int) -> Visits:
    """Run a policy in episodes, with some decisions replaced, and record its observations and states."""
    with_cubic = replace(settings, background=(*settings.background, flow_spec("cubic")))
    batches = [SimulatedBatch(one, 1) for one in (settings, with_cubic)]
    columns = {name: place for place, name in enumerate(_core.AgentBatch.columns())}
    history = int(settings.agent.native()["observation"].get("history", 1))
    higher, lower = _pushes(policy.card.agent["action"]["map"])
    rows: list[tuple[Floats, Floats, tuple[bool, ...]]] = []
    for episode in range(episodes):
        batch = batches[episode % 2]
        batch.begin(0, np.random.default_rng([seed, episode]))
        state = np.zeros((1, policy.card.policy.state_size), dtype=np.float32)
        seen: list[tuple[bool, ...]] = []
        ratio = 1.0
        while not batch.ended[0] and not ratio > ENDLESS:
            # The history at the start is not complete.
            whole = tuple(all(kinds) for kinds in zip(*seen[-history:], strict=True)) if len(seen) >= history else ()
            rows.append((batch.obs[0].copy(), state[0].copy(), whole or (False,) * len(WORDS)))
            action, after = policy.native.decide(batch.obs, state if state.size else None)
            state = state if after is None else after
            stretch = len(seen) // STRETCH % 4
            batch.actions[:] = action
            if stretch % 2:
                batch.actions[:] = higher if ratio < TOWARD[stretch // 2] else lower
            batch.step()
            mean, shortest, lost = (batch.stats[0, columns[name]] for name in _SEEN)
            ratio = float(mean / shortest) if shortest > 0 else np.nan
            seen.append((bool(ratio >= CONGESTED), bool(ratio <= CLEAN and lost == 0)))
    return Visits(
        observations=np.array([row[0] for row in rows], dtype=np.float32),
        states=np.array([row[1] for row in rows], dtype=np.float32),
        holds={name: np.array([row[2][place] for row in rows]) for place, name in enumerate(WORDS)},
    )


def _pushes(action: Mapping[str, Any]) -> tuple[float, float]:
    """Return the actions that raise and lower by about :data:`PUSH`."""
    if action["kind"] == "signed_multiply":
        return (PUSH - 1) / action["delta"], (1 - PUSH) / action["delta"]
    if action["kind"] == "exponential":
        return float(np.log(PUSH) / np.log(action["base"])), -float(np.log(PUSH) / np.log(action["base"]))
    operations = action["operations"]
    # A sum counts as an exact match: its relative size depends on the flow.
    away = [abs(np.log(float(one[1:])) - np.log(PUSH)) if one[0] in "*/" else 0.0 for one in operations]
    directions = [_direction(one) for one in operations]
    higher, lower = (
        min((place for place, direction in enumerate(directions) if direction == wanted), key=lambda n: away[n])
        for wanted in (1, -1)
    )
    return float(higher), float(lower)


Breaks = Callable[[Form], tuple[bool, bool]]
"""Returns whether an answer of a form may violate a property by its bounds; and whether the center's answer does."""


def _breaks(action: Mapping[str, Any]) -> dict[str, Breaks]:
    """Return, by property, the check for violations by a policy with this action map."""
    kind = action["kind"]
    if kind in ("signed_multiply", "exponential"):
        return {"congested": lambda form: _positive(form), "clean": lambda form: _positive(-form)}
    if kind == "discrete":
        directions = np.array([_direction(one) for one in action["operations"]])
        return {
            "congested": lambda form: _chosen(form, directions > 0),
            "clean": lambda form: _chosen(form, directions < 0),
        }
    raise ConfigError("agent-unsuitable",
        f"the action map {kind}", where="certificate", expected="signed_multiply, exponential or discrete",
        hint="use one of these maps: for other maps, the answer does not determine whether the rate rises",
    )  # fmt: skip


def _positive(form: Form) -> tuple[bool, bool]:
    return bool(form.bounds()[1][0] > 0), bool(form.center[0] > 0)


def _chosen(form: Form, forbidden: npt.NDArray[np.bool_]) -> tuple[bool, bool]:
    """Return whether one of these operations may have the largest score: no other always has a larger score."""
    allowed = np.flatnonzero(~forbidden)
    possible = False
    for one in np.flatnonzero(forbidden):
        ahead = Form(form.center[allowed] - form.center[one], form.terms[:, allowed] - form.terms[:, [one]])
        possible |= not bool((ahead.bounds()[0] > 0).any())
    return possible, bool(forbidden[int(np.argmax(form.center))])


def _direction(operation: str) -> int:
    """Return 1 if an operation raises the current value, −1 if it lowers it, 0 if it keeps it."""
    sign, amount = operation[0], float(operation[1:])
    neutral = 1.0 if sign in "*/" else 0.0
    return int(np.sign(amount - neutral)) * (1 if sign in "*+" else -1)


def _exact(settings: Settings) -> npt.NDArray[np.bool_]:
    """Return which numbers of an observation are exact, not measured: the previous action, and phases."""
    described = json.loads(_core.describe_agent(settings.agent_json))["observation"]
    return np.array([one["name"].startswith(("phase_", "previous")) for one in described])


def _examined(
    visited: Visits,
    chosen: npt.NDArray[np.int64],
    breaks: Breaks,
    network: Network,
    policy: LearnedPolicy,
    noise: npt.NDArray[np.float64],
    rng: np.random.Generator,
) -> Property:
    held = proven = refuted = 0
    for place in chosen:
        seen = visited.observations[place].astype(np.float64)
        state = visited.states[place] if visited.states.shape[1] else None
        held += not breaks(network.over(box(seen, 0.0), state))[1]
        radius = noise * np.abs(seen)
        if not breaks(network.over(box(seen, radius), state))[0]:
            proven += 1
            continue
        corners = [seen, *(seen + radius * rng.choice((-1.0, 1.0), len(seen)) for _ in range(TRIED))]
        refuted += any(breaks(network.over(box(corner, 0.0), state))[1] for corner in corners)
    count = max(1, len(chosen))
    return Property(len(chosen), held / count, proven / count, refuted / count)


def write_to_card(policy: LearnedPolicy, found: Certificate) -> None:
    """Write a certificate to the policy's card."""
    file = card_file(policy.file)
    card = read_card(policy.file).model_copy(update={"certificate": found.as_dict()})
    atomic_write(file, card.to_json())
