"""An agent that controls a flow: the section ``agent:`` of a configuration.

An agent is data: its clock, observation, actions and reward, the start of the flow, and the guard.
The native core declares all parameters and evaluates the agent, both in training and for
trained policies. This module reads an agent with units, reports errors with their line, and converts the agent to JSON
(:meth:`AgentConfig.native`).

::

    features:
      - latency_ratio                                             a signal with its usual bounds
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
        ConfigError: A parameter is missing, unknown or contradictory; also if the core refuses the agent.
        UnitError: A quantity cannot be read.
    """

    @model_validator(mode="after")
    def _sound(self) -> Self:
        self.check()
        return self

    def json_text(self) -> str:
        """Return :meth:`native` as JSON text for the core."""
        return json.dumps(self.native(), allow_nan=False)

    def check(self) -> None:
        """Check the agent in the core. Every existing model has passed this check.

        Raises:
            ConfigError: The core refused a parameter; ``where`` is its key path.
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
        """Return the agent's observation, actions and reward, as the core describes them.

        Returns:
            ``observation`` and ``action``: rows with index, name, unit, low, high and formula; ``reward``: rows
            with name, unit, weight and formula; ``clock``, ``startup``, ``guard``: texts; ``expert``: text or ``None``.
        """
        described: dict[str, Any] = json.loads(_core.describe_agent(self.json_text()))
        return described


class AgentFile(BaseModel):
    """A configuration with an agent. The default name of the agent is the name of the configuration."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("name"), str) and isinstance(data.get("agent"), dict):
            return {**data, "agent": {"name": data["name"], **data["agent"]}}
        return data


def vocabulary() -> dict[str, Any]:
    """Return all signals, transforms, maps and terms of the core, with unit, range and formula."""
    words: dict[str, Any] = json.loads(_core.agent_vocabulary())
    return words


def read_agent(value: object) -> AgentConfig:
    """Read an agent from a mapping or model. Raises :class:`ConfigError`."""
    return validate(Loaded(value), AgentConfig)
