"""Pages: the contents of a report as data, and its forms: HTML, Markdown and (:mod:`ccgym.report.pdf`) PDF.

A report is a :class:`Page`: blocks, one after another. The HTML is one file that needs no other files and no network:
figures are inside, and link to their files in the same directory. The templates are in ``templates/``; each template
extends ``base.html.j2``, which contains style sheet and script.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.observer import Observer
from ccgym.evaluation.results_file import RESULTS_FILE, TABLE_FILE
from ccgym.experiments.request import Written
from ccgym.files import atomic_write
from ccgym.report.table import Table, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ccgym.report.figures import RegisteredFigure

TEMPLATES: Final = Path(__file__).with_name("templates")

MOST_LISTED: Final = 4
"""Max figures whose files are listed next to the report; the report links to all figures."""

_IMAGE_TYPES: Final = {".png": "image/png", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Heading:
    """A heading; a heading with an identifier is in the list of links at the top of the page."""

    text: str
    id: str = ""
    link: str = ""
    """Text of the heading in the list of links; by default the text of the heading."""
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    tone: Literal["", "muted", "warning-text"] = ""
    """``muted``: an explanation of the block above; ``warning-text``: a warning."""
    link: str = ""
    """A file in the directory of the page; the paragraph links to it."""


@dataclass(frozen=True)
class Code:
    """Lines for a terminal."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names with their texts. Names with empty texts are left out."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Flag:
    """A warning or note at the top of the page."""

    subject: str
    text: str
    level: str = "warning"
    """``warning`` or ``note``."""
    cause: str = ""
    command: str = ""
    """A command that shows the problem."""


@dataclass(frozen=True)
class Picture:
    """A figure: a file of the page's directory."""

    file: str
    """Name of the file that the page shows: an SVG or a PNG."""
    alt: str
    """What the figure shows, as text."""
    draw: Callable[[], Figure] | None = None
    """Function that draws the figure; None if it is drawn before the page is made."""

    def packed(self, directory: Path) -> tuple[str, str] | None:
        """Return the image, compressed by gzip, in base64, and its media type; None if the file is missing.

        Drawings shrink to a sixth of their size. The page's script unpacks them.
        """
        file = directory / self.file
        if not file.exists():
            return None
        return base64.b64encode(gzip.compress(file.read_bytes(), mtime=0)).decode(), _IMAGE_TYPES[file.suffix]


@dataclass(frozen=True)
class Details:
    """Blocks that are hidden until the user opens them."""

    title: str
    note: str
    """Muted text next to the title."""
    blocks: Sequence[Block]
    open: bool = False
    markdown: bool = False
    """Whether the blocks are in the Markdown, too."""
    paper: bool = True
    """Whether the blocks are in the PDF, too."""


Block: TypeAlias = "Heading | Text | Code | Facts | Flag | Table | Picture | Details"


@dataclass(frozen=True)
class Page:
    """The contents of a report."""

    title: str
    lead: str
    """The sentence below the title."""
    blocks: Sequence[Block]
    provenance: Mapping[str, Any]
    """Origin of the results: command, versions, machine."""
    made: Sequence[tuple[str, str]] = ()
    """Further facts on the origin of the results: names with texts."""
    wide: bool = False
    """Whether the tables need more than the usual width."""

    @property
    def pictures(self) -> list[Picture]:
        """The figures, in order."""
        return [block for block in _all(self.blocks) if isinstance(block, Picture)]

    @property
    def links(self) -> list[tuple[str, str]]:
        """Identifier and text of the headings in the list of links at the top."""
        headings = (block for block in _all(self.blocks) if isinstance(block, Heading) and block.id)
        return [(one.id, one.link or one.text) for one in headings]

    def html(self, directory: Path) -> str:
        """Return the page as HTML.

        Args:
            directory: Directory of its figures; the page marks missing figures as missing.
        """
        return render("page", page=self, directory=directory, sections=self.links, provenance=self.provenance)

    def markdown(self) -> str:
        """Return the page in GitHub-flavored Markdown, without figures and most :class:`Details`."""
        made = [*self.made, ("Command", f"`{self.provenance['command']}`")]
        parts = [f"# {self.title}", self.lead, *_markdown(self.blocks), *_markdown([Facts(made)])]
        return "\n\n".join(part.strip() for part in parts) + "\n"


def _all(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from _all(block.blocks)


def _markdown(blocks: Iterable[Block]) -> Iterator[str]:
    # Labels come from cards and external files: their HTML is escaped.
    def plain(text: str) -> str:
        return text.replace("<", "&lt;")

    for block in blocks:
        match block:
            case Heading():
                yield f"{'#' * block.level} {plain(block.text)}"
            case Text() if not block.link:
                yield plain(block.text)
            case Code():
                yield "\n".join(f"    {line}" for line in block.text.splitlines())
            case Facts():
                yield "  \n".join(plain(f"{name}: {text}") for name, text in block.rows if text)
            case Flag():
                yield plain(f"{block.subject}: {block.text}")
            case Table() if block.rows:
                yield "\n\n".join([block.markdown().strip(), *map(plain, block.notes)])
            case Details() if block.markdown:
                yield from _markdown(block.blocks)


def drawn(figures: Iterable[RegisteredFigure], *arguments: Any) -> list[Picture]:
    """Return the blocks of registered figures."""
    return [Picture(f"{one.name}.svg", one.title, partial(one.draw, *arguments)) for one in figures]


def flags(failures: Iterable[str]) -> list[Block]:
    """Return the blocks of runs that failed."""
    return [Flag("Failed", one) for one in failures]


def warnings(lines: Iterable[str]) -> list[Block]:
    """Return the blocks of warnings."""
    return [Text(one, "warning-text") for one in lines]


def experiments_page(
    results: Any, title: str, lead: str, blocks: Sequence[Block], *, says_file: bool = True, wide: bool = False
) -> Page:
    """Return a page on the results of experiments. Below its title are what was run, where and when; at its end are the
    time of the runs and, with ``says_file``, the file of the experiments."""
    made = results.provenance
    where = f"root seed {results.parameters['seed']}, {PLACES[made['backend']]}, {made['started']}"
    experiment = [("Experiment", str(made["path"]))] if says_file else []
    took = f"{made['runs_s']} s one after another, including runs of earlier calls"
    return Page(title, f"{lead}; {where}.", blocks, made, [*experiment, ("Runs", took)], wide)


def write_report(
    page: Page, directory: Path, name: str, progress: Observer, *, figures: bool, files: Iterable[Written] = ()
) -> list[Written]:
    """Write ``NAME.md``; with ``figures``, also the figures and ``NAME.html``.

    Args:
        page: The report.
        directory: Target directory.
        name: Name of the files, without suffix.
        progress: Gets the progress.
        figures: Whether to draw figures.
        files: Further files that exist already, without the results.

    Returns:
        All files, the report first.
    """
    atomic_write(directory / f"{name}.md", page.markdown())
    written = [
        Written("table", directory / f"{name}.md"),
        Written("results", directory / RESULTS_FILE),
        Written("", directory / TABLE_FILE),
        *files,
    ]
    if not figures:
        return written
    from ccgym.report.style import write_figure

    pictures = [one for one in page.pictures if one.draw is not None]
    progress.begin("figures", len(pictures) + 1)
    for one in pictures:
        assert one.draw is not None
        write_figure(one.draw, directory / Path(one.file).stem)
        progress.advance("figures", 1, one.file)
    atomic_write(directory / f"{name}.html", page.html(directory))
    progress.advance("figures", 1, "page")
    shown = [
        Written("" if place else "figures", directory / one.file) for place, one in enumerate(pictures[:MOST_LISTED])
    ]
    return [Written("report", directory / f"{name}.html"), *shown, *written]


def render(template: str, **values: Any) -> str:
    """Fill a template.

    Args:
        template: Its name without the suffix: ``page``.
        values: Values for the template; always ``provenance`` and ``sections`` (identifiers and titles of headings).
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment.get_template(f"{template}.html.j2").render(values)


def write_page(file: Path, template: str, values: Mapping[str, Any]) -> None:
    """Fill a template and write the file atomically; see :func:`render`."""
    atomic_write(file, render(template, **values))
