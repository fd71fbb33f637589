"""Runs between two machines: who they are, and what reports say of it. The simulator stands for what lies between."""

from __future__ import annotations

import gzip
import json
import shlex
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym import _core
from ccgym.cli.main import main as program
from ccgym.cli.pantheon import evaluate_words
from ccgym.cli.remote import remote_path
from ccgym.config.hosts import HostPath, Hosts, hosts_of
from ccgym.config.path import NetworkPath
from ccgym.emulation import doctor, remote
from ccgym.emulation.plan import Plan
from ccgym.emulation.process import ProcessOutcome
from ccgym.errors import ConfigError, PlatformError
from ccgym.evaluation.backends import backend
from ccgym.evaluation.backends import remote as remote_backend
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.pantheon.analysis import path_text
from ccgym.evaluation.pantheon.directory import PantheonDirectory
from ccgym.evaluation.prepared_run import prepare
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import path_digest
from ccgym.report import pantheon_words
from ccgym.report.evaluation_report import page
from ccgym.report.evaluation_table import clock_text
from ccgym.report.pantheon_words import figure_title, repeated
from tests.commands import evaluate as main
from tests.commands import parsed
from tests.refusals import explained, refused
from tests.unit.test_remote_end import HELLO, there

CELLULAR = Hosts(
    "me@stanford:pantheon",
    local_if="ens5",
    remote_if="ppp0",
    ntp_addr="time.stanford.edu",
    local_desc="AWS California 1",
    remote_desc="Stanford cellular",
)


# --- Who they are --------------------------------------------------------------------------------------------------


def test_titles_and_data_paths_are_those_of_pantheons_report() -> None:
    assert CELLULAR.title == "AWS California 1 to Stanford cellular"
    assert CELLULAR.text == "AWS California 1 on ens5 (local) → Stanford cellular on ppp0 (remote)"
    back = Hosts("stanford", sender_side="remote", remote_desc="Stanford cellular")
    assert back.text == "Stanford cellular (remote) → local host (local)"
    assert Hosts("me@far:x").title == "local host to me@far:x"


def test_metadata_are_pantheons_and_are_read_back() -> None:
    assert CELLULAR.metadata() == {
        "mode": "remote",
        "remote_path": "me@stanford:pantheon",
        "sender_side": "local",
        "server_side": "remote",
        "local_if": "ens5",
        "remote_if": "ppp0",
        "ntp_addr": "time.stanford.edu",
        "local_desc": "AWS California 1",
        "remote_desc": "Stanford cellular",
    }
    assert Hosts.of_metadata(CELLULAR.metadata()) == CELLULAR
    assert path_text(CELLULAR.metadata()) == CELLULAR.text
    assert Hosts.of_metadata({"mode": "local"}) is None
    # Old versions of Pantheon wrote less.
    bare = Hosts.of_metadata({"mode": "remote"})
    assert bare.text == "local host (local) → remote host (remote)"


def test_which_machines_decides_what_a_run_is_and_how_one_reaches_them_does_not() -> None:
    digest = path_digest(HostPath(CELLULAR))
    names = ("remote_path", "sender_side", "server_side", "local_addr", "remote_addr", "local_if", "remote_if",
             "ntp_addr", "local_desc", "remote_desc")  # fmt: skip
    for name in names:
        value = {"sender_side": "remote", "server_side": "local"}.get(name, "other")
        assert path_digest(HostPath(Hosts(**{**vars(CELLULAR), name: value}))) != digest, name
    for name, value in {"ssh": "ssh -p 99", "tunnel_port": 4000}.items():
        assert path_digest(HostPath(Hosts(**{**vars(CELLULAR), name: value}))) == digest


def test_a_path_between_machines_is_not_described() -> None:
    path = HostPath(CELLULAR)
    assert hosts_of(path) is CELLULAR
    assert NetworkPath.from_any(path) is path
    assert path.describe() == CELLULAR.text
    assert path.check() == []
    compiled = path.compile()
    assert (compiled.uplink, compiled.downlink) == ([], [])
    assert hosts_of(NetworkPath.from_any("12mbps")) is None


@pytest.mark.parametrize(("path", "name"), [(HostPath(CELLULAR), "emulated"), ("12mbps", "remote")])
def test_a_backend_for_each_kind_of_path(path: Any, name: str) -> None:
    with refused(ConfigError, "backend-unsuitable at backend"):
        Experiment(path, ["cubic"], backend=name)
    with refused(ConfigError, "backend-unsuitable at backend remote"):
        backend("remote").run("12mbps", ["cubic"], 1, 1)


# --- The command line ----------------------------------------------------------------------------------------------


def hosts(line: str) -> Hosts:
    path = remote_path(parsed("evaluate", shlex.split(line)))
    return path.hosts


def test_options_of_both_commands_name_the_same_machines() -> None:
    options = (
        "--sender remote --tunnel-server local --local-addr 1.2.3.4 --local-if ens5 --remote-if ppp0 --ntp-addr t "
        "--local-desc 'A 1' --remote-desc 'B 2' --remote-addr 5.6.7.8 --tunnel-port 99 --ssh 'ssh -p 2'"
    )
    expected = Hosts(
        "me@far:dir", "remote", "local", "1.2.3.4", "5.6.7.8", 99, "ens5", "ppp0", "t", "A 1", "B 2", "ssh -p 2"
    )
    assert hosts(f"--remote me@far:dir {options}") == expected
    line = shlex.split(f"test remote me@far:dir --schemes 'cubic bbr' -t 20 --run-times 3 {options}")
    words = evaluate_words(parsed("pantheon", line))
    assert hosts(shlex.join(words)) == expected
    found = parsed("evaluate", words)
    assert (found.schemes, found.runtime_ns, found.runs, found.logs, found.mahimahi) == (
        "cubic,bbr",
        20 * 10**9,
        3,
        "all",
        None,
    )


# --- What comes out ------------------------------------------------------------------------------------------------

BETWEEN = NetworkPath(rate="12mbps", rtt="40ms", queue="40p")


class StandIn:
    """Stands for both machines: simulates what they get over a path that nothing in the results describes."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.applied = "ntp"

    def run(self, plan: Plan, hosts: Hosts, halt: threading.Event | None = None) -> ProcessOutcome:
        self.plans.append(plan)
        compiled = BETWEEN.compile()
        spec = {**json.loads(json.dumps(plan.spec)), "uplink": compiled.uplink, "downlink": compiled.downlink}
        report: dict[str, Any] = {
            "backend": "remote",
            "notes": [],
            "started_epoch_ms": 1.7e12,
            "system": ["Linux 4.15.0-1045-aws"],
            "clocks": {
                "offset_ms": 1.5,
                "drift_ppm": -2.25,
                "bound_ms": 20.125,
                "applied": self.applied,
                "ntp_offset_ms": 1.5 if self.applied == "ntp" else -77.0,
            },
        }
        if self.applied == "ntp":
            report["clock_offsets_ms"] = {"Local": 2.345, "Remote": 1.811}
        return ProcessOutcome(_core.simulate(json.dumps(spec), {}), report)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand = StandIn()
    monkeypatch.setattr(remote_backend, "run_between", stand.run)
    monkeypatch.setattr(remote_backend.BetweenHosts, "require", lambda *_: None)
    return stand


def test_packets_fit_into_the_tunnel(stand_in: StandIn) -> None:
    run = backend("remote").run(HostPath(CELLULAR), ["cubic", {"scheme": "bbr", "mss": 1000}], 1, 1)
    (plan,) = stand_in.plans
    sizes = [flow["mss"] + flow["header"] for flow in plan.spec["flows"]]
    assert sizes[0] == remote.MTU == 1464
    assert sizes[1] < 1100
    assert (run.backend, run.link.capacity_mbps, run.link.utilization) == ("remote", None, None)
    with refused(ConfigError, "backend-unsuitable at flows[0]"):
        backend("remote").run(HostPath(CELLULAR), [{"scheme": "cubic", "rtt": "50ms"}], 1, 1)


OPTIONS = (
    "--remote me@stanford:pantheon --local-if ens5 --remote-if ppp0 --ntp-addr time.stanford.edu "
    "--local-desc 'AWS California 1' --remote-desc 'Stanford cellular' --schemes cubic,bbr --runs 2 --runtime 3"
)


def evaluated(out: Path, *options: str) -> ResultSet:
    assert main([*shlex.split(OPTIONS), "--out", str(out), *options]) == 0
    return ResultSet.load(out)


@pytest.mark.long
def test_reports_have_pantheons_words(stand_in: StandIn, tmp_path: Path) -> None:
    results = evaluated(tmp_path)
    metadata = json.loads((tmp_path / "pantheon_metadata.json").read_text())
    assert CELLULAR.metadata().items() <= metadata.items()
    assert "uplink_trace" not in metadata
    assert pantheon_words.tested(results) == (
        "Data path: AWS California 1 on ens5 (local) → Stanford cellular on ppp0 (remote).",
        "",
    )
    assert repeated(results)[-1] == (
        "NTP offsets were measured against time.stanford.edu and have been applied to correct the timestamps in logs."
    )
    assert figure_title(results, "Throughput") == (
        "Throughput\ntest from AWS California 1 to Stanford cellular, 2 runs of 3s each per scheme"
    )
    statistics = (tmp_path / "cubic_stats_run1.log").read_text()
    assert "Local clock offset: 2.345 ms\nRemote clock offset: 1.811 ms\n" in statistics
    assert "capacity" not in statistics
    assert "utilization" not in statistics
    page = (tmp_path / "pantheon_report.html").read_text()
    assert CELLULAR.text in page
    assert "drifted by -2.25 ppm" in page
    assert (tmp_path / "pantheon_report.pdf").exists()
    assert results.backend == "remote"
    assert not any(flag["level"] == "warning" for flag in results.flags)


def test_raw_logs_are_in_each_ends_own_clock_and_merge_to_the_same_packets(stand_in: StandIn, tmp_path: Path) -> None:
    evaluated(tmp_path, "--no-figures", "--logs", "all", "--raw-logs")
    for link in ("datalink", "acklink"):
        merged = PantheonDirectory.open(tmp_path).runs[0].read(link)
        (tmp_path / f"bbr_{link}_run1.log").unlink()
        raw = PantheonDirectory.open(tmp_path).runs[0]
        assert raw.logs[link].merged is None
        again = raw.read(link)
        assert np.abs(again.delay_ns - merged.delay_ns).max() <= 2000, "rounded to the microsecond at both ends"


def test_offsets_that_were_not_applied_are_not_said_to_be(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.applied = "in-band"
    results = evaluated(tmp_path, "--no-figures")
    assert not any("NTP" in sentence for sentence in repeated(results))
    assert "clock offset" not in (tmp_path / "cubic_stats_run1.log").read_text()
    text = clock_text(results.cells[0])
    assert "±20.125 ms" in text
    assert "-77.000 ms, lies outside" in text
    assert "-77.000 ms, lies outside" in page(results, tmp_path).html(tmp_path)


def test_finished_runs_are_kept_and_another_direction_is_another_experiment(
    stand_in: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(tmp_path, "--no-figures")
    ran = len(stand_in.plans)
    evaluated(tmp_path, "--no-figures", "--ssh", "ssh -p 2222", "--tunnel-port", "5000")
    assert len(stand_in.plans) == ran
    assert main([*shlex.split(OPTIONS), "--out", str(tmp_path), "--no-figures", "--sender", "remote"]) == 2
    explained(capsys.readouterr().err, "directory-taken")


@pytest.mark.parametrize("name", ["runs/*.npz", "cubic_datalink_run1.log"])
@pytest.mark.parametrize("harm", [lambda data: data[:-20], lambda data: data.replace(b"1", b"2", 1), None])
def test_harmed_files_of_a_run_with_real_packets_are_noticed(
    stand_in: StandIn, tmp_path: Path, name: str, harm: Callable[[bytes], bytes] | None
) -> None:
    options = ("--no-figures", "--logs", "all")
    evaluated(tmp_path, *options)
    ran, (file, *_) = len(stand_in.plans), tmp_path.glob(name)
    if harm is None:
        file.unlink()
    else:
        file.write_bytes(harm(file.read_bytes()))
    evaluated(tmp_path, *options)
    evaluated(tmp_path, *options)
    assert len(stand_in.plans) == ran + 1


def test_real_packets_are_kept_and_their_logs_unpacked(
    stand_in: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def logs(pattern: str = "*link_run*.log*") -> set[str]:
        return {file.name for file in tmp_path.glob(pattern)}

    evaluated(tmp_path, "--no-figures", "--runs", "2")
    first, packed = logs("*link_run1.log"), logs("*link_run2.log.gz")
    assert first | packed == logs()
    assert {name.replace("_run1.log", "_run2.log.gz") for name in first} == packed != set()
    assert "ccgym logs" in capsys.readouterr().out
    ran = len(stand_in.plans)
    assert program(["logs", str(tmp_path)]) == 0
    unpacked = {name.removesuffix(".gz") for name in packed}
    assert first | packed | unpacked == logs()
    log = (tmp_path / min(unpacked)).read_bytes()
    assert log == gzip.decompress((tmp_path / min(packed)).read_bytes())
    assert log.startswith(b"# init timestamp: ")
    assert program(["clean", str(tmp_path)]) == 0
    assert first | packed | unpacked == logs(), "real packets do not come again"
    (tmp_path / min(packed)).unlink()
    capsys.readouterr()
    assert program(["logs", str(tmp_path)]) == 2
    explained(capsys.readouterr().err, "backend-unsuitable")
    evaluated(tmp_path, "--no-figures", "--runs", "2")
    assert len(stand_in.plans) == ran, "what nobody asked for is not run again"


def test_its_directory_is_named_after_the_machines(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(f"{OPTIONS} --no-figures")) == 0
    assert [one.name for one in (tmp_path / "results").iterdir()] == ["AWS-California-1-to-Stanford-cellular-remote"]


def test_the_obstacle_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "require", lambda name: None)
    found = "{'name': 'rights', 'status': 'missing', 'found': 'no namespaces', 'remedy': 'be root'}"
    far = there(tmp_path, f"{HELLO}; sys.stdin.readline(); say(check={found})")
    path = HostPath(Hosts("far", remote_addr="127.0.0.1", ssh=far.ssh))
    with refused(PlatformError, "capability-missing at remote far") as caught:
        backend("remote").require(path, 10**9)
    assert caught.value.hint == "be root", "what that machine said"


def test_a_run_is_prepared_without_facts_of_the_path() -> None:
    assert prepare(HostPath(CELLULAR), ["cubic"], 1).document["facts"] is None
