"""Figures, one per file and page, found by name and by the page that shows them.

A figure is a function from results to a matplotlib ``Figure``, registered where it is defined::

    @figure("ranking", "Mean scores with intervals, by group of paths", page="scorecard")
    def ranking_figure(card: Scorecard) -> Figure: ...

A new figure is one new file in this folder: its page finds it. ``page`` decides the arguments of the function:

==============  ==============================================================  ==================================
Page            Arguments                                                       Drawn
==============  ==============================================================  ==================================
``run``         ``(RunCurves, RunMetrics)``                                     for each run of an evaluation
``evaluation``  ``(ResultSet)``                                                 in the report of an evaluation
``scorecard``   ``(Scorecard)``                                                 on the scorecard
``gap``         ``(Gap)``                                                       in the report on a gap
``league``      ``(League)``                                                    on the page of a league
``experiment``  ``(results)``: the experiment's results                         on the page of an experiment
``test``        ``(results, test, options)``                                    where a test names it
``command``     arguments of its own                                            by its own command
==============  ==============================================================  ==================================

A test names its figures as ``sweep`` or ``{sweep: {x: rate_mbps}}``; the options are the fields of the figure's model.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, PlatformError, did_you_mean, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: Final = (".svg", ".pdf", ".png")

Page = Literal["run", "evaluation", "scorecard", "gap", "league", "experiment", "test", "command"]

_Draw = TypeVar("_Draw", bound=Callable[..., "Figure"])


@dataclass(frozen=True)
class RegisteredFigure:
    """A figure with its name, title, page and options."""

    name: str
    """Unique name; except for ``run``, ``test`` and ``command``, also the name of its files."""
    title: str
    """What the figure shows, as text: the alternative text on pages."""
    page: Page
    draw: Callable[..., Figure]
    """Function that draws the figure. Call within :func:`~ccgym.report.style.house_style`."""
    options: type[Options] | None = None
    """For ``page="test"``: the model of its options. All options have defaults."""
    order: int = 0
    """Place among the figures of its page, ascending."""


def require_drawing(*packages: str, instead: str = "") -> None:
    """Check that figures can be drawn, before hours are spent on the runs.

    Args:
        packages: Needed packages; by default all that reports need.
        instead: An option that works without these packages, if there is one.

    Raises:
        PlatformError: A package is not installed.
    """
    for package in packages or ("matplotlib", "jinja2", "fpdf"):
        if find_spec(package) is None:  # importing them takes half a second
            raise PlatformError(
                "package-missing",
                f"{package.partition('.')[0]} cannot be imported",
                expected="the packages for figures and reports",
                hint="pip install 'ccgym[report]'" + (f", or use {instead}" if instead else ""),
            )


def figure_path(path: str | os.PathLike[str], where: str = "") -> Path:
    """Return the path of a file that a figure can be written to.

    Raises:
        ConfigError: Its suffix is not one of :data:`FORMATS`.
    """
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise ConfigError(
            "unknown-suffix",
            f"{shown(file.name)} has the suffix {shown(file.suffix)}" if file.suffix else shown(file.name),
            where=where,
            expected="a file that ends in .png, .svg or .pdf",
            hint=f"for example {file.stem or 'figure'}.png",
        )
    return file


class Options(BaseModel):
    """Base of the options of figures that tests name."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_FIGURES: Final[dict[str, RegisteredFigure]] = {}


def figure(
    name: str, title: str, *, page: Page, options: type[Options] | None = None, order: int = 0
) -> Callable[[_Draw], _Draw]:
    """Register the decorated function as a figure; see :class:`RegisteredFigure`."""

    def register(draw: _Draw) -> _Draw:
        assert name not in _FIGURES or _FIGURES[name].draw.__module__ == draw.__module__, f"two figures {name!r}"
        _FIGURES[name] = RegisteredFigure(name, title, page, draw, options, order)
        return draw

    return register


@cache
def all_figures() -> Mapping[str, RegisteredFigure]:
    """Return every figure by name; imports all files of this folder, and therefore matplotlib."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return _FIGURES


def figures_of(page: Page) -> list[RegisteredFigure]:
    """Return the figures that a page shows, in order."""
    return sorted((one for one in all_figures().values() if one.page == page), key=lambda one: (one.order, one.name))


@dataclass(frozen=True)
class ChosenFigure:
    """A figure with the options that a test gives it."""

    figure: RegisteredFigure
    options: Options

    def draw(self, results: Any, test: Any) -> Figure:
        """Draw the figure from a test's results. Call within :func:`~ccgym.report.style.house_style`."""
        return self.figure.draw(results, test, self.options)


def chosen_figure(choice: str | Mapping[str, Any], where: str = "figures") -> ChosenFigure:
    """Return the figure that a test names.

    Args:
        choice: Name of the figure, or a mapping from its name to its options.
        where: Place of the choice, for errors.

    Raises:
        ConfigError: There is no such figure, or it has no such option.
    """
    known = {one.name: one for one in figures_of("test")}
    if not isinstance(choice, str) and len(choice) != 1:
        raise ConfigError(
            "wrong-type", shown(dict(choice)), where=where, expected="one name of a figure with its options"
        )
    name = choice if isinstance(choice, str) else next(iter(choice))
    if name not in known:
        raise ConfigError(
            "unknown-figure",
            shown(name),
            where=where,
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(name, known),
        )
    model = known[name].options
    assert model is not None
    try:
        return ChosenFigure(known[name], model.model_validate({} if isinstance(choice, str) else choice[name] or {}))
    except ValidationError as error:
        raise config_error(error, model).at(f"{where}.{name}") from None
