"""The kernel's TCP among the schemes: names, styles, seeds, what is refused and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccgym.cli.main import main as cli
from ccgym.config.path import NetworkPath
from ccgym.emulation import kernel_tcp
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.runner import published_results
from ccgym.schemes import kernel, policies
from ccgym.schemes.flow import flow_spec
from ccgym.schemes.groups import compared_schemes
from ccgym.schemes.reading import parse_scheme, scheme_of

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")


@pytest.fixture
def kernel_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel that has Reno, BBR and something of its own; nothing can be loaded."""
    file = tmp_path / "available"
    file.write_text("reno bbr mine\n")
    monkeypatch.setattr(kernel_tcp, "AVAILABLE_FILE", file)
    monkeypatch.setattr(kernel_tcp, "_can_be_set", lambda algorithm: False)
    kernel_tcp.why_unavailable.cache_clear()
    yield file
    kernel_tcp.why_unavailable.cache_clear()


# --- Names ---------------------------------------------------------------------------------------------------------


def test_a_kernel_scheme() -> None:
    choice = parse_scheme("tcp:cubic")
    assert choice == scheme_of("tcp:cubic")
    assert (choice.kernel, choice.key, choice.text, choice.title) == ("cubic", "tcp_cubic", "tcp:cubic", "tcp:cubic")
    assert choice.style.label == "TCP Cubic (kernel)"
    assert scheme_of("cubic").kernel is None


def test_in_lists_and_in_flows() -> None:
    both = parse_contenders("tcp:bbr,bbr,fixed_window:cwnd=5,tcp:mine2go")
    assert [one.key for one in both] == ["tcp_bbr", "bbr", "fixed_window_cwnd_5", "tcp_mine2go"]
    assert flow_spec("tcp:bbr").scheme == "tcp:bbr"
    native = flow_spec({"scheme": "tcp:bbr", "start": "1s"}).native(0)
    assert (native["scheme"], native["params"], native["profile"]) == ("tcp:bbr", {}, "tcp")


# --- What this kernel has ------------------------------------------------------------------------------------------


def test_compared_schemes_where_packets_are_real(kernel_here: Path) -> None:
    simulated, real = compared_schemes(), compared_schemes(real=True)
    assert real[: len(simulated)] == simulated
    assert [choice.name for choice in real[len(simulated) :]] == ["tcp:reno", "tcp:bbr", "tcp:mine"]


def test_what_is_unavailable_says_why(kernel_here: Path) -> None:
    assert kernel_tcp.why_unavailable("bbr") is None
    reason = kernel_tcp.why_unavailable("cubic")
    assert "no cubic" in reason
    assert "reno, bbr, mine" in reason


def test_what_can_be_loaded_is_available(kernel_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_tcp, "_can_be_set", lambda algorithm: algorithm == "vegas")
    assert kernel_tcp.why_unavailable("vegas") is None
    assert kernel_tcp.why_unavailable("hybla") is not None


def test_a_kernel_that_says_nothing(kernel_here: Path) -> None:
    kernel_here.unlink()
    assert kernel_tcp.available() == ()
    assert "does not list" in str(kernel_tcp.why_unavailable("bbr"))


def test_they_are_listed_as_far_as_they_are_there(kernel_here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["name"]: row for row in kernel.descriptions()}
    assert list(rows) == ["tcp:reno", "tcp:bbr", "tcp:mine", "tcp:cubic"]
    assert [row["available"] for row in rows.values()] == [True, True, True, False]
    assert cli(["schemes"]) == 0
    output = capsys.readouterr().out
    assert "kernel TCP, on real paths" in output
    assert "unavailable: this kernel has no cubic" in " ".join(output.split())
    assert cli(["schemes", "--json"]) == 0
    listed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed if row.get("kernel")] == list(rows)
    assert cli(["schemes", "show", "tcp:bbr"]) == 0
    assert "TCP BBR (kernel)" in capsys.readouterr().out


# --- Published numbers ---------------------------------------------------------------------------------------------


def test_what_was_published_was_the_kernels() -> None:
    path = NetworkPath.named("77.72mbps")
    plain = published_results(path)
    assert published_results(path, parse_contenders("bbr,cubic")) == plain
    both = published_results(path, parse_contenders("bbr,tcp:bbr"))
    assert both["tcp_bbr"] == both["bbr"] == plain["bbr"]
    kernel_only = published_results(path, parse_contenders("tcp:bbr"))
    assert kernel_only["tcp_bbr"] == plain["bbr"]
    assert "bbr" not in kernel_only, "once in the table"
    assert "indigo" in kernel_only


def test_published_names_find_our_schemes() -> None:
    """A report writes hyphens; a policy has whatever version; parameters make it something else."""
    path = NetworkPath.named("77.72mbps")
    plain = published_results(path)
    assert plain["synthesized_bbr"].throughput_mbps == 56.63
    synthesized = published_results(path, parse_contenders("synthesized_bbr"))
    assert synthesized["synthesized_bbr"] == plain["synthesized_bbr"]
    assert len(synthesized) == len(plain), "once in the table"
    eagle = published_results(path, parse_contenders("eagle,bbr:startup_gain=2"))
    assert eagle["eagle"] == plain["eagle"]
    assert eagle["bbr"] == plain["bbr"], "in a row of its own"
    assert len(eagle) == len(plain)


def test_published_numbers_stand_beside_every_policy_of_that_name(tmp_path: Path) -> None:
    """With a label and a key of its own, as that of a training run has."""
    aurora = policies.pretrained()["aurora"]
    card = json.loads(aurora.with_name("card.json").read_text())
    (tmp_path / "eagle.json").write_text(json.dumps({**card, "name": "eagle", "label": "Eagle-v3"}))
    (tmp_path / "eagle.onnx").write_bytes(aurora.read_bytes())
    (one,) = parse_contenders(str(tmp_path / "eagle.onnx"))
    path = NetworkPath.named("77.72mbps")
    points = published_results(path, [one])
    assert one.key != "eagle"
    assert points[one.key].label == "Eagle-v3"
    assert "eagle" not in points, "once in the table"
