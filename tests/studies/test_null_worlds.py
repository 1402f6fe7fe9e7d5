"""Pages claim no effect in simulations without one, and the planted effect in others.

Each world is a simulated outcomes frame; its tables are computed and the sentences of the
page are read. The rate of false claims must not exceed 0.05.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired.tables import _overall, compare_models, paired_rates
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.report.page import Prose
from surface_consistency.studies.audit.study import AuditStudy
from surface_consistency.studies.audit.tables import _rates as audit_rates
from surface_consistency.studies.lexical import popularity
from surface_consistency.studies.lexical.popularity import PopularityAnalysis, PopularitySettings
from surface_consistency.studies.lexical.study import LexicalStudy
from surface_consistency.studies.lexical.tables import lexical_tables
from surface_consistency.studies.linking import consistency, page as linking_page
from surface_consistency.studies.linking.consistency import (
    LinkingConsistency,
    LinkingConsistencySettings,
)
from surface_consistency.studies.linking.study import LinkingStudy
from surface_consistency.studies.mechanism.similarity import FEATURES, difference_rows
from surface_consistency.studies.mechanism.tables import make_finding
from surface_consistency.studies.redirectqa import frequency
from surface_consistency.studies.redirectqa.frequency import FrequencyAnalysis, FrequencySettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.slaq import page as slaq_page
from surface_consistency.studies.slaq.study import SlaqStudy
from surface_consistency.studies.slaq.tables import describe_slot_tables, slot_tables
from surface_consistency.tables.numbers import sentence_text
from surface_consistency.tables.sentences import paragraph
from surface_consistency.tables.table import Table
from tests.made_runs import make_manifest, memory_run

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)

SEEDS = range(40)
LABELS = ("m", "other", "third")
CLAIM = re.compile(r"\b(higher|lower|significantly)\b")
NO_CLAIM = re.compile(r"not (differ )?significantly|not statistically|cannot be inferred")


def claims(text):
    """Return the sentences that claim a difference."""
    sentences = re.split(r"(?<=[.:])\s+(?=[A-Z])|(?<=\.)\s+(?=\d)", text)
    return [one for one in sentences if CLAIM.search(one) and not NO_CLAIM.search(one)]


def report(study, frame, cluster, *others):
    """Make a report of frames without files."""
    runs = [
        memory_run(outcomes, label, manifest=make_manifest(label, study=study.name))
        for label, outcomes in zip(LABELS, (frame, *others), strict=False)
    ]
    settings = ReportSettings(resamples=200, answers=0)
    return Report(runs=runs, design=study.design, settings=settings, cluster=cluster)


def overall(made, rates=paired_rates):
    """Return the table of all pairs."""
    return _overall(made, rates)


def finding(spec, made, tables):
    """Return finding and summary of a page."""
    return " ".join(sentence_text(paragraph(one)) for one in spec.finding(made, tables))


def prose(analysis, made, tables):
    """Return the text of an analysis before its figures."""
    first = next(iter(analysis.figures(made, tables)))
    assert isinstance(first, Prose)
    return sentence_text(first.parts)


def logistic(values):
    return 1.0 / (1.0 + np.exp(-values))


def numbered(letter, numbers):
    return letter + numbers.astype(str)


def outcomes_of(frame, study, conditions, **columns):
    """Add the required columns of outcomes to simulated labels."""
    first, second = conditions
    shared = {"study": study, "first_condition": first, "second_condition": second}
    return frame.assign(**{"pair": [str(n) for n in range(len(frame))], **shared, **columns})


def of_redirects(frame):
    names = {"categories": "Redirects_from_birth_names", "types": "alternative_name"}
    return {column: [[name]] * len(frame) for column, name in names.items()}


def slaq_world(rng, *, long=0.0, slot=0.0, momentum=0.0, n_topics=24):
    """Topics and facts of different difficulty, in the five rotations of an order."""
    rows = []
    for topic in range(n_topics):
        level = rng.normal(0.3, 0.7) + rng.normal(0.0, 0.7, 5)
        alone = rng.random(5) < logistic(level)
        for turn in range(5):
            before = 0.0
            for place in range(5):
                fact = (place + turn) % 5
                chance = logistic(level[fact] + long + slot * (place - 2) + momentum * before)
                is_right = bool(rng.random() < chance)
                before = 1.0 if is_right else -1.0
                rows.append((topic, fact, turn, place, bool(alone[fact]), is_right))
    columns = ["topic", "fact", "permutation", "place", "first_correct", "second_correct"]
    frame = pd.DataFrame(rows, columns=columns)
    return outcomes_of(
        frame,
        "slaq",
        ("short", "long"),
        topic_id=numbered("t", frame["topic"]),
        item=numbered("t", frame["topic"]) + numbered("/", frame["fact"]),
        slot=frame["place"] + 1,
        n_slots=5,
        order_id=frame["permutation"].astype(str),
        question_index=frame["fact"] + 1,
        **{"category": "c", "popularity": "popular", "is_entity": True},
        **dict.fromkeys(("is_recalled", "first_prediction", "second_prediction")),
    )


def slaq_text(monkeypatch, frame):
    made = report(SlaqStudy(), frame, "topic_id")
    numbers = slot_tables(made.frame, n_null=1_000)
    tables = {"overall": overall(made, slaq_page._scores), **describe_slot_tables(numbers)}
    return finding(SlaqStudy.report, made, tables)


def linking_world(rng, *, shift=0.0, n_subjects=60):
    """A true and two false pairs of names per subject, with correlated log-odds."""
    rows = []
    for subject in range(n_subjects):
        habit = rng.normal(0.0, 1.0)
        for kind in ("positive", "surface_negative", "semantic_negative"):
            odds = habit + rng.normal(0.0, 1.0, 2) + (shift if kind == "positive" else 0.0)
            rows.append((subject, kind, *odds))
    frame = pd.DataFrame(rows, columns=["n", "kind", "first_log_odds", "second_log_odds"])
    is_true = frame["kind"] == "positive"
    return outcomes_of(
        frame,
        "linking",
        ("redirect first", "title first"),
        item=numbered("f", frame["n"]),
        subject_id=numbered("Q", frame["n"]),
        source_id=numbered("s", frame["n"]),
        first_correct=(frame["first_log_odds"] > 0) == is_true,
        second_correct=(frame["second_log_odds"] > 0) == is_true,
        first_surface=numbered("a", frame.index),
        second_surface=numbered("b", frame.index),
        **of_redirects(frame),
        **{"is_main": True, "is_disputable": False},
        **dict.fromkeys(("first_calibrated_log_odds", "second_calibrated_log_odds"), np.nan),
    )


def linking_text(monkeypatch, frame):
    # The tables of any paired study do not describe linking.
    monkeypatch.setattr(linking_page, "paired_tables", lambda made: {"overall": overall(made)})
    made = report(LinkingStudy(), frame, "subject_id")
    return finding(LinkingStudy.report, made, LinkingStudy.report.compute(made))


def redirect_world(rng, *, loss=0.0, of_linked=0.0, n_facts=80):
    """Facts under a title and two redirects, some of which the model links."""
    rows = []
    for fact in range(n_facts):
        level = rng.normal(0.5, 1.0)
        title = bool(rng.random() < logistic(level))
        for name in range(2):
            is_linked = bool(rng.random() < 0.5)
            same = is_linked and rng.random() < of_linked
            other = title if same else bool(rng.random() < logistic(level - loss))
            rows.append((fact, name, title, other, is_linked))
    columns = ["n", "name", "first_correct", "second_correct", "is_linked"]
    frame = pd.DataFrame(rows, columns=columns)
    return outcomes_of(
        frame,
        "redirectqa",
        ("canonical", "redirect"),
        item=numbered("f", frame["n"]),
        subject_id=numbered("Q", frame["n"]),
        **{"relation": "occupation", "template": "original"},
        **of_redirects(frame),
        first_surface=numbered("t", frame["n"]),
        second_surface=numbered("r", frame["n"]) + numbered("-", frame["name"]),
    )


def redirect_text(monkeypatch, frame):
    made = report(RedirectQAStudy(), frame.drop(columns="is_linked"), "item")
    return finding(RedirectQAStudy.report, made, {"overall": overall(made)})


def consistency_text(monkeypatch, frame):
    names = ["first_surface", "second_surface"]
    probe = frame[[*names, "is_linked"]].assign(
        first_log_odds=frame["is_linked"].astype(float) - 0.5
    )
    monkeypatch.setattr(consistency, "_probes", lambda folders: {"m": probe})
    analysis = LinkingConsistency()
    made = report(RedirectQAStudy(), frame.drop(columns="is_linked"), "item")
    return prose(analysis, made, analysis.tables(made, LinkingConsistencySettings(linking=())))


def frequency_world(rng, *, entity=0.0, surface=0.0, n_facts=150):
    """Facts under a title and two redirects, with the frequency of each name."""
    share = rng.dirichlet([2, 0.5, 0.5], n_facts)
    counts = 1 + rng.poisson(np.exp(rng.normal(5, 1.5, (n_facts, 1))) * share)
    totals = counts.sum(axis=1)
    level = rng.normal(0.0, 0.7, n_facts)[:, None] + entity * (np.log(totals)[:, None] - 5)
    right = rng.random(counts.shape) < logistic(level + surface * (np.log(counts) - 4))
    fact, form = np.indices(counts.shape).reshape(2, -1)
    frame = pd.DataFrame({"n": fact, "form": form, "right": right.ravel()})
    frame["item"] = numbered("f", frame["n"])
    frame["surface"] = numbered("n", frame["n"]) + numbered("-", frame["form"])
    instances = frame.assign(
        surface_id=frame["item"] + "|" + frame["surface"],
        is_canonical=frame["form"] == 0,
        entity_frequency=totals[fact],
        surface_frequency=counts.ravel(),
        measure="longest",
    )
    title = frame[frame["form"] == 0].set_index("n")
    pairs = frame[frame["form"] > 0].reset_index(drop=True)
    outcomes = outcomes_of(
        pairs,
        "redirectqa",
        ("canonical", "redirect"),
        subject_id=numbered("Q", pairs["n"]),
        first_surface=pairs["n"].map(title["surface"]),
        second_surface=pairs["surface"],
        first_correct=pairs["n"].map(title["right"]),
        second_correct=pairs["right"],
        **{"relation": "occupation", "template": "original"},
    )
    return outcomes, instances


def frequency_text(monkeypatch, world, tmp_path):
    outcomes, instances = world
    file = tmp_path / "instances.parquet"
    instances.to_parquet(file)
    analysis = FrequencyAnalysis()
    # The text of the page depends only on the first tables.
    monkeypatch.setattr(frequency, "_variants", lambda *_: None)
    monkeypatch.setattr(frequency, "frequency_curves", lambda *_, **__: pd.DataFrame())
    made = report(RedirectQAStudy(), outcomes, "item")
    tables = analysis.tables(made, FrequencySettings(frequencies=file, bins=3))
    return prose(analysis, made, tables)


def lexical_world(rng, *, loss=0.0, common=0.0, n=60, tasks=("piqa", "copa", "winogrande")):
    """Instances of three tasks of different difficulty and popularity."""
    frame = pd.DataFrame({"task": task, "number": number} for task in tasks for number in range(n))
    level = rng.normal(0.4, 1.0, len(frame))
    lead = rng.normal(0.0, 1.0, len(frame))
    first = rng.random(len(frame)) < logistic(level + common * lead)
    second = rng.random(len(frame)) < logistic(level + common * lead - loss)
    fact = frame["task"] + "/" + frame["number"].astype(str)
    popularity = rng.normal(5.0, 1.0, len(frame))
    return outcomes_of(
        frame,
        "lexical",
        ("original", "0"),
        item=fact,
        context=fact,
        pair=fact + "/0",
        **{"first_correct": first, "second_correct": second},
        **{"kind": "functional", "group": "g", "replaced": "noun", "is_broken": False},
        **{"draw": 0, "n_edits": 1, "n_control_edits": 0},
        **dict.fromkeys(("first_log_probability", "second_log_probability"), -1.0),
        **dict.fromkeys(("first_lead", "second_lead"), lead),
        first_popularity=popularity,
        second_popularity=popularity + rng.normal(-loss, 1.0, len(frame)),
    )


def lexical_text(monkeypatch, frame):
    made = report(LexicalStudy(), frame, "context")
    return finding(LexicalStudy.report, made, {"overall": overall(made), **lexical_tables(made)})


def popularity_text(monkeypatch, frame):
    monkeypatch.setattr(popularity, "_paired", lambda *_: None)
    monkeypatch.setattr(popularity, "_distribution", lambda *_: None)
    monkeypatch.setattr(popularity, "_read", lambda path: {})
    monkeypatch.setattr(popularity, "_scored", lambda run, *rest: frame.assign(model="m"))
    analysis = PopularityAnalysis()
    made = report(LexicalStudy(), frame, "context")
    return prose(
        analysis, made, analysis.tables(made, PopularitySettings(counts=(Path("counts"),)))
    )


def audit_world(rng, *, store=0.0, n_facts=40):
    """Facts in two styles, with equal accuracy with and without retrieval by default."""
    rows = []
    for fact in range(n_facts):
        level = rng.normal(-0.5, 1.0)
        for style in ("cloze", "direct_questions"):
            on, off = (bool(rng.random() < logistic(level + more)) for more in (store, 0.0))
            rows.append((fact, style, on, off))
    frame = pd.DataFrame(rows, columns=["prompt_id", "style", "first_correct", "second_correct"])
    kinds = np.where(frame["second_correct"], "parameters", "same_object")
    states = ("full", "first", "second")
    return outcomes_of(
        frame,
        "audit",
        ("DEL-ON", "DEL-OFF"),
        pair=frame["prompt_id"].astype(str) + "/" + frame["style"],
        item=numbered("countries/base/", frame["prompt_id"]),
        base_fact=numbered("s", frame["prompt_id"]),
        subject=numbered("s", frame["prompt_id"]),
        **{"database": "countries/base", "domain": "countries", "topology": "base"},
        **{"relation": "Capital", "gold_object": "o", "full_correct": True, "gold_retrieved": None},
        **{"n_deleted": 1, "n_surviving": 0, "n_lookups": 1, "n_abstained": 0},
        echoes_subject=False,
        attribution=pd.Series(kinds, dtype=object).where(frame["first_correct"], None),
        attributed_to=None,
        **{f"{state}_prediction": "" for state in states},
        **{f"{state}_f1": 0.0 for state in states},
    )


def audit_text(monkeypatch, frame):
    made = report(AuditStudy(), frame, "base_fact")
    rates = audit_rates(made.frame, ["model"], "base_fact")
    return finding(AuditStudy.report, made, {"overall": Table(frame=rates, caption="", columns=[])})


def mechanism_world(rng, *, shift=0.0, n_topics=30):
    """Similarities of pairs of both classes, correlated within topics."""
    rows = []
    for topic in range(n_topics):
        of_topic = rng.normal(0.5, 0.1)
        for _ in range(4):
            is_aligned = bool(rng.random() < 0.5)
            common = of_topic + rng.normal(0.0, 0.1) + shift * is_aligned
            values = common + rng.normal(0.0, 0.05, len(FEATURES))
            rows.append((f"t{topic}", is_aligned, *values))
    frame = pd.DataFrame(rows, columns=["cluster", "is_aligned", *FEATURES])
    return frame.assign(model="m", aggregation="transport", tokens="span")


def mechanism_text(monkeypatch, frame):
    return sentence_text(make_finding(difference_rows(frame)))


STUDIES = {
    "slaq": (slaq_world, slaq_text, 3),
    "linking": (linking_world, linking_text, 1),
    "redirectqa": (redirect_world, redirect_text, 1),
    "linking_vs_consistency": (redirect_world, consistency_text, 1),
    "frequency": (frequency_world, frequency_text, 2),
    "lexical": (lexical_world, lexical_text, 4),
    "popularity": (lexical_world, popularity_text, 6),
    "mechanism": (mechanism_world, mechanism_text, 1),
    "audit": (audit_world, audit_text, 1),
}
"""Of each page its worlds, its sentences, and how many of these could claim something."""


def page_text(name, monkeypatch, tmp_path, rng, **effect):
    """Return the sentences of the page of a simulation."""
    world, text, _ = STUDIES[name]
    more = (tmp_path,) if name == "frequency" else ()
    return text(monkeypatch, world(rng, **effect), *more)


@pytest.mark.parametrize("name", STUDIES)
def test_simulations_without_an_effect_claim_one_at_the_nominal_rate(name, monkeypatch, tmp_path):
    texts = [page_text(name, monkeypatch, tmp_path, np.random.default_rng(seed)) for seed in SEEDS]

    # The p-values of a simulation are corrected together, so that its claims are one family.
    made = [claim for text in texts for claim in claims(text)[: STUDIES[name][2]]]
    n_possible = len(SEEDS) * STUDIES[name][2]
    # The 0.999 quantile of the number of false claims at 5 %.
    assert len(made) <= binom.ppf(0.999, n_possible, 0.05), made


DIFFERS = "0.* significantly different"


@pytest.mark.parametrize(
    ("name", "effect", "claim"),
    [
        ("slaq", {"long": -1.5}, r"accuracy of m is .* lower in long answers"),
        ("slaq", {"long": 1.5}, r"accuracy of m is .* higher in long answers"),
        ("slaq", {"slot": -0.6}, r"per slot .* is −.* significantly different from 0"),
        ("slaq", {"slot": 0.6}, r"per slot .* is \+.* significantly different from 0"),
        ("slaq", {"momentum": 1.0, "n_topics": 60}, r"^Momentum of m .* statistically significant"),
        ("slaq", {"momentum": -1.0, "n_topics": 60}, r"^The reverse of momentum .* significant"),
        ("linking", {"shift": 1.5}, rf"names of one entity from names of two is {DIFFERS}"),
        (
            "linking_vs_consistency",
            {"of_linked": 0.9},
            r"flip rate of m .* lower for pairs whose names are linked",
        ),
        (
            "frequency",
            {"entity": 1.0},
            rf"with the frequency of the entity, .* is {DIFFERS} from 0",
        ),
        ("frequency", {"surface": 1.0}, rf"with the frequency of the name, .* is {DIFFERS} from 0"),
        ("lexical", {"loss": 1.5}, r"over 3 tasks together is .* lower in other words"),
        ("lexical", {"loss": -1.5}, r"over 3 tasks together is .* higher in other words"),
        ("popularity", {"common": 1.5}, r"higher for common instances than for rare"),
        ("popularity", {"loss": 1.0}, r"texts of piqa \(m\) is .* lower in other words"),
        ("mechanism", {"shift": 0.2}, r"\(Containment\) is .* higher for pairs correct both times"),
        ("audit", {"store": 1.5}, r"after deletion is .* higher with retrieval on"),
        ("audit", {"store": -1.5}, r"after deletion is .* lower with retrieval on"),
    ],
)
def test_planted_effects_are_claimed_in_their_direction(name, effect, claim, monkeypatch, tmp_path):
    rng = np.random.default_rng(1)
    made = claims(page_text(name, monkeypatch, tmp_path, rng, **effect))

    assert any(re.search(claim, one) for one in made), made


MODELS = {
    "redirectqa": (RedirectQAStudy, redirect_world, "item"),
    "slaq": (SlaqStudy, slaq_world, "topic_id"),
    "lexical": (LexicalStudy, lexical_world, "context"),
    "audit": (AuditStudy, audit_world, "base_fact"),
}
"""Study, simulation and cluster of each study whose pages compare models."""


def finding_of_models(name, *worlds):
    """Return the finding of a page of several models."""
    study, _, cluster = MODELS[name]
    first, *others = worlds
    made = report(study(), first, cluster, *others)
    tables = {}
    if name == "audit":
        rates = [audit_rates(run.outcomes, ["model"], "base_fact") for run in made.runs]
        tables["overall"] = Table(frame=pd.concat(rates), caption="", columns=[])
    elif name == "slaq":
        tables["overall"] = overall(made, slaq_page._scores)
    else:
        tables["overall"] = overall(made)
    tables["contrasts"] = compare_models(made)
    tables |= lexical_tables(made) if name == "lexical" else {}
    return sentence_text(paragraph(study.report.finding(made, tables)[0]))


@pytest.mark.parametrize("name", MODELS)
def test_equal_models_are_claimed_to_differ_at_the_nominal_rate(name):
    _, world, _ = MODELS[name]
    texts = [
        # Models with equal probabilities of correct answers.
        finding_of_models(name, *(world(np.random.default_rng([seed, n])) for n in range(2)))
        for seed in SEEDS
    ]

    made = [claim for text in texts for claim in claims(text)]
    assert len(made) <= binom.ppf(0.999, len(SEEDS), 0.05), made
    assert all("minimum detectable" in text for text in texts if not claims(text))


@pytest.mark.parametrize(
    ("name", "effect", "claim"),
    [
        (
            "redirectqa",
            {"loss": 3.0},
            r"rate between .title. and .redirect. is .* (higher for other|lower for m) than",
        ),
        ("slaq", {"long": -2.0}, r"short to long answers is .* higher for m than for other"),
        ("slaq", {"long": 2.0}, r"short to long answers is .* lower for m than for other"),
        ("lexical", {"loss": 2.0}, r"over 3 tasks together is .* higher for m than for other"),
        ("lexical", {"loss": -2.0}, r"over 3 tasks together is .* lower for m than for other"),
        ("audit", {"store": 2.0}, r"with retrieval on is .* lower for m than for other"),
        ("audit", {"store": -2.0}, r"with retrieval on is .* higher for m than for other"),
    ],
)
def test_a_model_with_a_planted_effect_is_claimed_to_differ(name, effect, claim):
    _, world, _ = MODELS[name]
    worlds = world(np.random.default_rng(1)), world(np.random.default_rng(2), **effect)

    text = finding_of_models(name, *worlds)

    assert re.search(claim, text), text
    # Each pair of lexical is a cluster, so that only pairs are counted.
    clusters = "" if name == "lexical" else r", \d+ \w+"
    assert re.search(rf"\(95 % CI .*, p\s.\s[\d.]+; \d+ \w+{clusters}\)\.$", text), text


@pytest.mark.parametrize("name", MODELS)
def test_finding_of_three_models_names_the_ones_that_differ(name):
    """Only the third model has an effect."""
    _, world, _ = MODELS[name]
    effect = {"redirectqa": {"loss": 6.0}, "slaq": {"long": -2.5}, "lexical": {"loss": 2.5}}
    effect["audit"] = {"store": 2.5}
    worlds = [world(np.random.default_rng(seed)) for seed in (1, 2)]

    alike = finding_of_models(name, *worlds, world(np.random.default_rng(3)))
    differ = finding_of_models(name, *worlds, world(np.random.default_rng(3), **effect[name]))

    assert alike.startswith("3 of the 3 comparisons in ")
    assert "not statistically significant (largest minimum detectable difference " in alike
    assert len(claims(differ)) == 2
    assert all("third" in claim for claim in claims(differ))
    assert "1 of the 3 comparisons in " in differ
    assert "is not statistically significant (minimum detectable difference " in differ
