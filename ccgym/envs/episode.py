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
from ccgym.errors import CcgymError
from ccgym.schemes.flow import FlowSpec, LearnerFlow
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
            itself is told that path's.
        earlier: Flows of earlier selves, after all others.
    """
    drawn = _sampled(source, rng, duration_ns or DEFAULT_DURATION_NS)
    seed = int(rng.integers(0, 2**63))
    facts = drawn.facts
    if duration_ns is None:
        duration_ns = HORIZON if facts is None or len(facts["capacity"]) < 2 else DEFAULT_DURATION_NS
    base_rtt = 0 if facts is None else int(facts["base_rtt"])
    rate = drawn.start_rate_mbps
    flows = [
        flow.native(base_rtt, f"learners[{place}]", rng, rate)
        for place, flow in enumerate(learners)
        if flow.takes_part(rng)
    ]
    taking_part = len(flows)
    if len(learners) == 1 and not background and _keeps_best_window(agent):
        flow = learners[0]
        alone = not flow.extra_rtt and flow.rtt is None and flow.mss + flow.header == PACKET_BYTES
        window = best_window_of(drawn.origin) if alone else None
        if window is not None:
            flows[0]["params"]["expert_window"] = window
    flows += [
        flow.native(base_rtt, f"flows[{place}]", rng) for place, flow in enumerate(background) if flow.takes_part(rng)
    ]
    if earlier is not None and earlier.policies:
        for place, one in enumerate(earlier.flows):
            if one.takes_part(rng):
                policy = earlier.policies[int(rng.integers(len(earlier.policies)))]
                native = one.native(base_rtt, f"earlier_selves[{place}]", rng, rate)
                flows.append({**native, "params": {**native["params"], "policy": policy}})
    spec = {"seed": seed, "duration": duration_ns, **drawn.spec(), "flows": flows, "record": {}}
    path = drawn.describe()
    named = {"name": drawn.name, **path} if drawn.name else path
    return Episode(json.dumps(spec), dict(drawn.traces), named, seed, taking_part, drawn)


def _sampled(source: Source, rng: np.random.Generator, duration_ns: int) -> SampledPath:
    """A path from ``source``, with what the simulator must know about it."""
    drawn = source.sample(rng, duration_ns)
    if isinstance(drawn, SampledPath):
        return drawn
    try:
        return SampledPath.of(NetworkPath.from_any(drawn), duration_ns)
    except CcgymError as error:
        raise error.at(f"{type(source).__name__}.sample()") from None


def _keeps_best_window(agent: AgentConfig | None) -> bool:
    return agent is not None and agent.expert is not None and agent.expert.kind == "best_window"
