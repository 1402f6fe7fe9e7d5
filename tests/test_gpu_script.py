"""All parts of the GPU script, with a tiny model on the CPU."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "gpu"


@pytest.fixture(scope="module")
def script():
    """Return the names of the script, which imports the benchmarks."""
    before = list(sys.path)
    yield runpy.run_path(str(SCRIPT))
    sys.path[:] = before


def rows_of(script, part, out, monkeypatch):
    """Run a part; return its rows by description."""
    monkeypatch.setattr(sys, "argv", ["gpu", part, "--out", str(out), "--tiny"])
    assert script["main"]() == 0
    content = json.loads((out / f"{part}.json").read_text())
    return {row["what"]: row for row in content["rows"]}


@pytest.mark.scheduled
def test_all_parts_are_in_one_table(script, tmp_path, monkeypatch):
    found = {part: rows_of(script, part, tmp_path, monkeypatch) for part in script["PARTS"]}

    assert found["faults"]["same texts in two streams at once"]["value"] == 1
    assert found["speed"]["float32, TransformersRunner: same texts as one by one"]["is_met"]
    if hasattr(transformers, "ContinuousBatchingConfig"):
        assert found["speed"]["float32, transformers' continuous batching"]["value"] > 0
    assert found["minimal"]["float32, texts: same answers"]["value"] == 1
    assert found["minimal"]["float32: largest difference of log-probabilities"]["is_met"]
    assert 0 <= found["agreement"]["bfloat16: correct"]["value"] <= 1
    note = found["agreement"]["int8: labels equal to bfloat16"]["note"]
    assert "needs a CUDA GPU" in note
    headings = re.findall(r"(?m)^## (\w+)", (tmp_path / "table.md").read_text())
    assert headings == ["Faults", "Speed", "Agreement", "Trained", "Minimal"]


def test_missed_goal_is_marked_but_not_a_row_without_a_value(script):
    missed = script["row"]("a", 0.4, "", least=0.5)
    unknown = script["row"]("b", None, "", least=0.5, note="no | GPU")

    assert (missed["is_met"], unknown["is_met"]) == (False, None)
    assert script["cells"](missed) == "| a | 0.4 | >= 0.5 | **no** |  |"
    assert script["cells"](unknown) == "| b | - | >= 0.5 |  | no / GPU |"


def test_script_without_a_gpu_requires_tiny(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu", "speed", "--out", str(tmp_path)])

    with pytest.raises(SystemExit, match="2"):
        script["main"]()

    assert "no CUDA GPU found; --tiny tests the script on a CPU" in capsys.readouterr().err
