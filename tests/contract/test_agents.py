"""Every agent that comes with ccgym: one folder with all of its files, one configuration that it was trained by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ccgym.config.path import NetworkPath
from ccgym.contrib.certificate import certify
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.simulate import simulate
from ccgym.experiments.sample import Sample
from ccgym.schemes.policies import find, pretrained
from ccgym.schemes.reading import parse_scheme
from ccgym.training.config import TrainConfig

ROOT = Path(__file__).resolve().parents[2]
AGENTS = sorted(path.name for path in (ROOT / "agents").iterdir() if path.is_dir())
FILES = {"policy.onnx", "card.json", "curves.csv", "seeds.json"}


def test_every_folder_is_a_scheme() -> None:
    assert list(pretrained()) == AGENTS


@pytest.mark.parametrize("name", AGENTS)
def test_the_folder_is_complete_and_loads(name: str) -> None:
    folder = ROOT / "agents" / name
    assert {file.name for file in folder.iterdir()} >= FILES, f"`ccgym train seeds {name}` writes {sorted(FILES)}"
    policy = parse_scheme(name).policy
    assert policy.card.name == name
    assert policy == find(f"{name}@{policy.version}")
    seeds = json.loads((folder / "seeds.json").read_text(encoding="utf-8"))
    assert seeds["exported"]["onnx_sha256"] == policy.card.onnx_sha256, "the files are of two recordings"


@pytest.mark.parametrize("name", AGENTS)
def test_the_configuration_deploys_the_agent_that_was_recorded(name: str) -> None:
    config = TrainConfig.load(name)
    policy = find(name)
    assert config.deployment.applied_to(config.agent).native() == policy.card.agent, (
        f"record it again: ccgym train seeds {name}"
    )


@pytest.mark.parametrize("profile", ["tcp", "udp"])
@pytest.mark.parametrize("name", AGENTS)
def test_it_stops_pressing_where_nothing_comes_back(name: str, profile: str) -> None:
    """RFC 9743, section 5.2: while acknowledgements are lost at most 0.1 packets leave per round trip of 60 ms."""
    silence = {"kind": "loss", "direction": "downlink", "probability": [["0s", 0], ["5s", "100%"], ["35s", 0]]}
    link = {"kind": "link", "uplink": {"rate": "12mbps", "queue": "1bdp"}}
    path = NetworkPath(chain=[{"kind": "delay", "delay": "30ms"}, silence, link])
    run = simulate(path, [{"scheme": name, "profile": profile}], "60s", 1, Record(packets=False, series="1s"))
    taken = Sample.of(run)
    assert taken.sent_packets(0, 0, 5) > 100
    assert 1 <= taken.sent_packets(0, 15, 35) <= 0.1 * 20 / 0.06
    assert taken.sent_packets(0, 10, 15) <= 10


@pytest.mark.long
@pytest.mark.parametrize("name", AGENTS)
def test_the_certificate_is_of_this_policy(name: str) -> None:
    policy = find(name)
    found = certify(policy).as_dict()
    recorded = dict(policy.card.certificate)
    assert recorded, f"`ccgym schemes certificate {name} --write` makes one"
    properties = found.pop("properties"), recorded.pop("properties")
    assert found == recorded
    # Another library for matrices may round a few boxes the other way.
    for kind, one in properties[0].items():
        assert one == pytest.approx(properties[1][kind], abs=0.01)


@pytest.mark.parametrize("name", AGENTS)
def test_no_file_holds_a_path_of_the_machine(name: str) -> None:
    for file in (ROOT / "agents" / name).iterdir():
        if file.suffix != ".onnx":
            text = file.read_text(encoding="utf-8")
            assert not [place for place in ("/tmp", "/home", "/root", "/work", "/Users") if place in text]
