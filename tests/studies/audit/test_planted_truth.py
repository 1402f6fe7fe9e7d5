"""Simulated audits: tables, origins and sentences of the page equal the planted truth."""

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.report import Report, build_page
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import DataWarning
from surface_consistency.runs.loader import load_runs
from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.studies.audit import AuditData, AuditSettings, AuditStudy, find_conditions
from surface_consistency.studies.audit.page import limit_checks
from surface_consistency.studies.audit.records import AuditOutcome
from surface_consistency.studies.audit.retrieval.retriever import Hits
from surface_consistency.studies.audit.retrieval.triplets import content_digest
from surface_consistency.studies.audit.settings import AuditScoring
from surface_consistency.studies.audit.tables import audit_tables
from surface_consistency.tables.numbers import sentence_text
from surface_consistency.tables.table import Table
from tests.audit_databases import write_database, write_prompts
from tests.studies.audit.conftest import Asking

FEW = ReportSettings(resamples=50, answers=0)
N_SUBJECTS = 75
LEFT, DECOYED, KNOWN, HIDDEN = range(5), range(5, 10), range(10, 13), range(13, 15)
"""Subjects whose deletion leaves an entry under an alias that only another prompt gives; whose
object stands under another relation; which the model knows and says whatever it is given; which it
knows and says what it is given."""


class ByName:
    """Ranks first the same subject and relation, then the first word of the subject."""

    def __init__(self, triplets):
        self._triplets = list(triplets)

    def fingerprint(self):
        return {"retriever": "by name", "content": content_digest(self._triplets)}

    def search(self, queries, *, k, deleted=None):
        rows = [
            self._ranked(query, set(gone), k) for query, gone in zip(queries, deleted, strict=True)
        ]
        indices, scores = zip(*rows, strict=True)
        return Hits(indices=np.array(indices), scores=np.array(scores, np.float32))

    def _ranked(self, query, gone, k):
        found = sorted(
            (-self._score(query, entry), place)
            for place, entry in enumerate(self._triplets)
            if place not in gone
        )[:k]
        found += [(np.inf, -1)] * (k - len(found))
        return [place for _, place in found], [-score for score, _ in found]

    def _score(self, query, entry):
        same = 0.5 * (entry.subject.split()[0] == query.entity.split()[0])
        return same + 0.3 * (entry.relation == query.relation) + 0.2 * (entry[0] == query.entity)


class Stubborn(Asking):
    """Answers some facts from memory instead of the prompt."""

    def answer(self, prompt):
        generation = super().answer(prompt)
        fact = self.source.query(prompt)
        knows = self.known.get((fact.entity, fact.relation))
        if knows is None or int(fact.entity.removeprefix("Land")) not in KNOWN:
            return generation
        return generation.model_copy(update={"text": f"{knows}."})


def planted(home):
    """Eighty facts: 75 capitals, and the currencies of lands whose deletion is incomplete."""
    entries, prompts = [], []

    def ask(subject, relation, value, *aliases):
        entries.append(Triplet(subject, relation, value))
        fact = {"subject": subject, "relation": relation, "gold_object": value}
        fact |= {"prompt_text": f"The {relation} of {subject} is", "subject_aliases": aliases}
        number = len(prompts)
        prompts.append(AuditPrompt(prompt_id=number, fact_id=number, **fact))

    for number in range(N_SUBJECTS):
        name, capital = f"Land{number}", f"Town{number}"
        ask(name, "capital", capital)
        if number in LEFT:
            entries.append(Triplet(f"{name} Republic", "capital", capital))
            ask(name, "currency", f"Coin{number}", f"{name} Republic")
        if number in DECOYED:
            entries.append(Triplet(f"{name} government", "seat", capital))
        if number in KNOWN or number in HIDDEN:
            entries.append(Triplet(f"{name} isles", "capital", f"Port{number}"))
    (home / "prompts").mkdir(parents=True)
    write_database(home / "lands.json", entries)
    write_prompts(home / "prompts" / "prompts_cloze.jsonl", prompts)
    return AuditData(id="planted", conditions=find_conditions(home / "lands.json"))


@pytest.fixture(scope="module")
def planted_world(tmp_path_factory):
    """The run of the planted world, and its study."""
    home = tmp_path_factory.mktemp("planted")
    known = {(f"Land{n}", "capital"): f"Town{n}" for n in (*KNOWN, *HIDDEN)}
    factory = ByName
    study = AuditStudy(find_retrievers=lambda name, cache_dir=None: factory)
    data, settings = planted(home / "lands"), AuditSettings(threshold=(0.5,), repeat=0)
    options = {"model": "planted", "settings": settings, "progress": False}
    with pytest.warns(DataWarning, match="5 of 80 leave an entry"):
        folder = run_study(study, data, Stubborn(known), home / "run", **options)
    return study, folder


def plain(parts):
    """Write a sentence without hard spaces."""
    return sentence_text(parts).replace("\xa0", " ")


def page_of(planted_world, **scoring):
    study, folder = planted_world
    score_run(folder, study=study, scoring=AuditScoring(**scoring))
    page, found, _ = build_page([folder.path], study=study, settings=FEW)
    return page, {name: table.frame for name, table in found.items()}


def test_page_tables_and_truth_of_a_planted_world_agree(planted_world):
    page, found = page_of(planted_world)

    row = found["overall"].iloc[0]
    assert row[["n", "both", "first_only", "second_only"]].tolist() == [80, 3, 10, 2]
    assert row["full_accuracy"] == 1
    # Facts that stay correct after deletion: those with a decoy and the known ones.
    assert (row["artifacts"], row["artifact_rate"]) == (8, 8 / 80)
    assert row["n_incomplete"] == 5
    counted = found["attribution"].set_index("attribution")["count"]
    assert counted[counted > 0].to_dict() == {
        "parameters": 3,
        "surviving_equivalent": 5,
        "same_object": 5,
    }
    survivors = found["survivors"]
    own = survivors["attribution"] == "parameters"
    assert own.tolist() == survivors["right_under_del_off"].tolist()
    assert set(survivors.loc[own, "subject"]) == {f"Land{n}" for n in KNOWN}
    sentence, summary = map(plain, (page.finding.sentence, page.finding.summary))
    assert sentence.startswith(
        "The accuracy of planted after deletion with retrieval on is 16.2 % (95 % CI "
    )
    assert "its accuracy after deletion with retrieval off, is 6.2 % (95 % CI " in sentence
    is_shown = row["retrieval_effect_low"] > 0
    assert ("is 10.0 points higher with retrieval on than" in sentence) == is_shown
    assert "The accuracy of planted with the full database is 100.0 %" in summary
    assert (
        "The 13 surviving answers are on 13 of 80 facts; by origin: known without retrieval 3, "
        "entry that survived 5, same object elsewhere 5." in summary
    )
    shown = " ".join(plain(check.text) for check in page.checks)
    assert "after 5 of 80 deletions, an entry still states the fact" in shown


def test_as_published_all_correct_answers_after_deletion_are_artifacts(planted_world):
    row = page_of(planted_world, support="published")[1]["overall"].iloc[0]

    assert row["artifacts"] == row["both"] + row["first_only"] == 13
    assert row["artifacts_equal_del_on"]


CLAIMS = (
    "higher for correct answers under DEL-ON",
    "lower for correct answers under DEL-ON",
    "Read survival as a proportion of these answers",
)


@pytest.fixture
def claims(audit_run, monkeypatch):
    """Return a function that lists which of `CLAIMS` the checks of a simulation make."""
    monkeypatch.setattr(f"{audit_tables.__module__}.AUDIT_GROUPINGS", {"overall": ()})

    def of(seed, *, full, on, flips, n_facts=40):
        rng = np.random.default_rng(seed)
        states = {"full_correct": full, "first_correct": on}
        rows = [
            {state: bool(rng.random() < share) for state, share in states.items()}
            for _ in range(n_facts)
        ]
        n_flips = int(rng.binomial(n_facts, flips))
        floor = {"model": "m", "state": "DEL-ON", "n_repeated": n_facts, "n_verdict_flips": n_flips}
        rates = {"flip_rate": n_flips / n_facts, "flip_rate_low": None, "flip_rate_high": None}
        floor = pd.DataFrame([floor | rates])
        folder = audit_run(rows, f"w{seed}", checks={"noise_floor": floor})
        runs = load_runs([folder], outcome=AuditOutcome)
        report = Report(runs=runs, design=AuditStudy.design, settings=FEW, cluster="item")
        rates = Table(frame=audit_tables(report.frame)["overall"], caption="", columns=[])
        text = " ".join(plain(one.text) for one in limit_checks(report, {"overall": rates}))
        return {claim for claim in CLAIMS if claim in text}

    return of


def test_checks_claim_a_null_effect_only_at_the_nominal_rate(claims):
    """Random answers in every state: 2 of 40 by chance, more than 5 in 1 of 70 such tests."""
    made = [claims(seed, full=0.5, on=0.5, flips=0.5) for seed in range(40)]

    assert sum(not found.isdisjoint(CLAIMS[:2]) for found in made) <= 5
    assert sum(CLAIMS[2] in found for found in made) <= 5


@pytest.mark.parametrize(
    ("truth", "claimed"),
    [
        ({"full": 0.9, "on": 0.7, "flips": 0.05}, {CLAIMS[0]}),
        ({"full": 0.1, "on": 0.05, "flips": 0.6}, {CLAIMS[1], CLAIMS[2]}),
    ],
)
def test_checks_claim_a_true_effect(claims, truth, claimed):
    made = [claims(seed, n_facts=80, **truth) for seed in range(20)]
    assert made == [claimed] * 20


def test_no_claims_are_made_for_a_single_fact(audit_run):
    rows = [{"fact": 0, "first_correct": place == 0, "second_correct": True} for place in range(4)]
    page = build_page([audit_run(rows)], study=AuditStudy(), settings=FEW)[0]

    assert plain(page.finding.sentence) == (
        "After deletion, toy_model answers 1 of 4 prompts correctly with retrieval on, and 4 with "
        "retrieval off. A difference in accuracy of toy_model after deletion between retrieval off "
        "and retrieval on cannot be inferred: 4 prompts in 1 fact are too few "
        "(effective number of clusters 1, minimum 4)."
    )
    assert "stay correct" not in plain(page.finding.summary)


def test_page_without_survivors_reports_the_accuracy_without_retrieval(audit_run):
    rows = [{"second_correct": place < 6} for place in range(30)]
    page = build_page([audit_run(rows)], study=AuditStudy(), settings=FEW)[0]

    finding = plain(page.finding.sentence)
    assert "after deletion with retrieval on is 0.0 % (95 % CI " in finding
    assert "its accuracy after deletion with retrieval off, is 20.0 % (95 % CI " in finding
    assert "lower with retrieval on than with retrieval off" in finding
    assert "surviving" not in plain(page.finding.summary)
