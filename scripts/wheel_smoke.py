"""Use the installed package as a user would: sample, own predictions, table with intervals."""

import warnings
from pathlib import Path

import surface_consistency
from surface_consistency import FakeRunner, paired_by, score_predictions
from surface_consistency.data.redirectqa import load_sample
from surface_consistency.errors import UndefinedMetricWarning

home = Path(surface_consistency.__file__)
if "site" not in home.parts or Path(__file__).parent not in home.parents:
    raise SystemExit(f"the package came from {home}, not from the wheel")
sample = load_sample()
answers = {q.id: q.triple.answers[0] if q.surface.is_canonical else "?" for q in sample.questions}
frame = score_predictions(sample, answers, model="canonical only")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UndefinedMetricWarning)
    table = paired_by(frame, by=["template"], n_resamples=200)
if not (table["first_accuracy"].eq(1.0).all() and table["second_accuracy"].eq(0.0).all()):
    raise SystemExit(f"unexpected table:\n{table}")
FakeRunner(lambda prompt: "x")
print(f"wheel of surface-consistency {surface_consistency.__version__} works")
