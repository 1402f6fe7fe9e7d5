"""Run folders with given outcomes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.loader import Run
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource
from surface_consistency.taxonomy import CATEGORIES, RELATIONS, types_of


def make_manifest(model: str = "toy_model", **changes: object) -> RunManifest:
    settings: dict[str, object] = {
        "study": "redirectqa",
        "model": model,
        "data": DataSource(id="owner/rows", revision="abc123", digest="d" * 64, n_questions=40),
        "settings": {"shots": 15, "seed": 3, "template": "original"},
        "decoding": {"answers": {"max_new_tokens": 15, "stop": ["\n"]}},
        "runner": {"runner": "fake", "dtype": "float32"},
        "package_version": "0.0.1",
        "created_at": "2026-01-02T03:04:05+00:00",
    }
    return RunManifest.model_validate(settings | changes)


COLUMNS = (
    *("study", "model", "pair", "item", "first_condition", "second_condition"),
    *("first_correct", "second_correct", "subject_id", "relation", "template", "categories"),
    *("types", "first_surface", "second_surface", "first_prediction", "second_prediction"),
)


def make_outcomes(
    verdicts: Sequence[tuple[bool | None, bool | None]],
    *,
    model: str = "toy_model",
    categories: Sequence[Sequence[str]] = (("Redirects_from_birth_names",),),
    template: str = "original",
) -> pd.DataFrame:
    rows = []
    for place, pair in enumerate(verdicts):
        labels = tuple(categories[place % len(categories)])
        relation = "place_of_birth" if place % 2 else "occupation"
        ids = (f"{template}-{place}", f"fact-{place // 2}", "canonical", "redirect")
        groups = (f"Q{place // 4}", relation, template, list(labels), list(types_of(labels)))
        texts = (f"Canonical {place}", f"Redirect {place}")
        texts += (f"first answer {place}", f"second answer {place}")
        rows.append(("redirectqa", model, *ids, *pair, *groups, *texts))
    return pd.DataFrame(rows, columns=COLUMNS)


def random_outcomes(n: int, *, seed: int, model: str, template: str = "original") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    verdicts = [(bool(a), bool(b)) for a, b in rng.random((n, 2)) < 0.6]
    labels = list(CATEGORIES)
    sizes = (int(rng.integers(1, 4)) for _ in range(n))
    categories = [sorted(rng.choice(labels, size=size, replace=False)) for size in sizes]
    relations = rng.choice(list(RELATIONS), size=n)
    frame = make_outcomes(verdicts, model=model, categories=categories, template=template)
    return frame.assign(relation=relations)


def write_outcomes(folder: Path, outcomes: pd.DataFrame, *, judged_by: str = "by hand") -> None:
    """Write outcomes to a run folder in the format of scoring."""
    with RunFolder(folder).replacing_scores(Scoring(judged_by=judged_by)) as beside:
        outcomes.to_parquet(beside.outcomes)


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a run folder: `make_run(name, outcomes, manifest, checks=..., highlights=...)`."""

    def write(
        name: str,
        outcomes: pd.DataFrame,
        manifest: RunManifest,
        *,
        checks: Mapping[str, pd.DataFrame] | None = None,
        highlights: Mapping[str, pd.DataFrame] | None = None,
    ) -> Path:
        folder = tmp_path / name
        for part, tables in (("checks", checks or {}), ("highlights", highlights or {})):
            (folder / part).mkdir(parents=True)
            for stem, table in tables.items():
                table.to_csv(folder / part / f"{stem}.csv", index=False)
        (folder / "manifest.json").write_text(manifest.model_dump_json(), encoding="utf-8")
        write_outcomes(folder, outcomes)
        return folder

    return write


def noise_floor(model: str, flips: int, n: int, template: str = "original") -> pd.DataFrame:
    rate = flips / n
    rates = {"flip_rate": rate, "flip_rate_low": rate / 2, "flip_rate_high": rate * 2}
    counts = {"template": template, "model": model, "n_repeated": n, "n_verdict_flips": flips}
    return pd.DataFrame([counts | rates | {"n_text_changes": flips + 1}])


def memory_run(outcomes: pd.DataFrame, label: str = "m", **fields: object) -> Run:
    folder, manifest = RunFolder(Path("nowhere")), make_manifest(label.split(" ")[0])
    values = {"label": label, "folder": folder, "manifest": manifest} | fields
    return Run(outcomes=outcomes.assign(model=label), **values)
