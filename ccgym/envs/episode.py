"""One episode: a path, a seed and flows, in the form that the simulator reads.

One random generator draws everything that differs between episodes, in this order: the path, the seed of the
simulator's own streams (losses, jitter), then for each flow whether it takes part, its policy if there are several, and
its start, if these are random. So the state of the generator reproduces the episode, and environments with one path or
a thousand paths draw the same episodes from the same seeds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from ccgym.config.best_windows import best_window_of
from ccgym.config.path import NetworkPath, PathLike
from ccgym.config.sampled_path import DEFAULT_DURATION_NS, SampledPath
from ccgym.errors import CcgymError, located
from ccgym.schemes.flow import Flow, FlowSpec, LearnerFlow
from ccgym.units import NS_PER_S, PACKET_BYTES

if TYPE_CHECKING:
    from ccgym import _core
    from ccgym.config.agent import AgentConfig

HORIZON: Final = 24 * 3600 * NS_PER_S
"""Length of an episode without a time limit, in nanoseconds; the limit of steps is reached much earlier."""


class Source(Protocol):
    """A source of paths: a :class:`~ccgym.config.distributions.PathDistribution`, or a class of the user."""

    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath | PathLike:
        """Draw a path; all random numbers must come from ``rng``.

        Returns:
            A :class:`NetworkPath`, or any other value that :meth:`NetworkPath.from_any` accepts. A
            :class:`SampledPath` has further numbers, such as the flow's rate at the start.
        """
        ...


@dataclass(frozen=True)
class Episode:
    """A drawn episode."""

    spec: str
    """Specification for the simulator (``crates/ccgym-run/src/spec.rs``), JSON."""
    traces: dict[str, _core.Trace]
    path: Mapping[str, Any]
    """Drawn numbers of the path, by name with unit."""
    seed: int
    """Seed of the simulator's random streams."""
    learners: int = 1
    """Number of learning flows in the episode."""
    drawn: SampledPath | None = None
    """The drawn path; ``None`` in a restored episode."""
    ways: tuple[Mapping[str, Any], ...] = ()
    """Replaces :attr:`path` for each learner, if a learner has a route or the other direction."""


@dataclass(frozen=True)
class EarlierSelves:
    """Flows that use earlier versions of the policy in training."""

    flows: tuple[LearnerFlow, ...]
    policies: tuple[str, ...]
    """Names of the earlier policies. Every flow of an episode draws one. Empty at the start of a training."""


def draw_episode(
    source: Source,
    rng: np.random.Generator,
    learners: Sequence[LearnerFlow],
    background: Sequence[FlowSpec] = (),
    duration_ns: int | None = None,
    agent: AgentConfig | None = None,
    earlier: EarlierSelves | None = None,
) -> Episode:
    """Draw an episode.

    Args:
        source: The source of paths.
        rng: The only source of random numbers for the path, the seed and random starts.
        learners: The learning flows, in order. The first always takes part.
        background: The background flows, which follow the learners, with their schemes resolved.
        duration_ns: Length in virtual time. ``None``: so long that the limit of steps ends the episode. If the capacity
            changes over time, it is known only for :data:`~ccgym.config.sampled_path.DEFAULT_DURATION_NS`: this length.
        agent: The agent that controls the learners. If its expert is the best window of a path, and a learner is alone
            on a path with a known best window, the learner gets this window.
        earlier: Flows of earlier selves, which follow all others.
    """
    known_ns = duration_ns or DEFAULT_DURATION_NS
    drawn = _sampled(source, rng, known_ns)
    seed = int(rng.integers(0, 2**63))
    capacities = [] if drawn.facts is None else [drawn.facts["capacity"]]

    def way_of(flow: Flow, where: str) -> SampledPath:
        with located(where):
            return drawn.along(flow.route, flow.direction, known_ns)

    def native(flow: FlowSpec | LearnerFlow, way: SampledPath, where: str) -> dict[str, Any]:
        base_rtt = 0 if way.facts is None else int(way.facts["base_rtt"])
        if isinstance(flow, FlowSpec):
            made = flow.native(base_rtt, where, rng)
        else:
            made = flow.native(base_rtt, where, rng, way.start_rate_mbps)
        if way is drawn or way.facts is None:
            return made
        capacities.append(way.facts["capacity"])
        return {**made, "facts": way.facts}

    flows, ways = [], []
    for place, learner in enumerate(learners):
        if learner.takes_part(rng):
            where = f"learners[{place}]"
            ways.append(way_of(learner, where))
            flows.append(native(learner, ways[-1], where))
    expert = None if agent is None else agent.expert
    if len(learners) == 1 and not background and expert is not None and expert.kind == "best_window":
        flow = learners[0]
        alone = not flow.extra_rtt and flow.rtt is None and flow.mss + flow.header == PACKET_BYTES
        window = best_window_of(ways[0].origin) if alone else None
        if window is not None:
            flows[0]["params"]["expert_window"] = window
    for place, other in enumerate(background):
        if other.takes_part(rng):
            where = f"flows[{place}]"
            flows.append(native(other, way_of(other, where), where))
    if earlier is not None and earlier.policies:
        for place, one in enumerate(earlier.flows):
            if one.takes_part(rng):
                where = f"earlier_selves[{place}]"
                policy = earlier.policies[int(rng.integers(len(earlier.policies)))]
                made = native(one, way_of(one, where), where)
                flows.append({**made, "params": {**made["params"], "policy": policy}})
    if duration_ns is None:
        changing = any(len(capacity) > 1 for capacity in capacities)
        duration_ns = DEFAULT_DURATION_NS if changing else HORIZON
    spec = {"seed": seed, "duration": duration_ns, **drawn.spec(), "flows": flows, "record": {}}
    same = all(way is drawn for way in ways)
    return Episode(
        json.dumps(spec), dict(drawn.traces), _named(drawn), seed, len(ways), drawn,
        () if same else tuple(map(_named, ways)),
    )  # fmt: skip


def _named(path: SampledPath) -> dict[str, Any]:
    """Return the numbers of a path, and its name if it has one."""
    numbers = path.describe()
    return {"name": path.name, **numbers} if path.name else numbers


def _sampled(source: Source, rng: np.random.Generator, duration_ns: int) -> SampledPath:
    """Draw a path from ``source``, with all facts that the simulator needs."""
    drawn = source.sample(rng, duration_ns)
    if isinstance(drawn, SampledPath):
        return drawn
    try:
        return SampledPath.of(NetworkPath.from_any(drawn), duration_ns)
    except CcgymError as error:
        raise error.at(f"{type(source).__name__}.sample()") from None
