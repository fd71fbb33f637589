"""Exported policies as schemes: found, loaded, named, run; and what is wrong with those that cannot be."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ccgym
from ccgym.cli.main import main as cli
from ccgym.config.path import NetworkPath
from ccgym.errors import CcgymError, ConfigError, ResultsError
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import contenders, parse_contenders
from ccgym.evaluation.runner import run_experiment
from ccgym.schemes import policies
from ccgym.schemes.flow import FlowSpec, flow_spec
from ccgym.schemes.groups import descriptions
from ccgym.schemes.policy_card import PolicyCard
from ccgym.schemes.reading import parse_scheme, scheme_of
from tests.commands import evaluate
from tests.refusals import refused

ROOT = Path(__file__).resolve().parents[2]
STEADY = Path(__file__).parent / "data" / "policies" / "steady.onnx"
"""Sends faster while the queue adds less than a fifth of the round trip; test_export.py builds it."""
PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="60p", name="test")


@pytest.fixture
def copied(tmp_path: Path) -> Callable[..., Path]:
    """A function that copies the policy, its card changed, and returns the new .onnx file."""

    def copy(folder: str = "", **changes: Any) -> Path:
        target = tmp_path / folder
        target.mkdir(parents=True, exist_ok=True)
        card = json.loads(STEADY.with_suffix(".json").read_text(encoding="utf-8"))
        file = target / f"{changes.get('name', 'steady')}.onnx"
        shutil.copy(STEADY, file)
        file.with_suffix(".json").write_text(json.dumps({**card, **changes}), encoding="utf-8")
        return file

    return copy


@pytest.fixture
def pretrained(copied: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The policy as one that comes with ccgym."""
    file = copied("pretrained")
    monkeypatch.setattr(policies, "pretrained", lambda: {"steady": file})
    return file


# --- Finding -------------------------------------------------------------------------------------------------------


def test_a_pretrained_policy_has_its_name(pretrained: Path) -> None:
    choice = parse_scheme("steady")
    assert (choice.name, choice.title, choice.key, choice.text) == ("learned", "steady", "steady", "steady")
    assert re.fullmatch(r"steady@[0-9a-f]{8}", choice.params["policy"])
    assert choice.style.label == "Steady"
    assert (choice.style.color, choice.style.marker) == ("teal", "D")
    choice = parse_scheme("steady:start_rate_mbps=2")
    assert (choice.key, choice.text) == ("steady_start_rate_mbps_2", "steady:start_rate_mbps=2")
    assert choice.style.label == "Steady (start_rate_mbps 2)"


def test_a_file_has_its_version_in_its_name() -> None:
    choice = parse_scheme(str(STEADY))
    version = choice.params["policy"].partition("@")[2]
    assert (choice.key, choice.text) == (f"steady_{version}", str(STEADY))
    assert choice.style.label == f"Steady ({version})"


def test_a_run_directory_stands_for_its_export(copied: Callable[..., Path], tmp_path: Path) -> None:
    file = copied("my-run/export")
    for text in (tmp_path / "my-run", tmp_path / "my-run" / "export", file):
        choice = parse_scheme(f"{text}:start_rate_mbps=2")
        assert choice.policy.file == file
        assert choice.text == f"{text}:start_rate_mbps=2"
        assert choice.style.label == "Steady (my-run) (start_rate_mbps 2)"


def test_a_run_directory_in_the_working_directory(
    copied: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied("mine/export")
    monkeypatch.chdir(tmp_path)
    assert parse_scheme("mine").title == "steady"


def test_colons_in_a_path_are_no_parameters(copied: Callable[..., Path], tmp_path: Path) -> None:
    copied("run-12:30:05/export")
    choice = parse_scheme(f"{tmp_path}/run-12:30:05:start_cwnd=4")
    assert dict(choice.settings) == {"start_cwnd": 4}


def test_a_version_can_be_asked_for(pretrained: Path) -> None:
    policy = parse_scheme("steady").policy
    assert parse_scheme(policy.key).policy == policy
    assert scheme_of("learned", {"policy": policy.key}).checked().policy == policy
    with refused(ConfigError, "policy-version"):
        parse_scheme("steady@00000000")


def test_the_version_is_that_of_the_behavior(copied: Callable[..., Path]) -> None:
    card = PolicyCard.from_json(STEADY.with_suffix(".json").read_text(encoding="utf-8"))
    agent = {**card.agent, "decision_latency": 1_000_000}
    digest = {
        name: policies.read_card(copied(name, **change)).digest
        for name, change in (
            ("same", {}),
            ("label", {"label": "Other", "training": {"seed": 3}}),
            ("agent", {"agent": agent}),
            ("profile", {"profile": "tcp"}),
        )
    }
    assert digest["same"] == digest["label"] == card.digest
    assert len({card.digest, digest["agent"], digest["profile"]}) == 3


def test_schemes_that_look_alike_get_other_markers(copied: Callable[..., Path], pretrained: Path) -> None:
    agent = json.loads(pretrained.with_suffix(".json").read_text(encoding="utf-8"))["agent"]
    other = copied("other", agent={**agent, "decision_latency": 1_000_000})
    made = [one.style for one in parse_contenders(f"steady,{other},cubic")]
    assert len({style.key for style in made}) == 3
    assert len({(style.color, style.marker) for style in made}) == 3
    assert made[0].marker == "D"


# --- What cannot be used -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("no/such/file.onnx", "policy-unreadable at --schemes: no/such/file.onnx"),
        ("no/such/run", "policy-unreadable at --schemes: no/such/run"),
        ("learned:start_cwnd=20", "policy-missing at --schemes"),
        ("learned:policy=5", "policy-missing at --schemes"),
        ("learned:policy=staedy", "unknown-scheme at --schemes"),
        ("steady:policy=other", "parameter-invalid at --schemes"),
        ("steady:start_rate_mbps=fast", "parameter-invalid at --schemes: scheme learned, parameter start_rate_mbps"),
        ("steady:start_rate=2", "unknown-parameter at --schemes: scheme learned"),
        ("steady,steady", "duplicate at --schemes"),
        ("staedy", "unknown-scheme at --schemes"),
        ("cubci", "unknown-scheme at --schemes"),
    ],
)
def test_wrong_choices(pretrained: Path, text: str, word: str) -> None:
    with refused(CcgymError, word):
        parse_contenders(text, "--schemes")


def _edit(**changes: Any) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        card = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
        card = {key: value for key, value in {**card, **changes}.items() if value is not None}
        file.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")

    return edit


def _spoil(file: Path) -> None:
    """A network that is none, with the right hash in the card."""
    file.write_bytes(b"no network")
    _edit(onnx_sha256=hashlib.sha256(b"no network").hexdigest())(file)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda file: file.with_suffix(".json").unlink(), "card-missing at steady.json"),
        (lambda file: file.write_bytes(file.read_bytes() + b"\0"), "policy-changed at steady.onnx"),
        (lambda file: file.with_suffix(".json").write_text("{"), "card-invalid at steady.json"),
        (lambda file: file.with_suffix(".json").write_text("[]"), "card-invalid at steady.json"),
        (lambda file: file.with_suffix(".json").write_bytes(b"\xff"), "card-invalid at steady.json"),
        (_edit(format=2), "policy-version at steady.json"),
        (_edit(format="one"), "policy-version at steady.json"),
        (_edit(agent=None), "card-invalid at steady.json"),
        (_edit(label=7), "card-invalid at steady.json: label"),
        (_edit(name="../evil"), "card-invalid at steady.json: name"),
        (_edit(onnx_sha256="12"), "card-invalid at steady.json: onnx_sha256"),
        (_edit(profile="quic"), "card-invalid at steady.json: profile"),
        (_edit(policy={"kind": "cnn"}), "card-invalid at steady.json: policy.kind"),
        (_edit(policy={"kind": "mlp", "observation_size": True}), "card-invalid at policy.observation_size"),
        (_edit(policy={"kind": "mlp", "observation_size": 3, "state_size": 0, "action_size": 1}), "shape-mismatch"),
        (_edit(agent={"name": "x", "wheels": 4}), "policy-unreadable at steady.onnx: card"),
        (_spoil, "policy-unreadable at steady.onnx: ONNX file"),
    ],
)  # fmt: skip
def test_broken_exports(change: Callable[[Path], None], what: str, copied: Callable[..., Path]) -> None:
    file = copied("broken")
    change(file)
    with refused(ConfigError, what):
        parse_scheme(str(file), "--schemes")


def test_a_run_with_no_or_several_exports(copied: Callable[..., Path], tmp_path: Path) -> None:
    with refused(ConfigError, "policy-missing"):
        parse_scheme(f"{tmp_path}/")
    copied("run/export")
    copied("run/export", name="other")
    with refused(ConfigError, "policy-ambiguous at run"):
        parse_scheme(str(tmp_path / "run"))


def test_an_export_older_than_the_model(copied: Callable[..., Path], tmp_path: Path) -> None:
    model = tmp_path / "run" / "best" / "model.zip"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"first")
    digest = hashlib.sha256(b"first").hexdigest()
    file = copied("run/export", training={"checkpoint": {"file": "best/model.zip", "sha256": digest}})
    assert parse_scheme(str(tmp_path / "run")).title == "steady"
    model.write_bytes(b"second")
    with refused(ConfigError, "policy-stale at run"):
        parse_scheme(str(tmp_path / "run"))
    assert parse_scheme(str(file)).title == "steady"


# --- Running -------------------------------------------------------------------------------------------------------


def test_it_runs_like_any_scheme(pretrained: Path) -> None:
    run = ccgym.simulate(PATH, flows=["steady"], duration="5s", seed=3)
    (flow,) = run.flows
    assert flow.scheme == "steady"
    assert 6 < flow.throughput_mbps <= 12
    # It backs off before the queue is full, which would be 70 ms.
    assert 10 < flow.delay_p95_ms < 50
    assert flow.lost_packets == 0
    assert flow.retransmissions == 0
    assert ccgym.simulate(PATH, flows=["steady"], duration="5s", seed=3).trajectory_hash == run.trajectory_hash


def test_many_flows_beside_others(pretrained: Path) -> None:
    flows = ["steady", {"scheme": "steady", "start": "1s", "params": {"start_rate_mbps": 4}}, str(STEADY), "cubic"]
    run = ccgym.simulate(PATH, flows=flows, duration="4s")
    assert [flow.scheme for flow in run.flows] == ["steady", "steady", "steady", "cubic"]
    assert all(flow.sent_packets > 50 for flow in run.flows)


def test_the_start_can_be_set(pretrained: Path) -> None:
    slow, fast = (
        ccgym.simulate(PATH, flows=[f"steady:start_rate_mbps={rate}"], duration="500ms").flows[0] for rate in (1, 8)
    )
    assert fast.sent_packets > 2 * slow.sent_packets


def test_the_transport_is_the_card_s_unless_asked_for(copied: Callable[..., Path], pretrained: Path) -> None:
    assert flow_spec("steady").profile == "udp"
    assert flow_spec({"scheme": "steady", "profile": "tcp"}).profile == "tcp"
    assert flow_spec(FlowSpec(scheme="steady", start="1s")).profile == "udp"
    assert flow_spec(FlowSpec(scheme="steady", profile="tcp")).profile == "tcp"
    assert flow_spec(str(copied("other", profile="tcp"))).profile == "tcp"
    assert flow_spec("cubic").profile == "tcp"
    assert flow_spec(flow_spec("steady")) == flow_spec("steady")


def test_neither_torch_nor_onnx_is_loaded() -> None:
    code = (
        "import sys, ccgym\n"
        "path = ccgym.NetworkPath(rate='12mbps', rtt='20ms', queue='60p')\n"
        f"ccgym.simulate(path, flows=[{str(STEADY)!r}], duration='1s')\n"
        "print(sorted({'torch', 'onnx', 'onnxruntime', 'stable_baselines3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- Evaluating ----------------------------------------------------------------------------------------------------


def experiment(*texts: str, **settings: Any) -> Experiment:
    return Experiment(path=PATH, schemes=contenders(texts), runtime_ns=1_000_000_000, **{"runs": 2, **settings})


def test_an_experiment_looks_names_up(pretrained: Path) -> None:
    (one,) = Experiment(path=PATH, schemes=contenders([scheme_of("steady")])).schemes
    assert one.choice.policy is not None


def test_all_versions_meet_the_same_losses(copied: Callable[..., Path], pretrained: Path) -> None:
    both = Experiment(path=PATH, schemes=contenders(["steady", str(copied("other", profile="tcp"))]))
    one, other = both.schemes
    assert one.key != other.key
    assert both.run_seed(one, 1) == both.run_seed(other, 1) != both.run_seed(one, 2)


def test_results_say_which_policy_it_was(pretrained: Path, tmp_path: Path) -> None:
    results = run_experiment(experiment("steady", "cubic", flows=2), tmp_path / "out", logs="first")
    assert not results.failures
    assert [style.label for style in results.styles] == ["Steady", "TCP Cubic"]
    card = policies.read_card(pretrained)
    assert results.parameters["policies"] == {"steady": card.digest}
    recorded = results.provenance["policies"]["steady"]
    assert (recorded["sha256"], recorded["onnx_sha256"]) == (card.digest, card.onnx_sha256)
    assert (tmp_path / "out" / "steady_stats_run1.log").exists()
    assert ResultSet.load(tmp_path / "out").trajectory_hash == results.trajectory_hash
    again = run_experiment(experiment("steady", "cubic", flows=2), tmp_path / "out")
    assert [cell.started_epoch_s for cell in again.cells] == [cell.started_epoch_s for cell in results.cells]


def test_runs_of_another_version_are_not_taken_over(copied: Callable[..., Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    copied("run/export")
    run_experiment(experiment(str(run), runs=1), tmp_path / "out")
    copied("run/export", profile="tcp")
    with refused(ResultsError, "directory-taken at out"):
        run_experiment(experiment(str(run), runs=1), tmp_path / "out")


def test_classic_experiments_are_what_they_were() -> None:
    assert "policies" not in experiment("cubic").parameters()


# --- Command lines -------------------------------------------------------------------------------------------------


def test_the_command_line_takes_a_run_directory(
    copied: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied("run/export")
    words = ["--trace", "12mbps", "--runs", "1", "--runtime", "1", "--no-figures", "--logs", "none", "--json"]
    assert evaluate([*words, "--schemes", f"{tmp_path / 'run'},cubic", "--out", str(tmp_path / "out")]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in results["summary"]] == ["Steady (run)", "TCP Cubic"]


def test_schemes_are_listed_with_the_pretrained_ones(pretrained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["name"] for row in descriptions()][-1] == "steady"
    assert cli(["schemes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("steady") and "start_rate_mbps" in line for line in lines)
    assert cli(["schemes", "show", "steady"]) == 0
    shown = capsys.readouterr().out
    assert "mlp, 2 features; over udp" in shown
    assert "start_cwnd" in shown
    assert cli(["schemes", "show", "steady", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["card"]["name"] == "steady"
