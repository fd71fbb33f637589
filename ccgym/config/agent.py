"""An agent that steers a flow, as users declare it: the section ``agent:`` of a configuration.

An agent is data: when it decides, what it sees, what it does, what it is rewarded for, how the flow starts and what
rescues it. The native core declares every parameter and evaluates an agent, for training and for
trained policies alike; this module reads one with units and errors that say the line, and hands it over as JSON
(:meth:`AgentConfig.native`).

::

    features:
      - latency_ratio                                             its usual bounds
      - {signal: queue_delay, over: min_rtt, clip: [0, 4]}        a ratio of two signals
      - {signal: ewma_queue_delay, over: 200ms, clip: [0, 100]}   a signal over a constant, with its unit
      - {signal: delivery_rate, over: "max(delivery_rate, 10)", clip: [0, 1]}
    action: {map: {kind: signed_multiply, delta: 0.025}, target: rate, limits: {rate: [40 packets/s, 1000 packets/s]}}
    action: {map: ["/2", "-10", "+0", "+10", "*2"], target: cwnd}
    action: {map: {kind: exponential, base: 4}, target: cwnd, inner: cubic}
    reward: {scale: 0.001, terms: [{term: throughput, weight: 10, unit: packets/s}, {term: loss, weight: -2000}]}
    expert: best_window
"""

from __future__ import annotations

import json
from typing import Any, Self

from pydantic import BaseModel, model_validator

from ccgym import _core
from ccgym.config.models import Agent
from ccgym.config.yaml_loader import Loaded, validate
from ccgym.errors import ConfigError, explained


class AgentConfig(Agent):
    """An agent.

    Raises:
        ConfigError: Something is missing, unknown or contradictory, here or in the core's eyes.
        UnitError: A quantity that cannot be read.
    """

    @model_validator(mode="after")
    def _sound(self) -> Self:
        self.check()
        return self

    def json_text(self) -> str:
        """:meth:`native` as the text that the core takes."""
        return json.dumps(self.native(), allow_nan=False)

    def check(self) -> None:
        """Let the core check the agent; a model that exists has passed.

        Raises:
            ConfigError: With the key path of what the core refused.
        """
        inner = self.action.inner
        if inner is not None:
            try:
                _core.check_scheme(inner.scheme, json.dumps(inner.params))
            except ValueError as error:
                raise explained(ConfigError, error, "agent-invalid", where="action.inner") from None
        try:
            _core.check_agent(self.json_text())
        except ValueError as error:
            raise explained(ConfigError, error, "agent-invalid") from None

    def describe(self) -> dict[str, Any]:
        """What the agent observes, does and optimizes, in the core's words.

        Returns:
            ``observation``: rows with index, name, unit, low, high and formula; ``action``: the same; ``reward``: rows
            with name, unit, weight and formula; ``clock``, ``startup``, ``guard``: texts; ``expert``: text or ``None``.
        """
        described: dict[str, Any] = json.loads(_core.describe_agent(self.json_text()))
        return described


class AgentFile(BaseModel):
    """A configuration with an agent, which is called as the configuration is unless it says otherwise."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("name"), str) and isinstance(data.get("agent"), dict):
            return {**data, "agent": {"name": data["name"], **data["agent"]}}
        return data


def vocabulary() -> dict[str, Any]:
    """All signals, transforms, maps and terms that the core knows, with unit, range and formula."""
    words: dict[str, Any] = json.loads(_core.agent_vocabulary())
    return words


def read_agent(value: object) -> AgentConfig:
    """Understand an agent given as mapping or model. Raises :class:`ConfigError`."""
    return validate(Loaded(value), AgentConfig)
