"""Schemes can be told apart in figures, by readers with color blindness, too."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.colors import to_rgb

from ccgym.evaluation.run import parse_contenders
from ccgym.report.style import legible
from ccgym.schemes import policies, programs, quic
from ccgym.schemes.registry import _STYLES, COLORS, registry
from ccgym.schemes.style import check_color, check_marker

# Linear RGB as full deuteranopia and protanopia see it (Machado, Oliveira and Fernandes, 2009).
VISIONS: Final = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}
# From linear RGB to cones, and from their cube roots to OKLab (Ottosson, 2020).
TO_CONES: Final = np.array(
    [[0.41222147, 0.53633254, 0.05144599], [0.21190350, 0.68069955, 0.10739696], [0.08830246, 0.28171884, 0.62997870]]
)
TO_LAB: Final = np.array(
    [[0.210454, 0.793618, -0.004072], [1.977998, -2.428592, 0.450594], [0.025904, 0.782772, -0.808676]]
)
APART: Final = 0.11
"""Distance in OKLab, five times one that is just noticed."""


def seen(color: str, vision: str, *, dark: bool = False) -> npt.NDArray[np.float64]:
    """A color as it is drawn, in OKLab."""
    rgb = np.array(to_rgb(legible(color, dark=dark)))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.asarray(TO_LAB @ np.cbrt(TO_CONES @ np.clip(VISIONS[vision] @ linear, 0, 1)))


def looks() -> dict[str, tuple[str, str]]:
    """Color and marker of every scheme that ccgym brings; of the kernel's those that most machines have."""
    kernel = [f"tcp:{name}" for name in ("reno", "cubic", "bbr", "vegas")]
    others = [str(one["name"]) for one in (*quic.descriptions(), *programs.descriptions())]
    names = [*registry(), *policies.pretrained(), *kernel, *others]
    names.remove("learned")  # runs a policy, which has a style of its own
    return {
        name: (contender.style.color, contender.style.marker)
        for name, (contender,) in ((name, parse_contenders(name)) for name in names)
    }


@pytest.mark.parametrize("vision", VISIONS)
def test_schemes_of_one_marker_differ_in_color(vision: str) -> None:
    known = looks()
    assert len(known) >= 55
    near = {
        (one, other): round(distance, 3)
        for one, other in combinations(known, 2)
        if known[one][1] == known[other][1]
        and (distance := float(np.linalg.norm(seen(known[one][0], vision) - seen(known[other][0], vision)))) < APART
    }
    assert not near


@pytest.mark.parametrize("vision", VISIONS)
def test_colors_to_choose_from_differ(vision: str) -> None:
    for one, other in combinations(COLORS, 2):
        assert np.linalg.norm(seen(one, vision) - seen(other, vision)) >= APART
        assert np.linalg.norm(seen(one, vision, dark=True) - seen(other, vision, dark=True)) >= 0.6 * APART


def test_styles_are_of_schemes_that_exist_and_stay() -> None:
    assert _STYLES.keys() <= registry().keys()
    assert registry()["copa"]["color"] == "red"
    for color, marker in looks().values():
        assert (check_color(color), check_marker(marker)) == (color, marker)


def test_schemes_that_are_compared_never_look_alike() -> None:
    # Every one of these has the style of Cubic, before they are compared.
    every = [f"cubic:beta=0.{place}" for place in range(1, 10)]
    styles = [(one.style.color, one.style.marker) for one in parse_contenders(",".join(["cubic", *every]))]
    assert len(set(styles)) == len(styles) == 10
