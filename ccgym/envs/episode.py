"""One episode: a path, a seed and flows, as the simulator takes them.

Everything that differs between episodes comes from one random generator, in this order: the path, then the seed of
the simulator's own streams (losses, jitter), then flow by flow whether it takes part, which policy of several it has,
and its start, where these are random. So an episode is reproduced by its generator's state, and environments that run
one path or a thousand draw the same episodes from the same seeds.
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
"""Length of an episode without a time limit, in nanoseconds: its steps end it long before."""


class Source(Protocol):
    """Where paths come from: a :class:`~ccgym.config.distributions.PathDistribution`, or one of your own."""

    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath | PathLike:
        """Draw a path; nothing but ``rng`` decides which.

        Returns:
            A :class:`NetworkPath`, or whatever else :meth:`NetworkPath.from_any` understands. A :class:`SampledPath`
            has further numbers, such as the rate with which the flow starts.
        """
        ...


@dataclass(frozen=True)
class Episode:
    """An episode, drawn."""

    spec: str
    """The simulator's specification (``crates/ccgym-run/src/spec.rs``), JSON."""
    traces: dict[str, _core.Trace]
    path: Mapping[str, Any]
    """The drawn numbers of the path, by name with unit."""
    seed: int
    """Seed of the simulator's random streams."""
    learners: int = 1
    """Flows that learn in it."""
    drawn: SampledPath | None = None
    """The path as it was drawn; absent from an episode that is restored."""
    ways: tuple[Mapping[str, Any], ...] = ()
    """In place of :attr:`path` for each learner, where one has a route or goes in the other direction."""


@dataclass(frozen=True)
class EarlierSelves:
    """Flows that the policy in training steers as it was some time ago."""

    flows: tuple[LearnerFlow, ...]
    policies: tuple[str, ...]
    """Names of the earlier policies, of which every flow of an episode draws one; none at the beginning of training."""


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
        source: Where its path comes from.
        rng: Alone decides the path, the seed and random starts.
        learners: The flows that learn, in order. The first always takes part.
        background: The other flows, after them, with their schemes looked up.
        duration_ns: Its length in virtual time. ``None``: long enough that its steps end it; but where the capacity
            changes over time, as long as it is known, :data:`~ccgym.config.sampled_path.DEFAULT_DURATION_NS`.
        agent: What steers the learners. If its expert keeps the best window of a path, a flow that has a known path to
            itself gets that path's.
        earlier: Flows of earlier selves, after all others.
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
    """A path's numbers, and its name if it has one."""
    numbers = path.describe()
    return {"name": path.name, **numbers} if path.name else numbers


def _sampled(source: Source, rng: np.random.Generator, duration_ns: int) -> SampledPath:
    """A path from ``source``, with what the simulator must know about it."""
    drawn = source.sample(rng, duration_ns)
    if isinstance(drawn, SampledPath):
        return drawn
    try:
        return SampledPath.of(NetworkPath.from_any(drawn), duration_ns)
    except CcgymError as error:
        raise error.at(f"{type(source).__name__}.sample()") from None
