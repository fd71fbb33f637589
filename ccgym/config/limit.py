"""How much a queue holds, as users write it: ``"94p"``, ``"30000B"``, ``"1.5bdp"`` or a mapping.

A limit in bandwidth-delay products becomes packets of 1500 bytes, rounded up, once the path is known.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ccgym.errors import ConfigError
from ccgym.units import Size, format_size, is_number, parse_size


class Limit(BaseModel):
    """How much may wait. All limits that are given hold at once; none means no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    packets: int | None = Field(default=None, ge=1, le=2**32, description="Packets.")
    bytes: int | None = Field(default=None, ge=1, le=2**48, description="Wire bytes: IP length and the link's overhead "
                              "per packet (4 with mahimahi).")  # fmt: skip
    bdp: float | None = Field(default=None, gt=0, le=1e6, description="Bandwidth-delay products of the path.")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"type": "string", "examples": ["94p", "30000B", "1.5bdp"]}]}

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str) or is_number(value):
            size = parse_size(value)
            return {"packets": size.packets, "bytes": size.bytes, "bdp": size.bdp}
        return value

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> Any:
        given = {name: size for name, size in write(self).items() if size is not None}
        return str(self) if len(given) == 1 else given

    @property
    def unlimited(self) -> bool:
        """Whether nothing is limited."""
        return self.packets is None and self.bytes is None and self.bdp is None

    def compiled(self, bdp_packets: Fraction) -> dict[str, int]:
        """The native form.

        Args:
            bdp_packets: The path's bandwidth-delay product in packets of 1500 bytes.

        Raises:
            ConfigError: The limit is in bandwidth-delay products, and the path has none.
        """
        packets = self.packets
        if self.bdp is not None:
            if bdp_packets <= 0:
                raise ConfigError(
                    f"a queue of {self.bdp:g} bandwidth-delay products on a path without delay",
                    expected="a path with an RTT, or a queue in packets or bytes like '100p'",
                )
            product = max(1, math.ceil(Fraction(repr(self.bdp)) * bdp_packets))
            packets = product if packets is None else min(packets, product)
        return {name: size for name, size in (("packets", packets), ("bytes", self.bytes)) if size is not None}

    def __str__(self) -> str:
        sizes = (Size(packets=self.packets), Size(bytes=self.bytes), Size(bdp=self.bdp))
        return " and ".join(format_size(size) for size in sizes if size != Size()) or "unlimited"
