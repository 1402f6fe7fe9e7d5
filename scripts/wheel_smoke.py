"""Use the installed package as a user would: sample, own predictions, table with intervals."""

import json
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import surface_consistency
from surface_consistency import load_dataset, paired, score_predictions
from surface_consistency.models import FakeRunner

home = Path(surface_consistency.__file__)
if "site" not in home.parts or Path(__file__).parent not in home.parents:
    raise SystemExit(f"the package came from {home}, not from the wheel")
sample = load_dataset("redirectqa", source="sample")
answers = {
    row["id"]: row["references"][0] if row["form"].endswith("canonical") else "?"
    for row in sample.to_dataset()
}
frame = score_predictions(sample, answers, model="canonical only")
table = paired(frame, by=["template"]).to_frame()
if not (table["first_accuracy"].eq(1.0).all() and table["second_accuracy"].eq(0.0).all()):
    raise SystemExit(f"unexpected table:\n{table}")
FakeRunner(lambda prompt: "x")
if find_spec("lm_eval") is not None:
    path = subprocess.run(
        [sys.executable, "-m", "surface_consistency", "lm-eval-path"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if Path(path).parents[1] != home.parent:
        raise SystemExit(f"the tasks of lm-evaluation-harness are those of {path}")
    harness = [sys.executable, "-m", "lm_eval", "run", "--include_path", path, "--limit", "20"]
    for study in ("redirectqa", "slaq"):
        metadata = json.dumps({study: {"source": "sample"}})
        done = subprocess.run(
            [*harness, "--model", "dummy", "--tasks", study, "--metadata", metadata],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or "|consistency " not in done.stdout:
            raise SystemExit(f"lm_eval run --tasks {study} failed:\n{done.stdout}{done.stderr}")
if find_spec("inspect_ai") is not None:
    (point,) = [p for p in entry_points(group="inspect_ai") if p.name == "surface_consistency"]
    if set(point.load()) != {
        *("redirectqa", "slaq", "forms"),
        *("paired_verdicts", "paired_numbers", "match", "consistency"),
    }:
        raise SystemExit("the entry point of inspect_ai does not register the tasks")
print(f"wheel of surface-consistency {surface_consistency.__version__} works")
