"""Databases with decoys, a model that looks up facts, and run folders of audits."""

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
from surface_consistency.studies.audit import AuditData, AuditSettings, AuditStudy, find_conditions
from surface_consistency.studies.audit.lookup.fact_store import LookupRequest
from surface_consistency.studies.audit.records import Attribution, AuditOutcome
from surface_consistency.studies.audit.retrieval.retrievers import FuzzyRetriever
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
    """Twelve facts with distinct objects, two of which have a decoy."""
    facts = [
        Triplet(name, relation, value)
        for name, values in COUNTRIES.items()
        for relation, value in zip(("Capital", "Internet TLD"), values, strict=True)
    ]
    decoys = [Triplet(f"{name} State", "Capital City", COUNTRIES[name][0]) for name in DECOYS]
    return {"base": facts, "noise": [*facts, *decoys]}


class Asking(Runner):
    """A model that looks its fact up and returns the value found, or a value that it knows.

    Args:
        known: Values that it knows, by subject and relation.
        dies_after: Number of prompts after which it is killed; None to disable.
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
def settings():
    """Settings of an audit with fuzzy retrieval without repeats: `settings(threshold=(0.9,))`."""
    usual = {"retriever": ("fuzzy",), "threshold": (0.5,), "repeat": 0}
    return lambda **changes: AuditSettings(**usual | changes)


@pytest.fixture
def study():
    """The study; all its retrievers are fuzzy."""
    return AuditStudy(find_retrievers=lambda name, cache_dir=None: FuzzyRetriever)


@pytest.fixture
def audit(data, study, settings, tmp_path):
    """Runs an audit; `audit("name", known=..., chosen=...)`."""

    def run(name="run", *, known=(), runner=None, chosen=None, studied=None, **options):
        options = {"model": "asking", "settings": chosen or settings()} | options
        runner = runner or Asking(known)
        return run_study(studied or study, data, runner, tmp_path / name, progress=False, **options)

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
    """Return the outcome of a fact that is correct only under FULL, with changes."""
    database = str(changes.get("database", "countries/base"))
    domain, _, topology = database.partition("/")
    style, fact = changes.get("style", "cloze"), changes.pop("fact", place)
    row = {"study": "audit", "model": "toy_model", "relation": "Capital", "prompt_id": place}
    row |= {"pair": f"{database}/{style}/{place}", "item": f"{database}/{fact}"}
    row["base_fact"] = f"{domain} {fact} | Capital"
    row |= {"first_condition": "DEL-ON", "second_condition": "DEL-OFF"}
    row |= {"first_correct": False, "second_correct": False, "full_correct": True}
    row |= {"database": database, "domain": domain, "topology": topology or domain, "style": style}
    row |= {"subject": f"Subject {fact}", "gold_object": f"Object {fact}"}
    row |= {"full_prediction": f"Object {fact}", "first_prediction": "Elsewhere"}
    row |= {"second_prediction": "unknown", "full_f1": 1.0, "n_deleted": 1, "n_surviving": 0}
    row |= {"n_lookups": 1, "n_abstained": 0, "gold_retrieved": False, "echoes_subject": False}
    row |= {"attribution": None, "attributed_to": None} | changes
    for state in ("first", "second"):
        row.setdefault(f"{state}_f1", float(bool(row[f"{state}_correct"])))
    return AuditOutcome.model_validate(row).model_dump()


def make_outcomes(rows):
    """Build outcomes: `make_outcomes([{"first_correct": True, ...}, ...])`."""
    frame = pd.DataFrame([_outcome(place, **row) for place, row in enumerate(rows)])
    return make_frame({str(name): frame[name] for name in frame}, AuditOutcome)


def random_outcomes(n_facts, *, seed, model="toy_model"):
    """Build random outcomes of four databases."""
    rng = np.random.default_rng(seed)
    rows = []
    for database in ("countries/base", "countries/noise", "sports/base", "released"):
        for fact in range(n_facts):
            surviving = int(rng.random() < 0.1)
            for style in ("cloze", "direct_questions", "fewshot_questions"):
                on, off, full = (bool(x) for x in rng.random(3) < (0.3, 0.05, 0.8))
                kind = KINDS[int(rng.integers(len(KINDS)))] if on else None
                row = {"model": model, "database": database, "fact": fact, "style": style}
                row |= {"first_correct": on, "second_correct": off, "full_correct": full}
                row |= {"full_f1": float(rng.random()), "n_surviving": surviving}
                row |= {"gold_retrieved": kind == "surviving_equivalent", "attribution": kind}
                rows.append(row)
    return make_outcomes(rows)


def _manifest(model="toy_model", **changes):
    settings = {"retriever": ["minilm"], "threshold": [0.6], "fallback": "abstain"}
    settings |= changes.pop("settings", {})
    data = DataSource(id="databases", revision=None, digest="d" * 64, n_questions=3)
    fields = {"study": "audit", "model": model, "data": data, "settings": settings}
    fields |= {"runner": {"runner": "lookup", "dtype": "float32"}, "package_version": "0.0.1"}
    fields |= {"created_at": "2026-01-02T03:04:05+00:00"}
    return RunManifest.model_validate(fields | changes)


@pytest.fixture
def audit_run(tmp_path):
    """Write a run folder: `audit_run(rows or frame, name, model, settings={...}, checks={...})`."""

    def write(outcomes, name="run", model="toy_model", *, checks=None, **changes):
        frame = outcomes if isinstance(outcomes, pd.DataFrame) else make_outcomes(outcomes)
        manifest = _manifest(model, **changes)
        folder = RunFolder.create(tmp_path / name)
        folder.manifest.write_text(manifest.model_dump_json(), encoding="utf-8")
        with folder.replacing_scores(Scoring(judged_by="by hand")) as beside:
            write_frame(beside.outcomes, frame.assign(model=manifest.model), AuditOutcome)
            beside.write_checks(checks or {})
        return folder.path

    return write
