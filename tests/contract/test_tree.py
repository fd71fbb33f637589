"""The tree keeps its promises: CONTRIBUTING's recipes are true, registries match folders, docs are complete."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


# --- The recipe table ----------------------------------------------------------------------------------------------


def recipe_rows() -> list[dict[str, str]]:
    """The rows of the table under "Where a change goes"."""
    section = CONTRIBUTING.split("## Where a change goes", 1)[1].split("\n### ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    heads = [head.strip("| ") for head in cells[0]]
    return [dict(zip(heads, row, strict=True)) for row in cells[2:]]


def paths_in(cell: str) -> list[str]:
    """The code spans of a cell that name files: they have a folder and an ending."""
    return [span for span in re.findall(r"`([^`]+)`", cell) if re.fullmatch(r"[\w./<>-]+/[\w./<>-]*\.\w+", span)]


ROWS = recipe_rows()


def test_the_recipe_table_is_read() -> None:
    assert len(ROWS) >= 6
    assert all(row.keys() == {"To add", "Touch", "Comes free", "Worked example"} for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row["To add"] for row in ROWS])
def test_every_recipe_names_files_that_exist(row: dict[str, str]) -> None:
    touched, examples = paths_in(row["Touch"]), paths_in(row["Worked example"])
    assert touched, "the row names no file to touch"
    assert examples, "the row has no worked example"
    for example in examples:
        assert (ROOT / example).is_file(), f"worked example {example} does not exist"
    for pattern in touched:
        found = {str(file.relative_to(ROOT)) for file in ROOT.glob(re.sub(r"<\w+>", "*", pattern))}
        assert found, f"{pattern}: nothing in the tree looks like it"
    # The worked example is an instance of what the row says to touch.
    shapes = [re.sub(r"<\\?\w+>", r"[^/]+", re.escape(pattern)) for pattern in touched]
    assert any(re.fullmatch(shape, example) for shape in shapes for example in examples)


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/index.md"])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if not t.startswith(("http", "#"))]
    missing = [target for target in targets if target and not (ROOT / page).parent.joinpath(target).exists()]
    assert missing == []


def python_blocks(page: str) -> list[str]:
    """The examples of a page, in order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_s_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    simulate, learn = python_blocks("README.md")
    exec(compile(simulate, "README.md", "exec"), {})
    throughput, delay, loss = map(float, capsys.readouterr().out.split())
    assert 0 < throughput <= 32
    assert delay > 7.5
    assert 0 <= loss < 1
    exec(compile(learn, "README.md", "exec"), {})
    reward, delivered = map(float, capsys.readouterr().out.split())
    assert -10 < reward < 1
    assert 0 < delivered <= 6, "Aurora's links have at most 6 Mbit/s"


@pytest.mark.parametrize("page", ["agents", "environments", "traces", "evaluation", "results"])
def test_the_examples_of_these_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself, as a reader copies it; those of the pages on results one after the other."""
    monkeypatch.chdir(tmp_path)
    page, in_order = f"docs/{page}.md", page in ("evaluation", "results")
    names: dict[str, object] = {}
    examples = python_blocks(page)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), names if in_order else {})


def test_every_kind_of_path_distribution_has_an_example() -> None:
    """In docs/environments.md, of its own key ``kind``; each is understood and draws."""
    import numpy as np

    from ccgym.config.curriculum import CURRICULA, curriculum_of, read_paths
    from ccgym.config.distributions import KINDS
    from ccgym.config.yaml_loader import parse_yaml

    page = "docs/environments.md"
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    examples = [parse_yaml(block, page).data["paths"] for block in blocks]
    assert {example["kind"] for example in examples} == {*KINDS, *CURRICULA}
    for example in examples:
        drawn = curriculum_of(read_paths(example)).distribution(0.0).sample(np.random.default_rng(1))
        assert drawn.uplink or drawn.links


def test_every_page_can_be_reached() -> None:
    """From docs/index.md, by links."""
    docs = ROOT / "docs"
    reached: set[Path] = set()
    todo = [docs / "index.md"]
    while todo:
        page = todo.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        todo += [(page.parent / link.split("#")[0]).resolve() for link in links if not link.startswith("http")]
    assert sorted(str(page.relative_to(docs)) for page in set(docs.rglob("*.md")) - reached) == []


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


def test_every_registered_scheme_is_documented() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    missing = [s["name"] for s in registered() if f"`{s['name']}`" not in pages]
    assert missing == [], "run `make docs`"


SECTIONS = ["What it does", "Rules", "Where it differs from its source", "What is tested"]


@pytest.mark.parametrize("name", [str(s["name"]) for s in registered() if s["role"] != "tool"])
def test_a_scheme_has_a_page_and_a_figure(name: str) -> None:
    page = ROOT / "docs" / "schemes" / f"{name}.md"
    assert page.is_file(), "copy docs/schemes/vegas.md"
    assert re.findall(r"(?m)^## (.*)$", page.read_text(encoding="utf-8")) == SECTIONS
    assert (ROOT / "docs" / "img" / "schemes" / f"{name}.png").is_file(), "run `make figures`"


def test_the_generated_pages_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "docs.py"), "--check"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- Packages ----------------------------------------------------------------------------------------------------


def opening(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


@pytest.mark.parametrize("package", sorted((ROOT / "ccgym").glob("*/__init__.py")), ids=lambda file: file.parent.name)
def test_a_package_opens_with_what_it_holds_and_may_import(package: Path) -> None:
    said = opening(package)
    assert "\nMay import " in said
    listed = set(re.findall(r"^``(\w+)``  ", said, re.MULTILINE))
    if package.parent.name != "cli":  # whose files are its commands
        files = {file.stem for file in package.parent.glob("*.py")} - {"__init__", "__main__", "control_pb2"}
        folders = {file.parent.name for file in package.parent.glob("*/__init__.py")}
        assert listed - {"__main__", "templates"} == files | folders


# --- Agents --------------------------------------------------------------------------------------------------------


def vocabulary(section: str) -> list[str]:
    """Names in a section of what an agent can be made of, as compiled."""
    import ccgym._core as core

    return [row["name"] for row in json.loads(core.agent_vocabulary())[section]]


def test_models_have_every_reward_term_and_action_map() -> None:
    from ccgym.config.declared import kinds_of
    from ccgym.config.models.actions import AnyMap
    from ccgym.config.models.rewards import AnyTerm

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
    text = (ROOT / "crates" / "ccgym-link" / "src" / "spec.rs").read_text(encoding="utf-8")
    body = text.split(f"pub enum {enum} {{", 1)[1].split("\n}\n", 1)[0]
    names = re.findall(r"^    (\w+)(?:,| \{)", body, re.MULTILINE)
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names}


def implementations(folder: str, trait: str) -> set[str]:
    """The files of a folder that implement a trait."""
    files = (ROOT / "crates" / "ccgym-link" / "src" / folder).glob("*.rs")
    return {
        file.stem
        for file in files
        if re.search(rf"^impl(?:<[^>]*>)? {trait} for ", file.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_every_queue_discipline_has_its_variant_and_its_file() -> None:
    assert implementations("queue", "QueueDiscipline") == variants("QueueSpec")


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
    assert touching <= {"config", "emulation", "envs", "evaluation", "schemes", "tracetools", "training"}


# --- Traces --------------------------------------------------------------------------------------------------------


def test_the_installed_package_brings_the_named_paths() -> None:
    link = ROOT / "ccgym" / "_data" / "traces"
    assert link.resolve() == ROOT / "traces"
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    globs = re.findall(r'"(ccgym/_data/traces/[^"]+)"', pyproject)
    packed = {file.resolve() for glob in globs for file in ROOT.glob(glob) if file.is_file()}
    wanted = {f for f in (ROOT / "traces").rglob("*") if f.is_file() and f.suffix in {".yaml", ".trace"}}
    assert sorted(wanted - packed) == [], "name the folder in [tool.maturin] include"
