#!/usr/bin/env python3
"""Keep what Pantheon made itself: runs of its unchanged test.py through its tunnel, and what it and we read from them.

  record_pantheon_tunnel.py --pantheon DIR --python2 COMMAND NAME DATA RAW [--keep logs|statistics] [--note TEXT]

DATA is what test.py filled (--data-dir), RAW holds the raw logs of the tunnel that it left in its tmp; the options of
Pantheon are those of record_pantheon.py. Writes recorded/pantheon_tunnel/NAME.json.gz and, of what is kept,
NAME.tar.gz: the directory after plot.py without figures, with all logs or only with statistics.
"""

import argparse
import datetime
import io
import json
import pathlib
import shutil
import tarfile
import tempfile

import machine
import numpy as np
from pantheons_programs import Pantheon

from ccgym.evaluation.pantheon.analysis import analyze
from ccgym.evaluation.pantheon.directory import PantheonDirectory
from ccgym.evaluation.pantheon.logs import read_log
from tests.differential.pantheon_cases import statistics

KEPT = {
    "logs": ("*.log", "*.ingress", "*.egress", "pantheon_metadata.json", "pantheon_perf.json"),
    "statistics": ("*_stats_run*.log", "pantheon_metadata.json", "pantheon_perf.json", "config.yml"),
    "nothing": (),
}


def compared(directory: pathlib.Path, theirs: dict) -> dict:
    """Our numbers of a directory next to Pantheon's: how many there are, and how far they are apart."""
    with tempfile.TemporaryDirectory() as place:
        out = pathlib.Path(place)
        analyze(PantheonDirectory.open(directory), out)
        ours, printed = json.loads((out / "pantheon_perf.json").read_text()), statistics(out)
    apart = [
        abs(number - ours[scheme][run][flow][name])
        for scheme, runs in theirs["perf"].items()
        for run, flows in runs.items()
        for flow, numbers in flows.items()
        for name, number in numbers.items()
    ]
    return {
        "runs": sum(map(len, ours.values())),
        "numbers": len(apart),
        "largest_difference": max(apart),
        "statistics_otherwise": [name for name, said in theirs["statistics"].items() if printed[name] != said],
    }


def packets(merged: pathlib.Path, raw: pathlib.Path) -> dict:
    """The packets of our merge of raw logs next to those of Pantheon's, all directions of all runs."""
    count, odd = 0, 0
    for run in PantheonDirectory.open(raw).runs:
        for link in run.logs:
            theirs, ours = read_log(merged / f"{run.scheme}_{link}_run{run.run}.log"), run.read(link)
            for flow in theirs.flows:
                one, other = theirs.of_flow(flow), ours.of_flow(flow)
                for kind in ("arrival", "departure"):
                    names = [f"{kind}_ns", f"{kind}_bytes", *(["delay_ns"] if kind == "departure" else [])]
                    columns = [np.stack([getattr(which, name) for name in names]) for which in (one, other)]
                    count += columns[0].shape[1]
                    odd += int((columns[0] != columns[1]).any(axis=0).sum())
    return {"packets": count, "packets_otherwise": odd}


def without_merged(directory: pathlib.Path, raw: pathlib.Path, out: pathlib.Path) -> None:
    """What is left where the merge failed: raw logs, mm-link's, the beginnings of the statistics."""
    for file in (*raw.glob("*gress"), *directory.glob("*_mm_*.log"), directory / "pantheon_metadata.json"):
        shutil.copy(file, out)
    for file in directory.glob("*_stats_run*.log"):
        head = [line for line in file.read_text().splitlines() if " at: " in line or "offset:" in line]
        (out / file.name).write_text("\n".join(head) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pantheon", type=pathlib.Path, required=True)
    parser.add_argument("--python2", required=True)
    parser.add_argument("--commit", default="23e738c", help="of Pantheon")
    parser.add_argument("name")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("raw", type=pathlib.Path)
    parser.add_argument("--keep", choices=KEPT, default="nothing")
    parser.add_argument("--note", action="append", default=[], help="what is to be known of the recording")
    given = parser.parse_args()
    pantheon = Pantheon(given.pantheon, given.python2, given.commit)
    found = {
        "made": {
            "date_utc": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **pantheon.describe(),
            "tunnel": "StanfordSNR/pantheon-tunnel @f866d3f, unchanged, gcc 12.2",
            "iperf": machine.output_of("dpkg-query", "-W", "-f=${Version}", "iperf"),
            **{name: machine.describe()[name] for name in ("kernel", "distribution", "packages")},
            "notes": given.note,
        },
        "metadata": json.loads((given.data / "pantheon_metadata.json").read_text()),
    }
    with tempfile.TemporaryDirectory() as place:
        directory, raw = pathlib.Path(place) / given.name, pathlib.Path(place) / "raw"
        shutil.copytree(given.data, directory)
        shutil.copy(pantheon.source / "config.yml", directory)
        found["pantheon"] = pantheon.read(directory)
        found["ours"] = {"merged": compared(directory, found["pantheon"])}
        if any(given.raw.glob("*.ingress")):
            raw.mkdir()
            without_merged(directory, given.raw, raw)
            found["ours"]["raw"] = compared(raw, found["pantheon"]) | packets(directory, raw)
        folder = machine.RECORDED / "pantheon_tunnel"
        folder.mkdir(exist_ok=True)
        if given.keep == "logs":
            for file in given.raw.glob("*gress"):
                shutil.copy(file, directory)
        if KEPT[given.keep]:
            kept = sorted({file for pattern in KEPT[given.keep] for file in directory.glob(pattern)})
            with tarfile.open(folder / f"{given.name}.tar.gz", "w:gz") as archive:
                for file in kept:
                    data = file.read_bytes()
                    entry = tarfile.TarInfo(file.name)
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
    machine.write_gzip(folder / f"{given.name}.json.gz", json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
