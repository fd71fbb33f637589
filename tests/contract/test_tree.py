"""The tree keeps its promises: the examples of pages run, and registries match folders."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


# --- Pages --------------------------------------------------------------------------------------------------------


IN_ORDER = ["guides/evaluate", "guides/flows", "reference/results"]
"""Pages whose examples go on from one another."""
OTHERS = [
    *(f"guides/{name}" for name in ("environments", "path-distributions", "paths")),
    "start/first-environment",
    *(f"reference/{name}" for name in ("agent-yaml", "errors")),
]
WITH_EXAMPLES = ["README.md", *(f"docs/{name}.md" for name in (*IN_ORDER, *OTHERS))]


def python_blocks(page: str) -> list[str]:
    """The examples of a page, in order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_the_examples_of_these_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself, as a reader copies it; those of the pages on results one after the other."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    examples = python_blocks(page)
    assert examples
    for example in examples:
        exec(
            compile(example, page, "exec"), names if page.removeprefix("docs/").removesuffix(".md") in IN_ORDER else {}
        )


def test_every_kind_of_path_distribution_has_an_example() -> None:
    """In docs/guides/path-distributions.md, of its own key ``kind``; each is understood and draws."""
    import numpy as np

    from ccgym.config.curriculum import CURRICULA, curriculum_of, read_paths
    from ccgym.config.distributions import KINDS
    from ccgym.config.yaml_loader import parse_yaml

    page = "docs/guides/path-distributions.md"
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    examples = [parse_yaml(block, page).data["paths"] for block in blocks]
    assert {example["kind"] for example in examples} == {*KINDS, *CURRICULA}
    for example in examples:
        drawn = curriculum_of(read_paths(example)).distribution(0.0).sample(np.random.default_rng(1))
        assert drawn.uplink or drawn.links


# --- Schemes -------------------------------------------------------------------------------------------------------


def scheme_homes() -> set[str]:
    """Files and folders of schemes/src that define a registry entry."""
    source = ROOT / "schemes" / "src"
    homes = set()
    for file in source.rglob("*.rs"):
        if re.search(r"^pub (?:const|static) ENTRY: SchemeEntry\b", file.read_text(encoding="utf-8"), re.MULTILINE):
            top = file.relative_to(source).parts[0]
            homes.add(top.removesuffix(".rs"))
    return homes


def table_lines() -> list[str]:
    """The modules in the table of schemes."""
    text = (ROOT / "schemes" / "src" / "lib.rs").read_text(encoding="utf-8")
    return re.findall(r"^    (\w+)::ENTRY,$", text, re.MULTILINE)


def registered() -> list[dict[str, object]]:
    """The compiled registry."""
    import ccgym._core as core

    schemes: list[dict[str, object]] = json.loads(core.schemes())
    return schemes


def test_every_scheme_file_has_its_line_in_the_registry() -> None:
    forgotten = sorted(scheme_homes() - set(table_lines()))
    assert forgotten == [], "add to SCHEMES in schemes/src/lib.rs:\n" + "\n".join(
        f"    {name}::ENTRY," for name in forgotten
    )


def test_every_line_of_the_registry_has_its_file() -> None:
    assert sorted(set(table_lines()) - scheme_homes()) == []


def test_the_compiled_registry_is_this_tree_s() -> None:
    # Names are as typed by users (fixed-window), modules as Rust has them (fixed_window).
    assert [str(s["name"]).replace("-", "_") for s in registered()] == table_lines(), "run `make setup`"


def test_every_scheme_has_a_page() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "schemes").glob("*.md")}
    assert {str(s["name"]) for s in registered() if s["role"] != "tool"} - pages == set(), "copy docs/schemes/vegas.md"


# --- Agents --------------------------------------------------------------------------------------------------------


def vocabulary(section: str) -> list[str]:
    """Names in a section of what an agent can be made of, as compiled."""
    import ccgym._core as core

    return [row["name"] for row in json.loads(core.agent_vocabulary())[section]]


def test_models_have_every_reward_term_and_action_map() -> None:
    from ccgym.config.declared import kinds_of
    from ccgym.config.models import AnyMap, AnyTerm

    assert set(vocabulary("terms")) == set(kinds_of(AnyTerm, "term"))
    assert set(vocabulary("maps")) == set(kinds_of(AnyMap))


def test_signals_with_usual_bounds_exist() -> None:
    from ccgym.config.declared import USUAL_BOUNDS
    from ccgym.config.expressions import FUNCTIONS

    assert set(USUAL_BOUNDS) <= set(vocabulary("signals"))
    assert set(vocabulary("functions")) == set(FUNCTIONS)


CONFIGS = sorted(file.name for file in (ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_configuration_can_be_described(name: str) -> None:
    from ccgym.cli.describe import describe

    described = describe(str(ROOT / "configs" / name))
    assert described["name"] == name.removesuffix(".yaml")
    assert described["agent"]["observation"]


# --- Queues and elements -------------------------------------------------------------------------------------------


def variants(enum: str) -> set[str]:
    """The variants of an enum of the path description, in snake case."""
    text = (ROOT / "crates" / "ccgym-path" / "src" / "spec.rs").read_text(encoding="utf-8")
    body = text.split(f"pub enum {enum} {{", 1)[1].split("\n}\n", 1)[0]
    names = re.findall(r"^    (\w+)(?:,| \{)", body, re.MULTILINE)
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names}


def implementations(folder: str, trait: str) -> set[str]:
    """The files of a folder that implement a trait."""
    files = (ROOT / "crates" / "ccgym-path" / "src" / folder).glob("*.rs")
    return {
        file.stem
        for file in files
        if re.search(rf"^impl(?:<[^>]*>)? {trait} for ", file.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_every_queue_discipline_has_its_variant_and_its_file() -> None:
    # Those that keep one FIFO are rules in its frame, which without a rule is two of them.
    files = implementations("queue", "QueueDiscipline") | implementations("queue", "Rule")
    assert files - {"fifo"} == variants("QueueSpec") - {"infinite", "droptail"}


def test_every_path_element_has_its_variant_and_its_file() -> None:
    # The link is a folder of its own.
    assert implementations("elements", "PathElement") == variants("ElementSpec") - {"link"}


# --- Figures -------------------------------------------------------------------------------------------------------


def imports_of(package: str) -> set[str]:
    """The modules of ccgym that the modules of a package import, at any depth of their code."""
    names: set[str] = set()
    for file in (ROOT / "ccgym" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    return names


def test_only_some_packages_touch_the_native_module() -> None:
    """Simulation and the parsing of traces: nothing else (ARCHITECTURE, "The map")."""
    touching = {
        package.name
        for package in (ROOT / "ccgym").iterdir()
        if package.is_dir() and any(name.startswith("ccgym._core") for name in imports_of(package.name))
    }
    assert touching <= {"config", "contrib", "emulation", "envs", "evaluation", "schemes", "tracetools", "training"}


def test_every_metric_has_a_file_of_its_name() -> None:
    from ccgym.experiments.metrics import METRICS

    for name, kind in METRICS.items():
        assert kind.__module__ == f"ccgym.experiments.metrics.{name}"
        assert kind.__doc__
        assert kind.BETTER in ("higher", "lower", "neither")


# --- Traces --------------------------------------------------------------------------------------------------------


def test_the_installed_package_brings_the_named_paths() -> None:
    link = ROOT / "ccgym" / "_data" / "traces"
    assert link.resolve() == ROOT / "traces"
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    globs = re.findall(r'"(ccgym/_data/traces/[^"]+)"', pyproject)
    packed = {file.resolve() for glob in globs for file in ROOT.glob(glob) if file.is_file()}
    wanted = {f for f in (ROOT / "traces").rglob("*") if f.is_file() and f.suffix in {".yaml", ".trace"}}
    assert sorted(wanted - packed) == [], "name the folder in [tool.maturin] include"
