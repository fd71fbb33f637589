"""Entries of ``flows`` that represent several flows: copies of a flow, or transfers that start and end.

``copies: 4`` makes four equal flows from an entry.
``transfers: {every: 600ms, from: 5s, to: 40s, size: {kind: log_uniform, min: 10kB, max: 10MB}}`` makes them a Poisson
process: the times between starts are exponentially distributed with mean ``every``, and each transfer has its own size.
Alternatively, ``rate`` sets their mean offered load. Sizes are written as for sources with transfers over one
connection (``requests``, ``poisson``), and drawn by the core. All schemes get the same transfers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ccgym.config.models import TransferSizeField
from ccgym.config.quantities import PeriodField, RateField, TimeField
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, located
from ccgym.units import NS_PER_S, Nanoseconds

KEY: Final = "transfers"
"""Key of a flow that represents transfers."""
COPIES: Final = "copies"
"""Key of a flow that represents several equal flows."""
MAX_COPIES: Final = 1000
"""Max number of copies."""
MAX_TRANSFERS: Final = 1000
"""Max number of transfers in a run."""


class Transfers(BaseModel):
    """Start times and sizes of transfers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    every: PeriodField | None = None
    """Mean time between two starts."""
    rate: RateField | None = None
    """Instead of ``every``: mean payload rate of the transfers over the time from ``from`` to ``to``."""
    begin: TimeField = Field(default=0, alias="from")
    """No transfer starts before this time."""
    end: PeriodField = Field(alias="to")
    """No transfer starts after this time."""
    size: TransferSizeField
    """Payload of each transfer, a constant or a distribution."""

    @model_validator(mode="after")
    def _few_enough(self) -> Transfers:
        if (self.every is None) == (self.rate is None) or self.rate == 0:
            raise ValueError("either `every`, the mean time between two starts, or `rate`, above zero")
        if (self.end - self.begin) / self.gap_ns > MAX_TRANSFERS / 2:
            raise ValueError(f"an expected number of at most {MAX_TRANSFERS // 2} transfers")
        return self

    @property
    def gap_ns(self) -> float:
        """Mean time between two starts, nanoseconds. Raises ValueError if the size is invalid."""
        mean = self.size.mean_bytes()
        if self.rate is not None:
            return mean * 8 * NS_PER_S / self.rate
        assert self.every is not None
        return self.every

    def drawn(self, rng: np.random.Generator) -> Iterator[tuple[Nanoseconds, int]]:
        """Yield start and bytes of each transfer."""
        gap, size = self.gap_ns, self.size.sampler(rng.random)
        at = self.begin + rng.exponential(gap)
        for _ in range(MAX_TRANSFERS):
            if at >= self.end:
                return
            yield Nanoseconds(round(at)), size()
            at += rng.exponential(gap)


def expanded(flows: Sequence[Mapping[str, Any]], rng: np.random.Generator) -> list[Mapping[str, Any]]:
    """Return the flows, with drawn transfers and copies in place of the entries that represent them.

    Raises:
        ConfigError: An entry has an unknown key, no distribution, or also a source or a start; or copies are not a
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
                raise ConfigError(
                    "options-conflict", f"{KEY} and {twice[0]}", expected="one of them: transfers include their own"
                )
            try:
                transfers = Transfers.model_validate(flow[KEY])
            except ValidationError as error:
                raise config_error(error, Transfers) from None
            found += [{**rest, "start": start, "source": f"{size}B"} for start, size in transfers.drawn(rng)]
    return found


def _copies(flow: Mapping[str, Any], place: int) -> int:
    count = flow[COPIES]
    if not isinstance(count, (int, float)) or isinstance(count, bool) or count != int(count) or KEY in flow:
        raise ConfigError("wrong-type", f"{COPIES}: {count!r}", expected=f"a number, without {KEY}", where=f"[{place}]")
    if not 1 <= count <= MAX_COPIES:
        raise ConfigError("out-of-range", f"{count:g} {COPIES}", expected=f"1 to {MAX_COPIES}", where=f"[{place}]")
    return int(count)
