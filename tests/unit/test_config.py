"""The strict YAML loader: what it reads, what it refuses, and where it says the mistake is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from ccgym.config.configurations import PACKAGED
from ccgym.config.models import Loss
from ccgym.config.path import NetworkPath, PathField
from ccgym.config.quantities import RateField, TimeField
from ccgym.config.yaml_loader import MAX_PROBLEMS, Loaded, apply_override, load_model, load_yaml, parse_yaml
from ccgym.errors import ConfigError, PathNotFoundError, UnitError
from tests.refusals import refused


class Link(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: RateField
    delay: TimeField = 0


class Experiment(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    link: Link
    runs: int = 5
    tags: tuple[str, ...] = ()
    path: PathField | None = None


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_reads_scalars_by_the_rules_of_yaml_1_2() -> None:
    text = "a: 1e-3\nb: 5\nc: true\nd: ~\ne: 'yes'\nf: 2019-10-22\ng: 77.72mbps\nh: [1, .5, x]\ni: {on: 1s}\nj: '010'\n"
    assert parse_yaml(text, "x").data == {
        "a": 0.001, "b": 5, "c": True, "d": None, "e": "yes", "f": "2019-10-22", "g": "77.72mbps", "h": [1, 0.5, "x"],
        "i": {"on": "1s"}, "j": "010",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: 1\nb: 2\na: 3\n", "duplicate at x.yaml:3"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "duplicate at x.yaml:4"),
        ("ecn: yes\n", "yaml-ambiguous at x.yaml:1"),
        ("ecn: Off\n", "yaml-ambiguous at x.yaml:1"),
        ("a: [1, no]\n", "yaml-ambiguous at x.yaml:1"),
        ("a: 010\n", "yaml-ambiguous at x.yaml:1"),
        ("a: 1:30\n", "yaml-ambiguous at x.yaml:1"),
        ("a: &x 1\n", "yaml-feature at x.yaml:1"),
        ("a: *x\n", "yaml-feature at x.yaml:1"),
        ("a: !!str 5\n", "yaml-feature at x.yaml:1"),
        ("a: !!python/name:os.system\n", "yaml-feature at x.yaml:1"),
        ("<<: {a: 1}\n", "yaml-ambiguous at x.yaml:1"),
        ("12: a\n", "yaml-ambiguous at x.yaml:1"),
        ("? [a]\n: 1\n", "yaml-ambiguous at x.yaml:1"),
        ("a: 1\n---\nb: 2\n", "yaml-feature at x.yaml:2"),
        ("a:\n\tb: 1\n", "yaml-syntax at x.yaml:2"),
        ("a: b: c\n", "yaml-syntax at x.yaml:1"),
        ("[" * 100, "too-large at x.yaml:1"),
    ],
)
def test_refuses_the_traps_of_yaml(
    text: str,
    what: str,
) -> None:
    with refused(ConfigError, what):
        parse_yaml(text, "x.yaml")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("link:\n  rate: 5mbps\nruns: many\n", "wrong-type at f.yaml:3: runs"),
        ("link:\n  rate: 5mbps\n  dealy: 3ms\n", "unknown-key at f.yaml:3: link.dealy"),
        ("runs: 3\n", "key-missing at f.yaml"),
        ("link:\n  rate: 50\n", "unit-missing at f.yaml:2: link.rate"),
        ("link:\n  rate: 5mbps\ntags:\n  - a\n  - [b]\n", "wrong-type at f.yaml:5: tags[1]"),
        ("- 1\n", "not-a-mapping at f.yaml"),
        ("link:\n  rate: 5mbps\npath:\n  rate: 5mbps\n  rtt: -15\n", "out-of-range at f.yaml:5: path: rtt"),
        (
            "link: {rate: 5mbps}\npath:\n  rate: 5mbps\n  rtt: 1ms\n  queue:\n    kind: codel\n    limt: 9p\n",
            "unknown-key at f.yaml:7: path: queue.limt",
        ),
    ],
)
def test_names_file_line_and_key(tmp_path: Path, text: str, what: str) -> None:
    file = write(tmp_path, "f.yaml", text)
    with refused(ConfigError, what):
        load_model(file, Experiment)


def test_names_further_problems(tmp_path: Path) -> None:
    file = write(tmp_path, "f.yaml", "link: {rate: 5}\nruns: x\nfoo: 1\n")
    with refused(ConfigError, "unit-missing at f.yaml:1: link.rate") as caught:
        load_model(file, Experiment)
    assert all(f"{file}:{place}: " in caught.value.hint for place in ("2: runs", "3: foo"))


def test_does_not_list_problems_without_end(tmp_path: Path) -> None:
    unknown = "".join(f"key{place}: 1\n" for place in range(MAX_PROBLEMS + 4))
    with refused(ConfigError, "unknown-key at f.yaml:2: key0") as caught:
        load_model(write(tmp_path, "f.yaml", "link: {rate: 5mbps}\n" + unknown), Experiment)
    assert caught.value.hint.count("f.yaml:") == MAX_PROBLEMS


def test_a_mapping_sets_single_keys(tmp_path: Path) -> None:
    file = write(tmp_path, "f.yaml", "link: {rate: 5mbps}\nruns: 2\ntags: [a, b]\n")
    by_words = load_model(file, Experiment, ["link.rate=7mbps", "tags.1=c"])
    assert load_model(file, Experiment, {"link.rate": "7mbps", "tags.1": "c"}) == by_words
    for name, what in (
        ("tags.2", "unknown-key at set['tags.2']"),
        ("link.rate.x", "not-a-mapping at set['link.rate.x']"),
        ("link..rate", "text-malformed at set['link..rate']"),
        ("", "text-malformed at set['']"),
        (5, "unknown-key at set[5]: 5"),
    ):
        with refused(ConfigError, what):
            load_model(file, Experiment, {name: 1})


def test_extends_one_level(tmp_path: Path) -> None:
    write(tmp_path, "base.yaml", "link:\n  rate: 5mbps\n  delay: 3ms\nruns: 2\ntags: [a, b]\n")
    top = write(tmp_path, "top.yaml", "extends: base.yaml\nlink:\n  delay: 7ms\ntags: [c]\n")
    model = load_model(top, Experiment)
    assert (model.link.rate, model.link.delay, model.runs, model.tags) == (5_000_000, 7_000_000, 2, ("c",))
    loaded = load_yaml(top)
    assert loaded.where(("link", "rate")) == f"{tmp_path / 'base.yaml'}:2: link.rate"
    assert loaded.where(("link", "delay")) == f"{top}:3: link.delay"

    # Of another kind, the keys are others.
    write(tmp_path, "base.yaml", "map: {kind: a, x: 1}\nsame: {kind: a, x: 1}\nplain: {kind: a, x: 1}\n")
    kinds = "extends: base.yaml\nmap: {kind: b, y: 2}\nsame: {kind: a, y: 2}\nplain: {y: 2}\n"
    both = {"kind": "a", "x": 1, "y": 2}
    loaded = load_yaml(write(tmp_path, "kinds.yaml", kinds))
    assert loaded.data == {"map": {"kind": "b", "y": 2}, "same": both, "plain": both}
    assert ("map", "x") not in loaded.lines
    # So they are of another algorithm; elsewhere a name is only a name.
    write(tmp_path, "base.yaml", "algorithm: {name: a, x: 1}\nagent: {name: a, x: 1}\n")
    named = "extends: base.yaml\nalgorithm: {name: b, y: 2}\nagent: {name: b, y: 2}\n"
    loaded = load_yaml(write(tmp_path, "named.yaml", named))
    assert loaded.data == {"algorithm": {"name": "b", "y": 2}, "agent": {"name": "b", "x": 1, "y": 2}}

    write(tmp_path, "base.yaml", "extends: other.yaml\n")
    with refused(ConfigError, "yaml-feature at top.yaml:1: extends"):
        load_model(top, Experiment)
    write(tmp_path, "base.yaml", "runs: yes\n")
    with refused(ConfigError, "yaml-ambiguous at base.yaml:1"):
        load_model(top, Experiment)
    (tmp_path / "base.yaml").unlink()
    with refused(ConfigError, "file-unreadable at base.yaml"):
        load_model(top, Experiment)


def test_lists_are_changed_by_name(tmp_path: Path) -> None:
    base = "terms:\n  - {term: a, weight: 1}\n  - {term: b, name: bb}\n  - c\nsteps: [[0, 1]]\nmap: [x]\n"
    write(tmp_path, "base.yaml", base)
    top = "extends: base.yaml\nterms:\n  bb: null\n  a:\n    weight: 2\n  c: {weight: 3}\n  d: {weight: 4}\n"
    path = write(tmp_path, "top.yaml", top + "steps: {uniform: [0, 1]}\nmap: {kind: k}\n")
    loaded = load_yaml(path)
    assert loaded.data == {
        "terms": [{"term": "a", "weight": 2}, {"term": "c", "weight": 3}, {"term": "d", "weight": 4}],
        "steps": {"uniform": [0, 1]},  # no names: replaced
        "map": {"kind": "k"},  # one of another form
    }
    assert loaded.where(("terms", 0, "term")) == f"{tmp_path / 'base.yaml'}:2: terms[0].term"
    assert loaded.where(("terms", 0, "weight")) == f"{path}:5: terms[0].weight"
    assert loaded.where(("terms", 2, "weight")) == f"{path}:7: terms[2].weight"
    with refused(ConfigError, "unknown-name at top.yaml:2: terms"):
        load_yaml(write(tmp_path, "top.yaml", "extends: base.yaml\nterms: {bbb: null}\n"))


def test_what_belongs_to_another_policy_is_not_taken_over(tmp_path: Path) -> None:
    base = """
name: base
agent: {clock: 1, action: {map: {kind: multiply, delta: 1}, bounds: [-40, 40], scale: 0.1, target: rate}}
algorithm: {log_std_init: 2.0, gamma: 0.9}
environment: {path: 12mbps, episode: {steps: 3}}
style: {label: Base, reference: a paper}
"""
    write(tmp_path, "base.yaml", base)
    whole = load_yaml(write(tmp_path, "same.yaml", "extends: base.yaml\nagent: {action: {map: {delta: 2}}}\n"))
    assert whole.dropped == []
    assert whole.data["style"] == {"label": "Base", "reference": "a paper"}
    assert whole.data["agent"]["action"]["bounds"] == [-40, 40]
    assert whole.inherited() == ["name", "agent.clock", "algorithm", "environment", "style"]
    top = "extends: base.yaml\nname: mine\nagent: {action: {map: {kind: pair}}}\nenvironment: {paths: calibrated}\n"
    loaded = load_yaml(write(tmp_path, "top.yaml", f"{top}style: {{color: red}}\n"))
    assert loaded.data["style"] == {"color": "red"}
    assert loaded.data["agent"]["action"] == {"map": {"kind": "pair"}, "target": "rate"}
    assert loaded.data["algorithm"] == {"gamma": 0.9}
    assert loaded.data["environment"] == {"paths": "calibrated", "episode": {"steps": 3}}
    assert set(loaded.dropped) == {
        "style", "agent.action.bounds", "agent.action.scale", "algorithm.log_std_init", "environment.path",
    }  # fmt: skip
    assert loaded.inherited() == ["agent.clock", "algorithm", "environment.episode"]


@pytest.mark.parametrize("name", ["aurora.yaml", "configs/aurora.yaml", "aurora"])
def test_extends_what_comes_with_ccgym(name: str, tmp_path: Path) -> None:
    loaded = load_yaml(write(tmp_path, "mine.yaml", f"extends: {name}\nname: mine\n"))
    whole = {**load_yaml(PACKAGED / "aurora.yaml").data, "name": "mine"}
    assert loaded.data == {key: value for key, value in whole.items() if key != "style"}
    # A file of the same name extends the packaged one, and not itself.
    assert load_yaml(write(tmp_path, "aurora.yaml", "extends: aurora.yaml\nname: mine\n")).data == loaded.data
    # What lies next to it comes first.
    write(tmp_path, "indigo.yaml", "name: other\n")
    assert load_yaml(write(tmp_path, "top.yaml", "extends: indigo.yaml\n")).data == {"name": "other"}


@pytest.mark.timeout(30)
def test_only_regular_files_are_configurations(tmp_path: Path) -> None:
    for name in ("/dev/zero", "."):
        top = write(tmp_path, "top.yaml", f"extends: {name}\n")
        with refused(ConfigError, "file-unreadable"):
            load_yaml(top)


def test_overrides_go_through_the_same_validation(tmp_path: Path) -> None:
    file = write(tmp_path, "f.yaml", "link:\n  rate: 5mbps\ntags: [a, b]\n")
    model = load_model(file, Experiment, ["link.rate=9mbps", "runs=7", "tags.1=z", "path=77.72mbps"])
    assert (model.link.rate, model.runs, model.tags) == (9_000_000, 7, ("a", "z"))
    assert model.path.name == "77.72mbps"
    with refused(UnitError, "out-of-range at link.delay"):
        load_model(file, Experiment, ["link.delay=-40"])
    with refused(PathNotFoundError, "unknown-path at f.yaml"):
        load_model(file, Experiment, ["path=77.72mbs"])


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("runs", "text-malformed at --set"),
        ("delay", "text-malformed at --set"),
        ("nothing-like-it", "text-malformed at --set"),
        ("=5", "text-malformed at --set"),
        ("a..b=5", "text-malformed at --set"),
        ("tags.9=x", "unknown-key at --set tags.9=x"),
        ("runs.x=1", "not-a-mapping at --set runs.x=1"),
        ("runs=yes", "yaml-ambiguous at --set runs=yes:1"),
        ("runs=[1", "yaml-syntax at --set runs=[1:2"),
    ],
)
def test_refuses_overrides(override: str, part: str) -> None:
    loaded = Loaded({"runs": 5, "tags": ["a", "b"]}, {}, "f")
    with refused(ConfigError, part):
        apply_override(loaded, override, Experiment)


def test_unreadable_files(tmp_path: Path) -> None:
    with refused(ConfigError, "file-unreadable at none.yaml"):
        load_yaml(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    with refused(ConfigError, "not-utf8 at latin.yaml:2"):
        load_yaml(tmp_path / "latin.yaml")


def test_a_path_is_a_value() -> None:
    one = NetworkPath(rate="5mbps", rtt="9ms", elements=[Loss(probability="1%")], name="mine")
    assert hash(one) == hash(NetworkPath(rate="5mbps", rtt="9ms", loss="1%", name="mine"))
    with pytest.raises(ValidationError):
        one.name = "other"  # type: ignore[misc]
