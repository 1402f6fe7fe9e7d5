"""Databases with decoys and a model that looks facts up; audits made by hand, as run folders."""

import json
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.models.runner import Runner
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import make_frame, write_frame
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource, Generation, LookupQuery, Triplet
from surface_consistency.schemas.memory import Candidate, Lookup, RetrievalTrace
from surface_consistency.schemas.prompts import Prompt
from surface_consistency.studies.audit import (
    AuditData,
    AuditSettings,
    AuditStudy,
    find_conditions,
)
from surface_consistency.studies.audit.lookup.fact_store import LookupRequest
from surface_consistency.studies.audit.records import Attribution, AuditOutcome
from surface_consistency.studies.audit.retrieval import FuzzyRetriever
from surface_consistency.studies.audit.tables import audit_tables
from tests.audit_databases import write_audit_databases

STYLES = ("direct_questions", "cloze")
COUNTRIES = {
    "Arania": ("Lumo", ".aq"),
    "Beldova": ("Serrin", ".bd"),
    "Corvia": ("Tallow", ".cv"),
    "Dunmark": ("Ostby", ".dk"),
    "Esteria": ("Quill", ".et"),
    "Fenland": ("Marsh End", ".fn"),
}
DECOYS = ("Arania", "Beldova")
KINDS = get_args(Attribution)


def entries():
    """Twelve facts with objects of their own, and a decoy beside two of them."""
    facts = [
        Triplet(name, relation, value)
        for name, values in COUNTRIES.items()
        for relation, value in zip(("Capital", "Internet TLD"), values, strict=True)
    ]
    decoys = [Triplet(f"{name} State", "Capital City", COUNTRIES[name][0]) for name in DECOYS]
    return {"base": facts, "noise": [*facts, *decoys]}


class Asking(Runner):
    """A model that looks its fact up and says what it is given, or what it knows by itself.

    Args:
        known: Values that it knows, by subject and relation.
        dies_after: Prompts after which it is killed; None for never.
    """

    name = "asking"

    def __init__(self, known=(), dies_after=None):
        self.known = dict(known)
        self.left = dies_after
        self.source, self.made, self.asked = None, [], []

    def with_store(self, source):
        other = type(self)(self.known, self.left)
        other.source = source
        self.made.append(other)
        return other

    def fingerprint(self):
        return {"runner": self.name, "source": self.source.fingerprint()}

    def generate(self, prompts, params):
        for prompt in prompts:
            if self.left is not None and len(self.asked) >= self.left:
                raise KeyboardInterrupt
            self.asked.append(prompt.id)
            yield self.answer(prompt)

    def answer(self, prompt):
        fact = self.source.query(prompt)
        knows = self.known.get((fact.entity, fact.relation))
        if self.source.mode(prompt) != "answer":
            return Generation(prompt_id=prompt.id, text=f"{knows or 'unknown'}.", lookups=())
        query = LookupQuery(entity=fact.entity, relation=fact.relation)
        (lookup,) = self.source.look_up([LookupRequest(prompt, query)])
        value = lookup.value or "unknown"
        text = (
            f"<|db_entity|> {query.entity}<|db_relationship|> {query.relation}<|db_return|> "
            f"{value}<|db_end|>{'' if lookup.value or not knows else f' {knows}'}."
        )
        return Generation(prompt_id=prompt.id, text=text, lookups=(lookup,))


@pytest.fixture
def databases(tmp_path):
    """A folder of the base and noise databases."""
    write_audit_databases(tmp_path / "databases", "lands", entries(), STYLES)
    return tmp_path / "databases"


@pytest.fixture
def conditions(databases):
    return find_conditions(databases)


@pytest.fixture
def data(conditions):
    return AuditData(id="databases", conditions=conditions)


@pytest.fixture
def asking():
    """The class of the model."""
    return Asking


@pytest.fixture
def fuzzy():
    """Retrievers that compare letters."""
    return FuzzyRetriever


@pytest.fixture
def settings():
    """Settings of an audit by letters, nothing asked twice: `settings(threshold=(0.9,))`."""

    def make(**changes):
        return AuditSettings(
            **{"retriever": ("fuzzy",), "threshold": (0.5,), "repeat": 0} | changes
        )

    return make


@pytest.fixture
def study(fuzzy):
    """The study, its retrievers those that compare letters whatever the name."""
    return AuditStudy(find_retrievers=lambda name, cache_dir=None: fuzzy)


@pytest.fixture
def audit(data, study, settings, tmp_path):
    """Runs an audit; `audit("name", known=..., chosen=...)`."""

    def run(name="run", *, known=(), runner=None, chosen=None, studied=None, **options):
        return run_study(
            studied or study,
            data,
            runner or Asking(known),
            tmp_path / name,
            settings=chosen or settings(),
            progress=False,
            **{"model": "asking"} | options,
        )

    return run


@pytest.fixture
def score(study):
    """Scores an audit."""
    return lambda folder, **options: score_run(folder, study=study, **options)


@pytest.fixture
def finish(score):
    """Scores an audit and computes its tables."""
    return lambda folder: audit_tables(score(folder))


def _outcome(place, **changes):
    database = str(changes.get("database", "countries/base"))
    domain, _, topology = database.partition("/")
    style = changes.get("style", "cloze")
    fact = changes.pop("fact", place)
    row = {
        "study": "audit",
        "model": "toy_model",
        "pair_id": f"{database}/{style}/{place}",
        "fact_id": f"{database}/{fact}",
        "first_condition": "DEL-ON",
        "second_condition": "DEL-OFF",
        "first_correct": False,
        "second_correct": False,
        "database": database,
        "domain": domain,
        "topology": topology or domain,
        "style": style,
        "prompt_id": place,
        "subject": f"Subject {fact}",
        "relation": "Capital",
        "gold_object": f"Object {fact}",
        "full_correct": True,
        "full_prediction": f"Object {fact}",
        "first_prediction": "Elsewhere",
        "second_prediction": "unknown",
        "full_f1": 1.0,
        "first_f1": 0.0,
        "second_f1": 0.0,
        "n_deleted": 1,
        "n_surviving": 0,
        "n_lookups": 1,
        "n_abstained": 0,
        "has_gold": False,
        "echoes_subject": False,
        "attribution": None,
        "attributed_to": None,
    }
    row |= changes
    if row["first_correct"] and "first_f1" not in changes:
        row["first_f1"] = 1.0
    if row["second_correct"] and "second_f1" not in changes:
        row["second_f1"] = 1.0
    return AuditOutcome.model_validate(row).model_dump()


def _frame(rows):
    frame = pd.DataFrame([_outcome(place, **row) for place, row in enumerate(rows)])
    return make_frame({str(name): frame[name] for name in frame}, AuditOutcome)


def _random_frame(n_facts, *, seed, model="toy_model"):
    rng = np.random.default_rng(seed)
    rows = []
    for database in ("countries/base", "countries/noise", "sports/base", "released"):
        for fact in range(n_facts):
            surviving = int(rng.random() < 0.1)
            for style in ("cloze", "direct_questions", "fewshot_questions"):
                on, off, full = (bool(x) for x in rng.random(3) < (0.3, 0.05, 0.8))
                kind = KINDS[int(rng.integers(len(KINDS)))] if on else None
                rows.append(
                    {
                        "model": model,
                        "database": database,
                        "fact": fact,
                        "style": style,
                        "first_correct": on,
                        "second_correct": off,
                        "full_correct": full,
                        "full_f1": float(rng.random()),
                        "n_surviving": surviving,
                        "has_gold": kind == "surviving_equivalent",
                        "attribution": kind,
                    }
                )
    return _frame(rows)


def _manifest(model="toy_model", **changes):
    settings = {"retriever": ["minilm"], "threshold": [0.6], "fallback": "abstain"}
    settings |= changes.pop("settings", {})
    told = {
        "study": "audit",
        "model": model,
        "data": DataSource(id="databases", revision=None, digest="d" * 64, n_questions=3),
        "runner": {"runner": "lookup", "dtype": "float32"},
        "settings": settings,
        "package_version": "0.0.1",
        "created_at": "2026-01-02T03:04:05+00:00",
    }
    return RunManifest.model_validate(told | changes)


@pytest.fixture
def audit_frame():
    """Build outcomes: `audit_frame([{"first_correct": True, ...}, ...])`."""
    return _frame


@pytest.fixture
def random_audit():
    """Build random outcomes of four databases: `random_audit(n_facts, seed=..., model=...)`."""
    return _random_frame


@pytest.fixture
def audit_manifest():
    """Build a manifest: `audit_manifest(model, settings={...})`."""
    return _manifest


@pytest.fixture
def audit_run(tmp_path):
    """Write a run folder: `audit_run(name, frame, manifest, checks={...})`."""

    def write(name, frame, manifest, *, checks=None):
        folder = RunFolder.create(tmp_path / name)
        folder.manifest.write_text(manifest.model_dump_json(), encoding="utf-8")
        with folder.replacing_scores(Scoring(judged_by="by hand")) as beside:
            write_frame(beside.outcomes, frame.assign(model=manifest.model), AuditOutcome)
            beside.write_checks(checks or {})
        return folder.path

    return write


def _candidate(entry, score, **flags):
    names = ("subject", "relation", "object")
    matches = {f"matches_{name}": flags.get(name, False) for name in names}
    return Candidate(
        **dict(zip(names, entry, strict=True)),
        score=score,
        **matches,
        supports_target_fact=all(matches.values()),
        matches_deleted_fact=flags.get("deleted", False),
    )


@pytest.fixture
def told_run(audit_run, audit_frame, audit_manifest):
    """Write a run folder of one fact in one style with its answers and traces."""

    def write(name="told", *, subject="United States", style="cloze"):
        gold = (subject, "Capital", "Washington, D.C.")
        decoy = ("Government", "Seat", "Washington, D.C.")
        query = LookupQuery(entity=subject, relation="Capital")
        matched = _candidate(gold, 0.98, subject=True, relation=True, object=True)
        deleted = matched.model_copy(update={"matches_deleted_fact": True})
        other = _candidate(decoy, 0.71, object=True)
        found = {"retrieval_enabled": True, "threshold": 0.6, "selected_value": "Washington, D.C."}
        answered = {
            "FULL": [
                RetrievalTrace(
                    state="FULL",
                    lookup_query=query,
                    all_candidates=(matched, other),
                    retained_candidates=(matched, other),
                    selected_candidate=matched,
                    **found,
                )
            ],
            "DEL-ON": [
                RetrievalTrace(
                    state="DEL-ON",
                    lookup_query=query,
                    all_candidates=(deleted, other),
                    deleted_candidates=(deleted,),
                    retained_candidates=(other,),
                    selected_candidate=other,
                    **found,
                ),
                RetrievalTrace(
                    state="DEL-ON",
                    retrieval_enabled=True,
                    lookup_query=LookupQuery(entity="nowhere", relation="at all"),
                    threshold=0.6,
                ),
            ],
            "DEL-OFF": [],
        }
        outcome = {
            "database": "countries/noise",
            "fact": 7,
            "style": style,
            "subject": subject,
            "gold_object": "Washington, D.C.",
            "first_correct": True,
            "first_prediction": "Washington, D.C.",
            "full_prediction": "Washington, D.C.",
            "n_surviving": 1,
            "n_lookups": 2,
            "n_abstained": 1,
            "attribution": "same_object",
            "attributed_to": " | ".join(decoy),
        }
        home = audit_run(name, audit_frame([outcome]), audit_manifest())
        folder = RunFolder.open(home)
        rows, lines = [], {"store": [], "off": []}
        for state, traces in answered.items():
            prompt = Prompt(
                id=f"countries/noise/{style}/0/{state}",
                text=f"The capital of {subject} is",
                condition=f"{state}|x",
            )
            group = "off" if state == "DEL-OFF" else "store"
            rows.append(
                {
                    "target_id": prompt.id,
                    "prompt_id": prompt.id,
                    "prompt_key": prompt.key,
                    "group": group,
                    "state": state,
                    "fact_id": "countries/noise/7",
                    "answers": ["Washington, D.C."],
                    "question": prompt.text,
                    "database": "countries/noise",
                    "style": style,
                    "prompt_number": 0,
                    "fact_number": 7,
                    "subject": subject,
                    "relation": "Capital",
                    "gold_object": "Washington, D.C.",
                    "subject_aliases": ["USA"],
                    "relation_aliases": [],
                    "object_aliases": [],
                    "n_deleted": 1,
                    "surviving": [["USA", "Capital city", "Washington, D.C."]],
                    "echoes": [],
                }
            )
            lines[group].append(
                Generation(
                    prompt_id=prompt.id,
                    text="unknown" if state == "DEL-OFF" else "Washington, D.C.",
                    lookups=tuple(
                        Lookup(query=t.lookup_query, value=t.selected_value, trace=t)
                        for t in traces
                    ),
                    prompt_key=prompt.key,
                )
            )
        folder.write_plan(pd.DataFrame(rows), pd.DataFrame({"pair_id": ["x"]}))
        for group, records in lines.items():
            text = "".join(json.dumps(r.model_dump(mode="json")) + "\n" for r in records)
            folder.log(group).write_text(text, encoding="utf-8")
        return home

    return write
