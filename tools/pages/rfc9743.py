"""docs/rfc9743.md."""

from __future__ import annotations

from ccgym.experiments.catalogue import load_catalogue
from ccgym.experiments.expand import conditions
from ccgym.experiments.load import load_experiment
from ccgym.experiments.spec import ExperimentSet
from pages.markdown import code, table


def rows() -> list[str]:
    """What is asked, what answers, and what is missing, in the order of the RFC."""
    found = load_experiment("rfc9743")
    assert isinstance(found, ExperimentSet)
    known = {one.name: one for one in found.experiments}
    lines = []
    for row in found.rows:
        passes = "; ".join(f"{known[name].title}: {known[name].brief}" for name in row.names)
        missing = f"not tested yet: needs {row.missing}" if row.missing else ""
        author = f"for the author: {row.author}" if row.author else ""
        lines.append((row.section, row.title, row.level, passes, ". ".join(filter(None, (missing, author)))))
    return table(["Section", "Requirement", "Level", "Passes", "Open"], lines)


def catalogue() -> list[str]:
    """The parts of the catalogue with how much they comprise."""
    lines = []
    for name, what in load_catalogue().parts.items():
        found = load_experiment(name)
        assert isinstance(found, ExperimentSet)
        count = sum(len(conditions(one)) for one in found.experiments)
        runs = sum(len(conditions(one)) * one.runs * one.draws for one in found.experiments)
        lines.append((code(name), what, str(len(found.experiments)), str(count), str(runs)))
    return table(["Part", "", "Experiments", "Conditions", "Runs of a scheme"], lines)


BLOCKS = {"docs/rfc9743.md": {"rows": rows, "catalogue": catalogue}}
