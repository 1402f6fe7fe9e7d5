"""Golden run of the forms study: two models, one of them with sampling, on the bundled items."""

import hashlib
from pathlib import Path

from surface_consistency.models import FakeRunner
from surface_consistency.studies.forms import FormsStudy, load_forms
from surface_consistency.studies.forms.settings import FormsSettings
from tests.golden_runs.files import GoldenRun
from tests.golden_runs.gather import of_study, scored_run

_WEIGHTS = {"question": 0.1, "polite": 0.1, "terse": -0.35, "declarative": 0.0, "topic first": 0.05}


def forms(home: Path) -> GoldenRun:
    """Run two models with unequal knowledge; one of them has two samples at a temperature."""
    data, folders = load_forms("sample"), []
    for name, knows, samples in (("ada", 0.65, 1), ("bob", 0.5, 2)):
        settings = FormsSettings(
            limit=45, repeat=40, samples=samples, temperature=0.5 if samples > 1 else 0.0
        )
        runner = _model(name, data.rows.to_dict("records"), knows)
        folders.append(scored_run(FormsStudy(), data, runner, home / name, settings))
    return of_study(FormsStudy(), folders, {}, hidden=[home], answers=20)


def _model(name, rows, knows):
    """Return a model that knows some items; the form and the sample change some answers."""
    by_prompt = {f"Q: {row['question']} A:": row for row in rows}

    def answer(prompt):
        row = by_prompt[prompt.text]
        known = _chance(name, row["item"]) < knows
        noise = _chance(name, row["item"], row["form"]) - 0.5 + _chance(name, prompt.id) / 3
        tendency = (0.4 if known else -0.4) + _WEIGHTS[row["form"]]
        others = ("Paris", "Asia", "peso", "Oslo")
        other = others[int(4 * _chance(row["item"]))]
        return row["references"][0] if tendency + noise > 0 else f"perhaps {other}"

    return FakeRunner(answer, name=name)


def _chance(*parts):
    """Return a number in [0, 1) that depends only on the parts."""
    digest = hashlib.sha256("|".join(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32
