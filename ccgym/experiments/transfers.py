"""Entries of ``flows`` that stand for several flows: so many of one kind, or transfers that come and go.

``copies: 4`` makes four equal flows of an entry.
``transfers: {every: 600ms, from: 5s, to: 40s, kilobytes: {log_uniform: [10, 10000]}}`` makes them a Poisson process:
the gaps between starts are exponentially distributed with mean ``every``, and each has a size of its own. Every scheme
meets the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ccgym.config.quantities import PeriodField, TimeField
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, located
from ccgym.experiments.draws import read_draw
from ccgym.units import Nanoseconds

KEY: Final = "transfers"
"""The key of a flow that stands for transfers that come and go."""
COPIES: Final = "copies"
"""The key of a flow that stands for several equal ones."""
MAX_COPIES: Final = 1000
"""More of them are refused."""
MAX_TRANSFERS: Final = 1000
"""More transfers in a run are refused."""


class Transfers(BaseModel):
    """When transfers begin, and how long they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    every: PeriodField
    """Mean time between two starts."""
    begin: TimeField = Field(default=0, alias="from")
    """None starts before."""
    end: PeriodField = Field(alias="to")
    """None starts after."""
    kilobytes: Mapping[str, Any]
    """Distribution of their payload, 1000 bytes."""

    @model_validator(mode="after")
    def _few_enough(self) -> Transfers:
        if (self.end - self.begin) / self.every > MAX_TRANSFERS / 2:
            raise ValueError(f"more than {MAX_TRANSFERS // 2} transfers are to be expected")
        return self

    def drawn(self, rng: np.random.Generator) -> Iterator[tuple[Nanoseconds, int]]:
        """Start and bytes of each."""
        size = read_draw(self.kilobytes)
        at = self.begin + rng.exponential(self.every)
        for _ in range(MAX_TRANSFERS):
            if at >= self.end:
                return
            yield Nanoseconds(round(at)), max(1, round(1000 * float(size.sample(rng, None))))
            at += rng.exponential(self.every)


def expanded(flows: Sequence[Mapping[str, Any]], rng: np.random.Generator) -> list[Mapping[str, Any]]:
    """The flows, with the transfers that the generator draws in place of the entries that stand for them.

    Raises:
        ConfigError: An entry has an unknown key, no distribution, or a source or start besides; or copies that are no
            number.
    """
    found: list[Mapping[str, Any]] = []
    for place, given in enumerate(flows):
        flow = {key: value for key, value in given.items() if key != COPIES}
        if COPIES in given:
            found += [flow] * _copies(given, place)
            continue
        if KEY not in flow:
            found.append(flow)
            continue
        rest = {key: value for key, value in flow.items() if key != KEY}
        with located(f"[{place}].{KEY}"):
            if twice := [key for key in ("source", "start", "stop") if key in rest]:
                raise ConfigError(f"{KEY} and {twice[0]}", expected="one of them: transfers bring their own")
            try:
                transfers = Transfers.model_validate(flow[KEY])
            except ValidationError as error:
                raise config_error(error, Transfers) from None
            found += [{**rest, "start": start, "source": f"{size}B"} for start, size in transfers.drawn(rng)]
    return found


def _copies(flow: Mapping[str, Any], place: int) -> int:
    count = flow[COPIES]
    if not isinstance(count, (int, float)) or isinstance(count, bool) or count != int(count) or KEY in flow:
        raise ConfigError(f"{COPIES}: {count!r}", expected=f"a number, without {KEY}", where=f"[{place}]")
    if not 1 <= count <= MAX_COPIES:
        raise ConfigError(f"{count:g} {COPIES}", expected=f"1 to {MAX_COPIES}", where=f"[{place}]")
    return int(count)
