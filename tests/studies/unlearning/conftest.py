"""A world whose forgetting is planted: who answers what is set, so every verdict is known."""

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine import run_study, score_run
from surface_consistency.models import FakeRunner
from surface_consistency.studies.unlearning.questions import COLUMNS
from surface_consistency.studies.unlearning.settings import UnlearningSettings
from surface_consistency.studies.unlearning.study import UnlearningStudy

RELATIONS = ("birthplace", "profession", "award")
FORMS = ("plain", "reworded", "name")


def planted_rows(n_subjects=60, n_kept=20):
    """Subjects with two names and three facts each, the last of which should be kept."""
    rows = []
    for number in range(n_subjects):
        of_set = "forget" if number < n_subjects - n_kept else "retain"
        for relation in RELATIONS:
            texts = {
                "plain": f"What is the {relation} of Person{number}?",
                "reworded": f"Tell me the {relation} that Person{number} has.",
                "name": f"What is the {relation} of Alias{number}?",
            }
            answer = f"{relation}{number}"
            rows += [
                (of_set, form, f"{relation} {number}", f"subject {number}", texts[form], [answer])
                for form in FORMS
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


def planted_model(rows, *, knows, floor=0.1, seed=0):
    """Answers what it knows: a function of set and form; the floor is guessed under every form."""
    facts = rows["fact_id"].unique()
    guessed = set(facts[np.random.default_rng(seed).random(len(facts)) < floor])
    known = {
        row.question: row.answers[0]
        for row in rows.itertuples()
        if knows(row.set, row.form) or (row.set == "forget" and row.fact_id in guessed)
    }
    return FakeRunner(
        lambda prompt: known.get(prompt.text.split("\n")[0].removeprefix("Question: "), "unknown")
    )


WORLDS = {
    "original": lambda of_set, form: True,
    "reference": lambda of_set, form: of_set == "retain",
    "ascent": lambda of_set, form: of_set == "retain",
    "refusal": lambda of_set, form: of_set == "retain" or form != "plain",
    "other_name": lambda of_set, form: of_set == "retain" or form == "name",
    "untouched": lambda of_set, form: form != "name",
    "broken": lambda of_set, form: of_set == "retain" and form == "plain",
}
"""What each model answers by set and form, besides what is guessed."""


@pytest.fixture(scope="session")
def planted_runs(tmp_path_factory):
    """Folders of scored runs of each planted model, by its name."""
    home, rows = tmp_path_factory.mktemp("planted"), planted_rows()
    study = UnlearningStudy()
    settings = UnlearningSettings(forms=FORMS, repeat=0)
    source = rows.to_dict("records")
    folders = {}
    for name, knows in WORLDS.items():
        floor = 0.0 if name == "ascent" else 0.1
        path = home / "table.jsonl"
        pd.DataFrame(source).to_json(path, orient="records", lines=True)
        data = study.load(study.records.source(source=str(path)))
        model = planted_model(rows, knows=knows, floor=floor)
        folder = run_study(study, data, model, home / name, model=name, settings=settings)
        score_run(folder, study=study)
        folders[name] = folder.path
    return folders
