"""Teachers of an agent.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ccgym.config import declared
from ccgym.config.quantities import ProbabilityField, TimeField


class BestWindowExpert(declared.Declared):
    """A fixed window: the flow's own (parameter `expert_window` of the scheme `learned`), or one that fills the path
    and a little of its queue."""

    kind: Literal["best_window"] = "best_window"
    queueing: TimeField = Field(default=5_000_000, description="Queuing delay.")
    nearest: Literal["log", "linear"] | None = Field(
        default=None, description="Measure of the distance from an action's result to the target."
    )


class FluidBdpExpert(declared.Declared):
    """The window that fills the path and a fraction of its queue, less the backlog (Muses)."""

    kind: Literal["fluid_bdp"] = "fluid_bdp"
    queue_fraction: ProbabilityField = Field(default=0.8, description="Fraction of the queue's limit.")
    samples: int = Field(default=5, ge=1, le=1000, description="Decisions over which the max window is taken.")
    nearest: Literal["log", "linear"] | None = Field(
        default=None, description="Measure of the distance from an action's result to the target."
    )


class GainScheduleExpert(declared.Declared):
    """The max delivery rate of the latest intervals, times a gain that depends on the phase (BBR)."""

    kind: Literal["gain_schedule"] = "gain_schedule"
    startup: float = Field(default=2.89, le=100, gt=0, description="Gain while the delivery rate grows.")
    drain: float = Field(
        default=0.3460207612456747, le=100, gt=0, description="Gain while the queue of start-up drains."
    )
    cycle: tuple[float, ...] = Field(
        default=(1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
        min_length=1,
        max_length=1000,
        description="Gains afterward, one per interval, in a cycle.",
    )
    window: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Intervals with acknowledgements over which the max delivery rate is taken.",
    )
    nearest: Literal["log", "linear"] | None = Field(
        default=None, description="Measure of the distance from an action's result to the target."
    )


class PolicyExpert(declared.Declared):
    """Another policy, which observes the flow through its own agent, decides when the learner does, and targets the
    result of its decision for the current rate or window."""

    kind: Literal["policy"] = "policy"
    policy: str = Field(
        min_length=1, max_length=4096, description="The policy: a pretrained one, a run directory, or a `.onnx` file."
    )
    nearest: Literal["log", "linear"] | None = Field(
        default=None, description="Measure of the distance from an action's result to the target."
    )


AnyExpert: TypeAlias = BestWindowExpert | FluidBdpExpert | GainScheduleExpert | PolicyExpert
"""A teacher in training: its label is the action nearest to its target."""

ExpertField: TypeAlias = Annotated[AnyExpert, declared.OneOf("expert", declared.read_expert)]
