"""A path as the native core takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ccgym import _core


@dataclass(frozen=True)
class CompiledPath:
    """A path as the native core takes it."""

    uplink: list[dict[str, Any]]
    """Elements that data crosses, in that order."""
    downlink: list[dict[str, Any]]
    """Elements that acknowledgements cross, in that order."""
    facts: dict[str, Any]
    """``capacity``: pairs of nanoseconds and bit/s; ``base_rtt``: nanoseconds."""
    traces: dict[str, _core.Trace] = field(repr=False)
    """The traces that the elements name."""
    links: tuple[dict[str, Any], ...] = ()
    """Of a path of several links: ``name``, ``uplink`` and ``downlink`` of each. The two above are then those of all
    links in a row."""

    def as_dict(self) -> dict[str, Any]:
        """Uplink, downlink and facts, or links and facts: what goes into the simulator's JSON."""
        if self.links:
            return {"uplink": [], "downlink": [], "links": list(self.links), "facts": self.facts}
        return {"uplink": self.uplink, "downlink": self.downlink, "facts": self.facts}

    def elements(self) -> dict[str, list[dict[str, Any]]]:
        """Elements of each direction of each link, by the names that the native core gives them."""
        if not self.links:
            return {"uplink": self.uplink, "downlink": self.downlink}
        return {
            name: link[way]
            for link in self.links
            for name, way in ((link["name"], "uplink"), (f"{link['name']}:reverse", "downlink"))
        }
