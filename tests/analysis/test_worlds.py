"""Findings of `compare` and `consistency` report simulated effects, and pages agree with tables.

Each world is drawn with a seed. Every record of its page is computed again from the tables, and
every sentence with a number has a record.
"""

import re

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.measures import accuracy, consistency, paired
from surface_consistency.analysis.models import compare
from surface_consistency.analysis.settings import ComparisonSettings, TableSettings
from surface_consistency.engine.compare.results_report import ComparisonReport
from tests.claims import check_page, unsupported

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)


def models(rates, *, n=200, seed=1):
    """Scores by slice of models with these probabilities of a correct answer, named a, b, ..."""
    rng, parts = np.random.default_rng(seed), []
    for place, (label, chances) in enumerate(rates.items()):
        items = np.arange(n) + place * n
        for name, chance in zip("abc", chances, strict=False):
            part = pd.DataFrame({"model": name, "item": items, "slice": label})
            parts.append(part.assign(score=(rng.random(n) < chance).astype(float)))
    return pd.concat(parts, ignore_index=True)


def forms(chances, *, n=100, n_repeats=1, seed=1, share=0.0):
    """Answers to items in forms a, b, c; a proportion equals the answer to the first form."""
    rng, parts = np.random.default_rng(seed), []
    drawn = rng.random((n, len(chances), n_repeats)) < np.array(chances)[:, None]
    drawn = np.where(rng.random((n, 1, 1)) < share, drawn[:, :1, :1], drawn)
    for (item, form, repeat), score in np.ndenumerate(drawn):
        parts.append((item, "abc"[form], repeat, float(score)))
    return pd.DataFrame(parts, columns=["item", "form", "run", "correct"])


def checked(result, folder):
    """The sentences, after the page and its records are compared with the tables."""
    result.save(folder)
    assert check_page(folder)
    texts = [record["text"] for record in result.claims if record["text"]]
    sentences = [*result.sentences, result.note]
    for sentence in sentences:
        assert not re.search(r"\d", sentence) or any(text in sentence for text in texts), sentence
    return " ".join(sentences)


NULL, LARGE = {"s": (0.6, 0.6)}, {"s": (0.4, 0.7)}
SMALL = {"s": (0.6, 0.61)}
OPPOSITE = {"s0": (0.4, 0.7), "s1": (0.7, 0.4), "s2": (0.4, 0.7)}
HIDDEN = {"s0": (0.3, 0.6), "s1": (0.6, 0.3)}
OF_THREE = {"s0": (0.6, 0.6, 0.2), "s1": (0.6, 0.1, 0.9), "s2": (0.4, 0.9, 0.5)}
PLAIN = "The accuracy (score) "
IN = PLAIN + "in slice {}, unlike overall, is "
COMPARED = {
    "null": (NULL, {}, [PLAIN + "does not differ significantly", "minimum detectable"]),
    "small": (SMALL, {}, [PLAIN + "does not differ significantly between a and b"]),
    "large": (LARGE, {}, [r"points higher for b than for a \(95 % CI "]),
    "against": (OPPOSITE, {}, ["higher for b than for a", IN.format("s1") + ".* lower for b"]),
    "hidden": (HIDDEN, {}, ["does not differ", IN.format("s0"), IN.format("s1") + ".* lower"]),
    "three": (OF_THREE, {}, ["are significant, unlike overall"]),
    "few": (
        {"s": (0.4, 0.7)},
        {"cluster": 3},
        ["cannot be inferred: .* 3 clusters .*number of clusters 3, "],
    ),
    "wide": ({"s": (0.3, 0.8)}, {"cluster": 8}, ["based on only 8 clusters", "higher for b"]),
    "missing": (LARGE, {"missing": 60}, ["60 of 200 items lack a score of at least one model"]),
}


@pytest.mark.parametrize("world", COMPARED)
def test_compare_reports_the_simulated_effect(world, tmp_path):
    rates, change, expected = COMPARED[world]
    frame = models(rates)
    options = {"by": "slice"} if len(rates) > 1 else {}
    if "cluster" in change:
        frame["group"] = frame["item"] % change["cluster"]
        options["cluster"] = "group"
    if "missing" in change:
        frame.loc[(frame["model"] == "b") & (frame["item"] < change["missing"]), "score"] = np.nan

    text = checked(compare(frame, **options), tmp_path)

    for sentence in expected:
        assert re.search(sentence.replace("(score)", r"\(score\)"), text), text
    assert ("unlike overall" in text) == (world in ("against", "hidden", "three"))


def test_every_sentence_of_a_comparison_with_a_number_has_a_record():
    for rates in (OPPOSITE, OF_THREE, NULL):
        compared = compare_results(
            models(rates, n=12), settings=ComparisonSettings(), table=TableSettings(by=("slice",))
        )
        for parts in ComparisonReport(compared, "score").sentences():
            assert unsupported(parts) == []


def test_contradictory_slices_are_rare_without_an_effect():
    rates = {f"s{place}": (0.5, 0.5, 0.5) for place in range(4)}
    found = [
        "unlike overall" in " ".join(compare(models(rates, n=60, seed=one), by="slice").sentences)
        for one in range(60)
    ]
    assert sum(found) <= 8  # binom.ppf(0.99, 60, 0.05)


def test_changed_items_of_all_pairs_of_models_are_counted(tmp_path):
    compare(models(OF_THREE), by="slice").save(tmp_path)

    table = pd.read_csv(tmp_path / "tables" / "changed.csv")
    n_items = table["item"].nunique()
    counted = f"{len(table):,} pairs of models on {n_items:,} items that score differently"
    assert len(table) > n_items
    assert counted in (tmp_path / "report.html").read_text(encoding="utf-8")


AT_HALF = r"consistency of two forms of an item is (4[3-9]|5[0-7])\.\d %"
CONSISTENT = {
    "null": (forms((0.5, 0.5, 0.5)), {}, [AT_HALF]),
    "small": (forms((0.5, 0.5, 0.5), share=0.3), {}, [r"of an item is (5[8-9]|6\d|7[0-2])\.\d %"]),
    "large": (forms((0.7, 0.7, 0.7), share=0.9), {}, [r"of an item is 9\d\.\d %"]),
    "few": (forms((0.5, 0.5), n=3), {}, [r"3 items are too few \(effective number of clusters 3"]),
    "missing": (forms((0.5, 0.5, 0.5)), {"missing": 7}, ["5 of 300 answers have no", "1 of 100 "]),
    "repeats": (
        forms((0.5, 0.5, 0.5), n_repeats=3), {"repeat": "run"},
        [r"flip rate between .* of which repeats of identical prompts explain", "300 prompts"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("world", CONSISTENT)
def test_consistency_reports_the_simulated_rate(world, tmp_path):
    frame, options, expected = CONSISTENT[world]
    if "missing" in options:
        frame, options = frame.copy(), {}
        frame.loc[[0, 1, 3, 6, 9], "correct"] = np.nan

    frame = frame if options else frame.drop(columns="run")
    text = checked(consistency(frame, **options), tmp_path)

    for sentence in expected:
        assert re.search(sentence, text), text


def test_contradictory_groups_have_one_row_and_one_sentence_each(tmp_path):
    parts = [forms((0.6, 0.6), share=share, seed=7).assign(kind=name) for name, share in
             (("same", 0.9), ("other", 0.0))]  # fmt: skip
    frame = pd.concat(parts).drop(columns="run")
    frame["item"] = frame["kind"] + frame["item"].astype(str)

    text = checked(consistency(frame, by="kind"), tmp_path)

    rates = re.findall(r"consistency \(kind: (\w+)\) of two forms of an item is ([\d.]+)", text)
    assert {name: float(rate) > 80 for name, rate in rates} == {"same": True, "other": False}


@pytest.mark.parametrize("measure", [accuracy, consistency])
def test_few_and_unequal_clusters_are_reported_with_their_effective_number(measure, tmp_path):
    frame = forms((0.5, 0.6), n=120, seed=3).drop(columns="run")
    frame["article"] = np.where(frame["item"] < 30, "large", "a" + (frame["item"] // 3).astype(str))

    result = measure(frame, cluster="article")
    checked(result, tmp_path)

    sizes = np.array([30] + [3] * 30)
    worth = f"{sizes.sum() ** 2 / (sizes**2).sum():.3g}"
    assert f"(effective number {worth} of 31), so that the interval is wider than" in result.note
    few = measure(frame[frame["item"] < 40], cluster="item" if measure is accuracy else "article")
    assert "based on only" not in few.note


def test_conditional_rates_of_pairs_have_their_own_denominators(tmp_path):
    drawn = forms((0.8, 0.5), n=150).pivot(index="item", columns="form", values="correct")
    result = paired(drawn.reset_index(), first="a", second="b")

    text = checked(result, tmp_path)

    row = result.to_frame(all=True).iloc[0]
    assert f"; {int(row['both'] + row['first_only'])} pairs)" in text
    assert re.search(r"The accuracy is [\d.]+ points lower for b than for a", text)
