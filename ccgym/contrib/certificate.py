"""Certificates: what holds for every observation within a box, not just for those that were tried.

Two properties, in the manner of Canopy (arXiv 2412.10915, EuroSys 2026):

- *congested*: where the round trip was at least :data:`CONGESTED` times the shortest one, the decision does not raise
  rate or window;
- *clean*: where it was at most :data:`CLEAN` times the shortest one, and nothing was lost, the decision does not lower
  them.

The policy decides episodes on paths of its own training, every second one next to a flow of Cubic; in every second
stretch of :data:`STRETCH` decisions it is overruled, toward a queue or toward none, so that states that it avoids are
there, too. Decisions before which an observation's whole history was congested, or clean, are the centers of boxes, in
which every measured number of the observation is anywhere within some percent of what it was.
:mod:`ccgym.contrib.bounds` then bounds all answers of the network over the box. A box is *proven* if none of them
breaks the property, *refuted* if one that was tried does, else *open*: the bounds are too wide to tell. What is proven
of a network without memory holds for every observation in the box. Of a recurrent one it holds for the state that it
was in there; what noise does to the state over several decisions is not covered.
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
"""Mean round trip of an interval over the shortest so far from which on it counts as congested."""
CLEAN: Final = 1.05
"""The same below which it counts as clean."""
PASSES: Final = 0.95
"""Fraction of proven boxes that passes."""
STRETCH: Final = 30
"""Decisions in a row that are the policy's own, or are overruled."""
TOWARD: Final = (2.5, 1.02)
"""Where overruled decisions go: mean round trip over the shortest so far."""
ENDLESS: Final = 20.0
"""Round trip over the shortest one at which an episode is given up: nothing bounds its queue."""
PUSH: Final = 1.1
"""By how much an overruled decision raises or lowers, as far as the policy has such an operation."""
TRIED: Final = 16
"""Corners of a box at which a counterexample is looked for."""

_SEEN: Final = ("mean_rtt_s", "min_rtt_s", "loss_fraction")

WORDS: Final[Mapping[str, str]] = {
    "congested": f"after round trips of {CONGESTED:g} × the shortest or more the decision does not raise",
    "clean": f"after round trips of {CLEAN:g} × the shortest or less, without loss, it does not lower",
}
"""The properties."""


@dataclass(frozen=True)
class Property:
    """What was found of one property."""

    boxes: int
    """Boxes that were looked at."""
    held: float
    """Fraction of their centers, observations that were made, at which it holds."""
    proven: float
    """Fraction of the boxes in which it holds everywhere."""
    refuted: float
    """Fraction in which it was seen not to hold."""

    @property
    def open(self) -> float:
        """Fraction in which the bounds are too wide to tell."""
        return abs(1 - self.proven - self.refuted)

    @property
    def passed(self) -> bool | None:
        """Whether enough is proven; None where the policy never was in such a state."""
        return self.proven >= PASSES if self.boxes else None


@dataclass(frozen=True)
class Certificate:
    """What was found of a policy."""

    noise: float
    """Half the width of a box, as a fraction of the number in its middle."""
    episodes: int
    decisions: int
    """Decisions of all episodes, from which the centers were drawn."""
    seed: int
    sound_for: str
    """What a proof covers: ``observation``, or ``observation at the visited state`` of a recurrent policy."""
    properties: Mapping[str, Property]

    def as_dict(self) -> dict[str, Any]:
        """For the card."""
        return {**asdict(self), "properties": {name: asdict(one) for name, one in self.properties.items()}}


@dataclass(frozen=True)
class Visits:
    """Decisions of a policy, one row each."""

    observations: Floats
    states: Floats
    """What a recurrent policy remembered before it decided; no columns without memory."""
    holds: Mapping[str, npt.NDArray[np.bool_]]
    """By property: whether all intervals of the observation were such."""


def certify(
    policy: LearnedPolicy, *, episodes: int = 64, boxes: int = 500, noise: float = 0.05, seed: int = 1
) -> Certificate:
    """Bound a policy's answers around states that it reaches on paths of its own training.

    Args:
        policy: Which.
        episodes: How many it decides.
        boxes: How many are looked at per property, at most; which is drawn.
        noise: Half the width of a box, as a fraction of the number in its middle.
        seed: Of paths and draws.

    Raises:
        ConfigError: Its card does not say how it was trained, or its actions have no direction.
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
    """The environment that a policy was trained in, with the agent that it is deployed with.

    Raises:
        ConfigError: Its card does not say.
    """
    content = policy.card.training.get("config")
    if not isinstance(content, Mapping):
        raise ConfigError(
            "card-invalid",
            "the card does not say how the policy was trained",
            where=str(card_file(policy.file)),
            expected="training.config, from which paths are drawn",
            hint="export it from its run directory: `ccgym train export RUN_DIR`",
        )
    # No more of it than is needed: an older version may have called the rest by other names.
    deployment = DeploymentConfig.model_validate(content.get("deployment") or {})
    environment = EnvironmentConfig.model_validate(content["environment"])
    settings = Settings.of(environment, deployment.applied_to(read_agent(content["agent"]))).at(1.0)
    return replace(settings, learners=settings.learners[:1], curriculum=None)


def visit(policy: LearnedPolicy, settings: Settings, episodes: int, seed: int) -> Visits:
    """Let a policy decide episodes, overruled now and then, and note what it saw and remembered."""
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
            # The first history is not complete.
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
    """The actions that raise and lower by about :data:`PUSH`."""
    if action["kind"] == "signed_multiply":
        return (PUSH - 1) / action["delta"], (1 - PUSH) / action["delta"]
    if action["kind"] == "exponential":
        return float(np.log(PUSH) / np.log(action["base"])), -float(np.log(PUSH) / np.log(action["base"]))
    operations = action["operations"]
    # A sum counts as if it were just right: what it is relative to depends on the flow.
    away = [abs(np.log(float(one[1:])) - np.log(PUSH)) if one[0] in "*/" else 0.0 for one in operations]
    directions = [_direction(one) for one in operations]
    higher, lower = (
        min((place for place, direction in enumerate(directions) if direction == wanted), key=lambda n: away[n])
        for wanted in (1, -1)
    )
    return float(higher), float(lower)


Breaks = Callable[[Form], tuple[bool, bool]]
"""Whether some answer of a form breaks a property, as far as bounds can tell; and whether that in the middle does."""


def _breaks(action: Mapping[str, Any]) -> dict[str, Breaks]:
    """Of each property, when a policy with this action map breaks it."""
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
        hint="of other maps an answer does not say whether the rate rises",
    )  # fmt: skip


def _positive(form: Form) -> tuple[bool, bool]:
    return bool(form.bounds()[1][0] > 0), bool(form.center[0] > 0)


def _chosen(form: Form, forbidden: npt.NDArray[np.bool_]) -> tuple[bool, bool]:
    """Whether one of these operations may have the largest score: unless another one always has a larger one."""
    allowed = np.flatnonzero(~forbidden)
    possible = False
    for one in np.flatnonzero(forbidden):
        ahead = Form(form.center[allowed] - form.center[one], form.terms[:, allowed] - form.terms[:, [one]])
        possible |= not bool((ahead.bounds()[0] > 0).any())
    return possible, bool(forbidden[int(np.argmax(form.center))])


def _direction(operation: str) -> int:
    """1 if an operation raises the value in force, −1 if it lowers it, 0 if it leaves it."""
    sign, amount = operation[0], float(operation[1:])
    neutral = 1.0 if sign in "*/" else 0.0
    return int(np.sign(amount - neutral)) * (1 if sign in "*+" else -1)


def _exact(settings: Settings) -> npt.NDArray[np.bool_]:
    """Which numbers of an observation are known rather than measured: what was done last, and phases."""
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
    """Put a certificate into the policy's card."""
    file = card_file(policy.file)
    card = read_card(policy.file).model_copy(update={"certificate": found.as_dict()})
    atomic_write(file, card.to_json())
