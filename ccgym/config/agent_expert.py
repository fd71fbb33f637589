"""Who teaches an agent, as users write it: an expert that says what it would do in the agent's place.

::

    expert: best_window                                      a fixed window per path, by its truth or by a search
    expert: {kind: fluid_bdp, queue_share: 0.8, samples: 5}  Muses' oracle
    expert: gain_schedule                                    BBR's gains on the agent's own steps
    expert: {kind: scheme, scheme: bbr}                      any scheme, hearing what the flow hears

An expert aims at a rate or a window; its label is the agent's own action that comes nearest to that. It changes nothing
of what a flow does, and an exported policy has none.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

from pydantic import Field

from ccgym.config.agent_action import with_known_kind
from ccgym.config.agent_observation import Strict
from ccgym.config.quantities import ProbabilityField, TimeField
from ccgym.units import NS_PER_MS


class _Expert(Strict):
    nearest: Literal["log", "linear"] | None = None
    """How the distance of an action's result from the target is measured; by default ``linear`` for a steered window,
    ``log`` for a rate."""


class BestWindow(_Expert):
    """A fixed window per path. Knows the path's truth, where the flow is not given its best window."""

    kind: Literal["best_window"] = "best_window"
    queueing: TimeField = 5 * NS_PER_MS
    """Time in the queue that the window allows for, where it is not given: fair share · (base round trip + this)."""


class FluidBdp(_Expert):
    """The window that fills the path and a share of its queue, less what stands there. Knows the path's truth."""

    kind: Literal["fluid_bdp"] = "fluid_bdp"
    queue_share: ProbabilityField = 0.8
    """Share of the queue's limit."""
    samples: int = Field(default=5, ge=1, le=1000)
    """Decisions over which the greatest such window counts."""


class GainSchedule(_Expert):
    """The greatest delivery rate of the latest intervals, times a gain that the phase sets, as BBR."""

    kind: Literal["gain_schedule"] = "gain_schedule"
    startup: float = Field(default=2.89, gt=0, le=100)
    """Gain while the delivery rate grows."""
    drain: float = Field(default=1 / 2.89, gt=0, le=100)
    """Gain while the queue of start-up drains."""
    cycle: tuple[float, ...] = Field(default=(1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), min_length=1, max_length=1000)
    """Gains afterward, one per interval, over and over."""
    window: int = Field(default=10, ge=1, le=1000)
    """Intervals with acknowledgements over which the greatest delivery rate is taken."""


class SchemeExpert(_Expert):
    """A scheme of the registry in the shadow of the flow: its window or pacing rate is the target."""

    kind: Literal["scheme"] = "scheme"
    scheme: str = Field(min_length=1, max_length=100)
    """Its name; one that decides at acknowledgements, which a learned policy does not."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Parameters that differ from its defaults."""


AnyExpert: TypeAlias = BestWindow | FluidBdp | GainSchedule | SchemeExpert
"""Every expert."""

_EXPERTS: Final = tuple(cls.model_fields["kind"].default for cls in get_args(AnyExpert))


def read_expert(value: Any) -> Any:
    """Read an expert, or the name of a kind that needs no more.

    Raises:
        ConfigError: An unknown kind.
    """
    return with_known_kind({"kind": value} if isinstance(value, str) else value, _EXPERTS, "expert")
