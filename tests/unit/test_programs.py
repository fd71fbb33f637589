"""External programs among the schemes: their YAML, Pantheon's wrappers, names, styles, what is refused and where."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from ccgym.cli.main import main as cli
from ccgym.config.path import NetworkPath
from ccgym.emulation import programs as asking
from ccgym.emulation.plan import Plan
from ccgym.emulation.programs import ProgramWords, ask
from ccgym.errors import ConfigError, RealPathError
from ccgym.schemes import programs
from ccgym.schemes.flow import flow_spec
from ccgym.schemes.programs import wrapper
from ccgym.schemes.reading import parse_scheme
from tests.refusals import refused

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")

YAML: dict[str, Any] = {
    "label": "Mine",
    "summary": "a program for tests",
    "reference": "here",
    "parameters": {"mode": {"default": "a", "choices": ["a", "b"], "help": "its mode"}},
    "listens": "receiver",
    "receiver": ["{here}/mine.sh", "receive", "{port}"],
    "sender": ["{here}/mine.sh", "send", "{address}", "{port}", "-t{seconds}", "{mode}"],
    "version": ["{here}/mine.sh", "version"],
    "install": "write it",
}


def executable(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A program and its YAML."""
    executable(tmp_path / "mine.sh", "#!/bin/sh\necho mine 1.0\n")
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(YAML))
    return file


def words(text: str) -> ProgramWords:
    choice = parse_scheme(text)
    found = choice.program_words()
    assert found is not None
    return found


# --- Names ---------------------------------------------------------------------------------------------------------


def test_one_that_comes_with_ccgym() -> None:
    choice = parse_scheme("program:iperf3:cca=bbr")
    assert (choice.key, choice.text, choice.title, choice.algorithm) == (
        "program_iperf3_cca_bbr",
        "program:iperf3:cca=bbr",
        "program:iperf3",
        "iperf3",
    )
    assert choice.style.label == "iperf3 (cca bbr)"
    native = flow_spec({"scheme": "program:iperf3", "start": "1s"}).native(0)
    assert (native["scheme"], native["params"]) == ("program:iperf3", {})
    assert "bbr" in words("program:iperf3:cca=bbr").sender
    assert "cubic" in words("program:iperf3").sender


def test_a_file(mine: Path) -> None:
    choice = parse_scheme(f"program:{mine}:mode=b")
    assert (choice.title, choice.key, choice.algorithm) == ("program:mine", "program_mine_mode_b", "mine")
    assert parse_scheme(choice.text) == choice
    assert words(choice.text) == ProgramWords(
        "receiver",
        (f"{mine.parent}/mine.sh", "send", "{address}", "{port}", "-t{seconds}", "b"),
        (f"{mine.parent}/mine.sh", "receive", "{port}"),
    )
    document = Plan(spec={}, programs={1: words(choice.text)}).document(Path("result"))
    assert document["programs"]["1"]["receiver"] == [f"{mine.parent}/mine.sh", "receive", "{port}"]


def test_files_are_found_from_here(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = parse_scheme(f"program:{mine}")
    monkeypatch.chdir(mine.parent)
    assert parse_scheme("program:mine.yaml") == parse_scheme("program:./mine.yaml") == choice


def test_the_version_is_of_all_that_is_known(mine: Path) -> None:
    choice = parse_scheme(f"program:{mine}")
    first = choice.version
    assert (choice.provenance["version"], choice.provenance["sha256"]) == ("mine 1.0", first)
    assert choice.identity == {"scheme": "program:mine", "program": first}
    executable(mine.parent / "mine.sh", "#!/bin/sh\necho mine 1.0 # changed\n")
    assert choice.version != first


# --- YAML ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"lable": "x"}, "unknown-key at mine.yaml:1: lable"),
        ({"listens": "both"}, "unknown-choice at mine.yaml:1: listens"),
        ({"receiver": ["a"]}, "key-missing at mine.yaml:1: receiver"),
        ({"sender": ["a", "{port}"]}, "key-missing at mine.yaml:1: sender"),
        ({"sender": ["a", "{address}", "{port}", "{sekonds}"]}, "unknown-name at mine.yaml:1: sender"),
        ({"version": ["a", "{port}"]}, "unknown-name at mine.yaml:1: version"),
        ({"parameters": {"port": {"default": "1", "help": "x"}}}, "duplicate at mine.yaml:1: parameters"),
        (
            {"parameters": {"mode": {"default": "c", "choices": ["a"], "help": "x"}}},
            "unknown-choice at mine.yaml:1: parameters.mode.default",
        ),
        ({"color": "reddish"}, "unknown-choice at mine.yaml:1: color"),
        ({"label": "\x1b[31m"}, "name-invalid at mine.yaml:1: label"),
        ({"receiver": "a {port}"}, "wrong-type at mine.yaml:1: receiver"),
    ],
)
def test_wrong_yaml(mine: Path, changes: dict[str, Any], word: str) -> None:
    mine.write_text(json.dumps({**YAML, **changes}))
    with refused(ConfigError, word):
        parse_scheme(f"program:{mine}")


def test_what_is_not_here_says_how_to_get_it(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = parse_scheme(f"program:{mine}")
    assert choice.why_unavailable() is None
    mine.write_text(json.dumps({**YAML, "version": ["{here}/absent", "--version"]}))
    assert choice.why_unavailable() == "there is no mine here (write it)"
    mine.write_text(json.dumps({**YAML, "version": ["/bin/sh", "-c", "exit 1"]}))
    assert choice.why_unavailable() == "there is no mine here (write it)"
    monkeypatch.setenv("PATH", str(mine.parent))
    assert cli(["schemes", "show", "program:iperf3"]) == 0
    assert "unavailable: there is no iperf3 here (sudo apt-get install iperf3" in capsys.readouterr().out
    assert cli(["schemes", "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row.get("program")]
    assert ("program:iperf3", False) in [(row["name"], row["available"]) for row in rows]
    found = {one.name: one for one in programs.findings()}
    assert found["program:iperf3"].status == "warn"
    assert "apt-get" in found["program:iperf3"].remedy


def test_one_of_your_own_needs_no_source_and_no_way_to_get_it(mine: Path) -> None:
    own = {name: value for name, value in YAML.items() if name not in ("reference", "install")}
    mine.write_text(json.dumps(own))
    choice = parse_scheme(f"program:{mine}")
    assert choice.why_unavailable() is None
    mine.write_text(json.dumps({**own, "version": ["{here}/absent", "--version"]}))
    reason = choice.why_unavailable()
    assert f"{mine.parent}/absent --version" in reason
    for program in programs.packaged():
        assert program.declared.reference
        assert program.declared.install


# --- Asking a program ------------------------------------------------------------------------------------------------


def test_asking() -> None:
    answer = ask(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], 10, "test")
    assert (answer.status, answer.output, answer.errors) == (3, "out\n", "err\n")
    with refused(RealPathError, "program-unstartable at test"):
        ask(["/nowhere/program"], 10, "test")


def test_one_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; sleep 300 & echo $! > {tmp_path}/child; echo waiting; wait"
    with refused(RealPathError, "no-answer at mine.py setup") as caught:
        ask(["/bin/sh", "-c", script], 0.5, "mine.py setup")
    assert "waiting" in caught.value.found, "what it said last"
    for name in ("pid", "child"):
        process = Path("/proc", (tmp_path / name).read_text().strip(), "cmdline")
        deadline = time.monotonic() + 5
        while process.exists() and process.read_bytes():
            assert time.monotonic() < deadline, f"{name} is left"
            time.sleep(0.01)


def test_a_flood_is_kept_within_bounds() -> None:
    answer = ask(["/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo end"], 30, "test")
    assert answer.output.endswith("xend\n")
    assert len(answer.output) == asking.KEPT_BYTES


def test_a_child_that_keeps_the_output_open_is_not_waited_for() -> None:
    answer = ask(["/bin/sh", "-c", "echo out; sleep 3 & exit 0"], 60, "test")
    assert answer.output == "out\n"


# --- Pantheon's wrappers ---------------------------------------------------------------------------------------------

WRAPPER = """#!/bin/sh
echo "$1" >> {folder}/calls
case "$1" in
    deps) {deps};;
    run_first) echo {first};;
    setup) {setup};;
    setup_after_reboot) ;;
esac
"""
CONFIG = """\
schemes:
  mine:
    name: My Scheme
    color: teal
    marker: '^'
"""


def wrapped(folder: Path, deps: str = "true", first: str = "receiver", setup: str = "echo set up") -> str:
    """A wrapper in Pantheon's layout; the scheme's name."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yml").write_text(CONFIG)
    text = WRAPPER.format(folder=folder, deps=deps, first=first, setup=setup)
    return f"program:{executable(folder / 'wrappers' / 'mine.py', text)}"


def calls(folder: Path) -> list[str]:
    file = folder / "calls"
    found = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a wrapper, with a cache of its own."""
    monkeypatch.setenv("CCGYM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(wrapper, "_READY", {})
    monkeypatch.setattr(wrapper, "BOOT_ID", executable(tmp_path / "boot_id", "first\n"))
    return tmp_path / "pantheon"


def test_a_wrapper(folder: Path) -> None:
    text = wrapped(folder)
    choice = parse_scheme(text)
    style = choice.style
    assert (style.key, style.label, style.color, style.marker) == ("program_mine", "My Scheme", "teal", "^")
    assert (choice.text, choice.title, choice.algorithm) == (text, "program:mine", "mine")
    assert calls(folder) == [], "reading a name runs nothing"
    path = text.removeprefix("program:")
    expected = ProgramWords("receiver", (path, "sender", "{address}", "{port}"), (path, "receiver", "{port}"))
    assert words(text) == expected
    assert calls(folder) == ["deps", "setup", "setup_after_reboot", "run_first"]


def test_sender_first(folder: Path) -> None:
    text = wrapped(folder, first="sender")
    path = text.removeprefix("program:")
    assert words(text) == ProgramWords("sender", (path, "sender", "{port}"), (path, "receiver", "{address}", "{port}"))


def test_setup_is_run_once_and_the_other_once_per_boot(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words(wrapped(folder))
    calls(folder)
    words(wrapped(folder))
    assert calls(folder) == [], "this process knows"
    monkeypatch.setattr(wrapper, "_READY", {})
    words(wrapped(folder))
    assert calls(folder) == ["deps", "run_first"], "the cache knows"
    monkeypatch.setattr(wrapper, "_READY", {})
    wrapper.BOOT_ID.write_text("second\n")
    words(wrapped(folder))
    assert calls(folder) == ["deps", "setup_after_reboot", "run_first"]
    words(wrapped(folder, setup="echo changed"))
    assert calls(folder) == ["deps", "setup", "setup_after_reboot", "run_first"], "another content"


@pytest.mark.skipif(not Path("/usr/bin/dpkg-query").exists(), reason="needs dpkg-query, which Debian and Ubuntu have")
def test_missing_packages_are_named(folder: Path) -> None:
    text = wrapped(folder, deps="echo dpkg no-such-package-1 no-such-package-2")
    choice = parse_scheme(text)
    reason = choice.why_unavailable()
    assert reason == (
        "mine.py needs packages that are not here (sudo apt-get install no-such-package-1 no-such-package-2)"
    )
    with refused(RealPathError, "package-missing at mine.py deps") as caught:
        words(text)
    assert "no-such-package-1 no-such-package-2" in caught.value.hint
    assert "setup" not in calls(folder)
    choice = parse_scheme(wrapped(folder, deps="echo dpkg"))
    assert choice.why_unavailable() is None


@pytest.mark.parametrize("command", ["deps", "setup"])
def test_a_wrapper_that_hangs(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setitem(wrapper.TIMEOUTS_S, command, 0.3)
    text = wrapped(folder, **{command: "echo compiling; sleep 300"})
    choice = parse_scheme(text)
    assert choice.why_unavailable() is None, "that is an error of the run"
    with refused(RealPathError, "no-answer") as caught:
        words(text)
    error = caught.value
    assert error.where == f"mine.py {command}"
    assert "did not end within 0.3 s" in error.found
    assert "compiling" in error.found


def test_a_setup_that_fails_is_run_again(folder: Path) -> None:
    with refused(RealPathError, "program-failed at mine.py setup"):
        words(wrapped(folder, setup="echo no compiler; exit 3"))
    calls(folder)
    with refused(RealPathError, "program-failed at mine.py setup"):
        words(wrapped(folder, setup="echo no compiler; exit 3"))
    assert "setup" in calls(folder)


def test_what_is_no_wrapper(folder: Path, tmp_path: Path) -> None:
    with refused(RealPathError, "protocol-error at mine.py run_first"):
        words(wrapped(folder, first="nobody"))
    plain = tmp_path / "plain.py"
    plain.write_text("")
    with refused(ConfigError, "program-unstartable at --schemes"):
        parse_scheme(f"program:{plain}", "--schemes")
    with refused(ConfigError, "unknown-parameter"):
        parse_scheme(f"{wrapped(folder)}:mode=x")
    executable(plain, "#!/nowhere/python\n")
    with refused(RealPathError, "program-unstartable at plain.py deps"):
        words(f"program:{plain}")


def test_pantheons_file_has_to_make_sense(folder: Path) -> None:
    text = wrapped(folder)
    (folder / "config.yml").write_text(CONFIG.replace("teal", "tael"))
    with refused(ConfigError, "unknown-choice at pantheon/config.yml:4: schemes.mine.color"):
        parse_scheme(text)
    (folder / "config.yml").write_text("schemes:\n  other:\n    name: Other\n")
    assert parse_scheme(text).style.label == "mine"


def test_a_path_may_hold_a_colon(folder: Path) -> None:
    text = wrapped(folder.with_name("run 10:30"))
    assert parse_scheme(text).title == "program:mine"
    assert parse_scheme(text).algorithm == "mine"
    assert parse_scheme("program:iperf3:cca=bbr").algorithm == "iperf3"
    assert os.path.exists(text.removeprefix("program:"))
