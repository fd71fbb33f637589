"""Groups of schemes for lists of schemes, and the descriptions of all schemes.

The name of a group represents its members in every list of schemes: ``--schemes classic,eagle``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ccgym.schemes import kernel, policies
from ccgym.schemes.reading import parse_scheme
from ccgym.schemes.registry import NOT_TYPED, registry
from ccgym.schemes.scheme import Scheme

PANTHEON: Final = (
    "bbr", "copa:delta=0.5", "cubic", "fillp", "fillp_sheep", "indigo", "ledbat", "muses_c3", "muses_c5",
    "muses_d", "muses_dtree", "muses_dtree_h0", "muses_dtree_r0", "muses_t", "pcc", "pcc_experimental", "quic",
    "scream", "sprout", "taova", "vegas", "verus", "vivace", "webrtc",
)  # fmt: skip
"""The schemes of Pantheon's cellular report (24 in total) that ccgym can have (``docs/studies/cellular.md``). The other
schemes are programs and models. Copa of 2019 had δ = 0.5."""


@dataclass(frozen=True)
class Group:
    """A name for several schemes."""

    meaning: str
    """Description, for help."""
    members: Callable[[], list[str]]


VARIANTS: Final = ("muses_c5", "muses_d", "muses_dtree_h0", "muses_dtree_r0", "muses_t")
"""Pretrained policies that are not compared by default; ``muses_c3`` and ``muses_dtree`` represent them."""


def _default() -> list[str]:
    own = (name for name, entry in registry().items() if entry["role"] == "default")
    return [*own, *(name for name in policies.pretrained() if name not in VARIANTS)]


def _all() -> list[str]:
    return [*(name for name, entry in registry().items() if entry["role"] != "tool"), *policies.pretrained()]


def _classic() -> list[str]:
    known = registry()
    return [name for name in _all() if name in known and not known[name]["capabilities"]["knows_path"]]


GROUPS: Final[Mapping[str, Group]] = {
    "default": Group("the schemes that are compared by default", _default),
    "all": Group("every scheme and every pretrained policy, not the tools", _all),
    "classic": Group("all schemes but policies, tools, and the oracle", _classic),
    "learned": Group("every pretrained policy", lambda: list(policies.pretrained())),
    "pantheon": Group(
        "the schemes of Pantheon's report on cellular paths that ccgym has",
        lambda: [text for text in PANTHEON if text.partition(":")[0] in _all()],
    ),
}
"""The groups by name."""


def expanded(names: Sequence[Any]) -> list[Any]:
    """Return a list of schemes with every group replaced by its members. Every scheme is in the list once; schemes
    given by name keep their position."""
    there = {one.strip() for one in names if isinstance(one, str)}
    found: list[Any] = []
    for one in names:
        group = GROUPS.get(one.strip()) if isinstance(one, str) else None
        members = [one] if group is None else [name for name in group.members() if name not in there]
        there.update(members if group is not None else ())
        found += members
    return found


def compared_schemes(*, real: bool = False) -> list[Scheme]:
    """Return the schemes compared by default: classic schemes with default parameters, and pretrained policies.

    Args:
        real: Whether packets are real. Then the available schemes of the kernel's TCP are included.
    """
    return [*map(parse_scheme, GROUPS["default"].members()), *(kernel.available() if real else ())]


def descriptions() -> list[dict[str, Any]]:
    """Return the registry's descriptions of all named schemes: first classic schemes, then pretrained policies.

    A policy also has the field ``card``, and the parameters that users can set.
    """
    entries = [dict(entry) for entry in registry().values()]
    settable = [p for p in registry().get(policies.SCHEME, {}).get("parameters", []) if p["name"] not in NOT_TYPED]
    for card in map(policies.read_card, policies.pretrained().values()):
        entries.append(
            {
                "name": card.name,
                "label": card.label,
                "reference": card.reference,
                "summary": card.summary,
                "color": card.color,
                "marker": card.marker,
                "parameters": settable,
                "card": card.model_dump(mode="json"),
            }
        )
    return entries
