"""Planted worlds: what the finding claims of forgetting is what the tables show."""

import re

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.design import Design, Report
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.results.unlearning import FORGET
from surface_consistency.studies.unlearning.analysis import UnlearningAnalysis, UnlearningSettings
from surface_consistency.studies.unlearning.crossing import Crossing
from surface_consistency.tables.numbers import sentence_text

ROLES = {"original": "original", "npo": "unlearned", "retrained": "reference"}


def analysed(forms, *, n_persons=200, floor=0.1, seed=0, margin=0.05, missing=0.0, alike=None):
    """Finding, checks and tables of a world, by form: known, left of what is known, and damage."""
    rng, rows = np.random.default_rng(seed), []
    for person in range(n_persons):
        for n in range(3):
            guess, chance = rng.random() < floor, rng.random(4)
            for of_set in (FORGET, "retain"):
                for form, (known, left, damage) in forms.items():
                    kept = of_set == "retain" and chance[0] < known
                    npo = kept or (guess and chance[2] >= damage) or chance[1] < (left or 0)
                    right = {"original": chance[0] < known, "npo": npo, "retrained": kept or guess}
                    cells = {f"correct: {m}": alike or bool(one) for m, one in right.items()}
                    if chance[3] < missing or left is None:
                        cells["correct: npo"] = None
                    cells |= {f"prediction: {m}": "text" for m in ROLES}
                    about = {"set": of_set, "form": form, "question_id": f"{form} {person} {n}"}
                    about |= {"item": f"{person} {n}", "cluster": f"person {person}"}
                    rows.append(about | {"question": "?", "references": ("text",)} | cells)
    analysis = UnlearningAnalysis()
    analysis._crossing = Crossing(
        questions=pd.DataFrame(rows), roles=ROLES, is_by_order=False, logs=[], clusters="persons",
        notes=[],
    )  # fmt: skip
    report = Report(runs=[], design=Design(title="x"), settings=ReportSettings(margin=margin))
    tables = analysis.tables(report, UnlearningSettings())
    text = sentence_text(analysis.finding(report, tables)).replace("\xa0", " ")
    checks = [sentence_text(check.text) for check in analysis.checks(report, tables)]
    return text, checks, {name: table.frame for name, table in tables.items()}


GONE, LEFT, NEVER = (1.0, 0.0, 0.0), (1.0, 0.35, 0.0), (0.1, 0.0, 0.0)
WORLDS = {
    "null": ({"plain": GONE, "name": GONE}, {}, "forgotten"),
    "small": ({"plain": GONE, "name": (1.0, 0.02, 0.0)}, {"n_persons": 500}, "equivalent"),
    "large": ({"plain": GONE, "name": LEFT}, {}, "hidden"),
    "plain": ({"plain": LEFT, "name": GONE}, {}, "not forgotten"),
    "contradictory": ({"plain": (1.0, 0.0, 1.0), "name": LEFT}, {"floor": 0.3}, "not forgotten"),
    "refuses": ({"plain": (1.0, 0.0, 1.0)}, {"floor": 0.3}, "cannot tell"),
    "three": ({"plain": GONE, "name": LEFT}, {"n_persons": 3}, "not inferred"),
    "one": ({"plain": GONE}, {"n_persons": 1}, "not inferred"),
    "missing": ({"plain": GONE, "name": GONE}, {"missing": 0.3}, "forgotten"),
    "not answered": ({"plain": GONE, "name": (1.0, None, 0.0)}, {}, "cannot tell"),
    "excluded": ({"plain": GONE, "name": GONE, "odd": NEVER}, {}, "forgotten"),
    "excluded leaks": ({"plain": GONE, "odd": (0.1, 0.35, 0.0)}, {}, "hidden"),
    "never known": ({"plain": NEVER, "name": NEVER}, {}, "cannot tell"),
    "weak": ({"plain": (0.35, 0.0, 0.0)}, {"n_persons": 8}, "cannot tell"),
    "all right": ({"plain": GONE, "name": GONE}, {"alike": True}, "cannot tell"),
    "wide margin": ({"plain": GONE, "name": LEFT}, {"margin": 0.999}, "cannot tell"),
}


def quoted(text, start):
    """The forms that a sentence names after some words."""
    sentence = re.search(rf"{start}((?:(?:, | and )?“\w+”)+)", text)
    return re.findall("“(\\w+)”", sentence[1]) if sentence else []


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("name", WORLDS)
def test_finding_claims_what_its_table_shows(name):
    forms, options, verdict = WORLDS[name]
    text, checks, tables = analysed(forms, **options)
    row, rows = tables["unlearning_verdicts"].iloc[0], tables["unlearning"].set_index("form")
    rows, named = rows.drop(index="any form", errors="ignore"), "has forgotten the facts under the"

    assert row["verdict"] == verdict
    assert (named in text) == (verdict == "forgotten")
    tested = rows.index[rows["status"] == "tested"]
    if verdict in ("forgotten", "equivalent"):
        assert quoted(text, "facts(?: under the tested forms)?: under ") == [*tested]
        assert (rows.loc[tested, "p_equivalent"] < 0.025).all()
        assert (tables["unlearning"]["excess_low"] > 0).any() == (verdict == "equivalent")
    leaking = quoted(text, "by more than [\\d.]+ points under ")
    assert leaking == (row["leaking"] or "").split("; ") * bool(row["leaking"])
    assert (rows.loc[leaking, "excess_low"] > options.get("margin", 0.05)).all()
    excluded = quoted(text, "Forgetting cannot be tested under ")
    assert excluded == [form for form in rows.index if form not in tested]
    assert len(excluded) == sum("cannot be tested under this form" in one for one in checks)
    n_not_inferred = rows["excess_low"].isna().sum() + rows["known_excess_low"].isna().sum()
    assert ("cannot be inferred" in text) == (n_not_inferred > 0)
    for form, status in rows["status"].items():
        words = {"not above": "does not differ significantly", "equivalent": "is equivalent for"}
        assert f"under the form “{form}” {words.get(status, '')}" in text or status not in words
    if name in ("three", "one"):
        assert "3 questions in 1 person" in text or "9 questions in 3 persons are too few" in text
        assert f"(worth {options['n_persons']} cluster" in text
        assert row["lost"] == "retain (not inferred)"
        assert "No loss" not in text
    else:
        assert "is statistically significant (minimum detectable difference" in text
        assert text.count("No loss of accuracy of npo in retain") == 1


def test_losses_and_kept_sets_are_three_sentences():
    """One set is lost, in another no loss is significant, a third has too few persons."""
    _, _, tables = analysed({"plain": GONE})
    analysis, row = UnlearningAnalysis(), tables["unlearning_price"].iloc[0].to_dict()
    analysis._words = {"unit": "questions", "clusters": "persons", "confidence": 0.9}
    analysis._margin = 0.05
    lost = {"set": "lost", "change": -0.4, "change_low": -0.5, "change_high": -0.3}
    few = {"set": "few", "change_low": np.nan, "change_high": np.nan, "not_inferred": "worth 3"}
    rows = [row, row | lost | {"p_not_below": 1.0}, row | few | {"p_not_below": np.nan}]

    shown = [sentence_text(one).replace("\xa0", " ") for one in analysis._price("npo", rows)]

    assert shown[0].startswith("The accuracy in lost is 40.0 points lower for npo than for origin")
    assert "90 % CI" in shown[0]
    assert shown[1].startswith("A difference in accuracy in few between original and npo cannot be")
    assert shown[1].endswith("600 questions in 200 persons are too few (worth 3).")
    assert shown[2].startswith("No loss of accuracy of npo in retain is statistically significant")
    assert shown[3].endswith("5.0 points or more is excluded in retain (non-inferiority test).")
