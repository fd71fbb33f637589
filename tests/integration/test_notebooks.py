"""The notebooks of examples/notebooks run from top to bottom, each in a copy of its folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # Jupyter's own
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbclient
    import nbformat

    (tmp_path / "tests").symlink_to(ROOT / "tests")  # what notebook 06 reads
    folder = tmp_path / "examples" / "notebooks"
    folder.mkdir(parents=True)
    shutil.copy(notebook, folder)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    run = nbformat.read(folder / notebook.name, as_version=4)
    nbclient.NotebookClient(run, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output for cell in run.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in shown), "no figure was shown"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    import json

    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)
