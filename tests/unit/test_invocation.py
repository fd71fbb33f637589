"""Help, hints and records name the command that the user typed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccgym import invocation
from ccgym.cli.command import Command
from ccgym.cli.common import STATUS_BROKEN_PIPE, STATUS_ERROR, missing_package, run
from ccgym.cli.main import load, main
from tests.refusals import explained

ROOT = Path(__file__).resolve().parents[2]
BARE = [sys.executable, "-S"]
"""Python without any installed package."""


@pytest.fixture(params=["program", "module", "script"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    invocation.called_as(request.param)
    yield request.param
    invocation.called_as("program")


TYPED = {
    "program": ("ccgym evaluate", "ccgym train", "ccgym paths"),
    "module": ("python -m ccgym evaluate", "python -m ccgym train", "python -m ccgym paths"),
    "script": ("python evaluate.py", "python train.py", "ccgym paths"),
}


def test_commands_are_named_as_they_were_typed(way: str) -> None:
    evaluate, train, trace = TYPED[way]
    assert invocation.command("evaluate") == evaluate
    text = "`ccgym evaluate --trace x` and ccgym train, ccgym paths show; ccgym understands /usr/bin/ccgym train"
    wanted = f"`{evaluate} --trace x` and {train}, {trace} show; ccgym understands /usr/bin/ccgym train"
    assert invocation.as_typed(text) == wanted
    assert invocation.as_typed(wanted) == wanted


@pytest.mark.parametrize("name", invocation.COMMANDS)
def test_every_command_has_help_at_every_level(name: str) -> None:
    """And every option is read as its word says; completion has all of them."""

    def visit(command: Command, prog: str) -> None:
        text = command.parser(prog).format_help()
        assert text.startswith(f"usage: {prog}")
        assert max(map(len, text.splitlines())) <= 120
        assert command.run is not None or command.commands
        for below in command.commands:
            assert below.help
            visit(below, f"{prog} {below.name}")

    assert load(name).name == name
    visit(load(name), f"ccgym {name}")


def test_help_is_quick_and_loads_no_matplotlib() -> None:
    code = (
        "import sys; from ccgym.cli.main import load\n"
        "for name in ('evaluate', 'train', 'plot', 'report'): load(name).parser(name).format_help()\n"
        "assert not {'matplotlib', 'torch', 'jinja2', 'pydantic', 'numpy'} & set(sys.modules), 'too much was imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_help_names_the_command(way: str) -> None:
    typed_evaluate, typed_train, _ = TYPED[way]
    evaluate, train = (load(name).parser(f"ccgym {name}").format_help() for name in ("evaluate", "train"))
    assert f"  {typed_evaluate} --trace 77.72mbps" in evaluate
    assert f"  {typed_train} --config aurora" in train
    assert f"  {typed_evaluate} --trace 77.72mbps --schemes runs/" in train
    assert evaluate.startswith(f"usage: {typed_evaluate} ")
    if way != "script":
        assert "evaluate.py" not in evaluate + train
        assert "train.py" not in evaluate + train


def test_records_name_the_command(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--trace", "12mbps", "--schemes", "cubic", "--runs", "1", "--runtime", "1", "--no-figures", "--out", "o"]
    assert main(["evaluate", *words]) == 0
    results = json.loads((tmp_path / "o" / "results.json").read_text())
    assert results["provenance"]["command"] == f"{TYPED[way][0]} {' '.join(words)}"


def test_flags_name_the_command(way: str) -> None:
    from ccgym.evaluation.flags import Flag, flag_dicts

    flag = Flag(level="note", code="gap", subject="path", message="m", cause="c", command="ccgym paths show x")
    assert flag_dicts([flag])[0]["command"] == f"{TYPED[way][2]} show x"


@pytest.mark.parametrize("name", ["evaluate", "train"])
def test_each_way_is_noted(name: str) -> None:
    for words, typed in (
        ([f"{name}.py"], f"python {name}.py"),
        (["-m", "ccgym", name], f"python -m ccgym {name}"),
        (["-m", "ccgym.cli.main", name], f"ccgym {name}"),
    ):
        done = subprocess.run([sys.executable, *words, "--nope"], capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode == STATUS_ERROR
        explained(done.stderr, "command-line")
        assert f"{typed} --help" in done.stderr


@pytest.mark.parametrize("words", [["evaluate.py", "--trace", "12mbps"], ["train.py", "--config", "aurora"],
                                   ["-m", "ccgym", "paths"]])  # fmt: skip
def test_without_the_environment_there_is_one_clear_error(words: list[str]) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([*BARE, *words], capture_output=True, text=True, cwd=ROOT, env=bare, check=False)
    assert done.returncode == STATUS_ERROR
    explained(done.stderr, "package-missing")


@pytest.mark.parametrize(
    ("package", "hint"),
    [
        ("matplotlib", "ccgym[report]"),
        ("torch.nn", "ccgym[train]"),
        ("sklearn.tree", "ccgym[train]"),
        ("rich", "pip install ccgym"),
    ],
)
def test_what_is_missing_names_what_brings_it(
    package: str, hint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ccgym.cli.common.__file__", str(tmp_path / "ccgym" / "cli" / "common.py"))
    error = missing_package(ModuleNotFoundError("missing", name=package))
    assert hint in error.hint
    assert "--no-figures" not in str(error)


def test_other_failures_of_imports_keep_their_traceback() -> None:
    assert missing_package(ImportError("cannot import name 'x' from 'ccgym.config'", name="ccgym.config")) is None

    def broken() -> int:
        raise ImportError("libstdc++.so.6: version not found", name="torch")

    with pytest.raises(ImportError, match="version not found"):
        run(broken)


# --- What every command does alike ------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["describe", "--signals"], ["schemes", "--json"], ["paths", "--traces"]])
def test_a_reader_that_goes_away_has_its_own_status(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "ccgym", *words], stdout=output, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == STATUS_BROKEN_PIPE
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "file-unwritable at a file"),
        (
            IsADirectoryError(errno.EISDIR, "Is a directory", "a", None, "out/table.csv"),
            "file-unwritable at out/table.csv",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "out/x"), "file-unwritable at out/x"),
    ],
)
def test_what_a_disk_refuses_is_explained(error: OSError, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> int:
        raise error

    assert run(body) == STATUS_ERROR
    explained(capsys.readouterr().err, found)


def test_a_missing_file_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(FileNotFoundError):
        run(lambda: Path("/nowhere/at/all").stat().st_size)


@pytest.mark.parametrize("flag", ["-v", "-vv", "--verbose"])
@pytest.mark.parametrize("command", ["evaluate", "train", "compare backends", "pantheon test"])
def test_more_may_be_said_before_and_behind_a_command(
    flag: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([flag, *command.split()], [*command.split(), flag]):
        with pytest.raises(SystemExit) as caught:
            main([*words, "--help"])
        assert caught.value.code == 0
        assert main([*words, "--no-such-option"]) == 2
    assert main([flag, command.split()[0]]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert main([flag, "paths"]) == main(["paths", flag]) == 0


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("evalute", "evaluate"),
        ("repport site", "report"),
        ("--verson", "--version"),
        ("train sedes aurora", "seeds"),
        ("compare backend --trace 12mbps", "compare trainings backend"),
        ("paths shwo 12mbps", "show"),
        ("paths make poison", "poisson"),
        ("evaluate --schmes cubic", "--schemes"),
        ("pantheon test loca", "local"),
        ("evaluate --trace 12mbps --logs al", "all"),
    ],
)
def test_what_does_not_exist_has_near_misses(line: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    hint = capsys.readouterr().err.partition("hint: ")[2]
    assert near in hint


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("gap --trace 12mbps", "compare backends --trace 12mbps"),
        ("windows 12mbps", "paths best-cwnd 12mbps"),
        ("record aurora --seeds 1,2", "train seeds aurora --seeds 1,2"),
        ("record aurora --seeds 1 --figure a.png", "plot curves POLICY -o FILE"),
        ("record genet --seeds 1 --search-figure a.png", "plot searches RUN… -o FILE"),
        ("compare runs/a runs/b", "compare trainings runs/a runs/b"),
        ("path show 12mbps", "paths show 12mbps"),
        ("trace list", "paths --traces"),
        ("trace make poisson", "paths make poisson"),
        ("schemes cubic", "schemes show cubic"),
        ("schema config", "describe --schema config"),
        ("version", "--version"),
        ("evaluate --runs 3 --suite calibrated", "evaluate --experiment"),
        *((f"{name} x", f"report {name} x") for name in ("analyze", "convert", "site", "watch")),
        *((f"{name} x", f"plot {name} x") for name in ("portrait", "tree")),
        ("certificate aurora", "schemes certificate aurora"),
        ("export runs/a", "train export runs/a"),
    ],
)
def test_former_names_print_the_new_one(former: str, now: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(former.split()) == STATUS_ERROR
    said = capsys.readouterr().err
    explained(said, "command-line")
    assert f"now: ccgym {now}\n" in said


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--version"], ["Python 3"]),
        (["--help"], ["examples:", "compare", "--completion"]),
        *((["--completion", one], ["evaluate", "backends", "best-cwnd", "--host-jitter"]) for one in ("bash", "zsh")),
    ],
)
def test_what_the_program_says_without_a_command(
    words: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert all(part in said for part in parts)


WORDS = ["-m", "ccgym", "paths"]


@pytest.mark.parametrize(
    ("redirect", "environment", "status"),
    [(">&-", {}, 0), ("2>&-", {}, 0), (">/dev/null", {"PYTHONIOENCODING": "ascii"}, 0)],
)
def test_output_that_cannot_take_everything_is_no_traceback(
    redirect: str, environment: dict[str, str], status: int
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {redirect}', sys.executable, *WORDS],
        capture_output=True, text=True, env={**os.environ, **environment}, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_a_place_that_is_not_utf_8_is_one_error(tmp_path: Path) -> None:
    out = os.fsencode(tmp_path) + b"/b\xff"
    words = ["evaluate", "--trace", "12mbps", "--schemes", "cubic", "--runs", "1", "--runtime", "1", "--no-figures"]
    command = [os.fsencode(word) for word in [sys.executable, "-m", "ccgym", *words, "--out"]]
    done = subprocess.run([*command, out], capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == STATUS_ERROR
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["evaluate.py"], ["train.py"], ["-m", "ccgym"], ["-c", "import ccgym.invocation as i; exit(i.main())"]]
)
def test_an_interruption_while_commands_are_imported_is_a_line(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith('ccgym.cli.'):\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 130
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(errno.EMFILE, "too many"), OSError(errno.ENOMEM, "no memory")]
)
def test_what_the_machine_refuses_is_an_error(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> int:
        raise error

    assert run(refuse) == STATUS_ERROR
    explained(capsys.readouterr().err, "memory-exceeded" if isinstance(error, MemoryError) else "file-unwritable")
