"""Audits made by hand: outcomes with known verdicts and attributions, and run folders."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from surface_consistency.schemas import DataSource, Generation, GenerationParams, RunManifest
from surface_consistency.schemas.audit import Attribution, AuditOutcome, AuditTarget
from surface_consistency.schemas.memory import (
    AuditPrompt,
    Candidate,
    Lookup,
    LookupQuery,
    RetrievalTrace,
    Triplet,
)
from surface_consistency.schemas.prompts import Prompt
from surface_consistency.studies.audit.tables import audit_tables

KINDS = get_args(Attribution)


def _outcome(place: int, **changes: object) -> dict[str, object]:
    database = str(changes.get("database", "countries/base"))
    domain, _, variant = database.partition("/")
    style = changes.get("style", "cloze")
    fact = changes.pop("fact", place)
    row: dict[str, object] = {
        "study": "audit",
        "model": "organism",
        "pair_id": f"{database}/{style}/{place}",
        "fact_id": f"{database}/{fact}",
        "first_condition": "DEL-ON",
        "second_condition": "DEL-OFF",
        "first_correct": False,
        "second_correct": False,
        "database": database,
        "domain": domain,
        "variant": variant or domain,
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


def _frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    kinds = dict.fromkeys(
        ("full_correct", "first_correct", "second_correct", "has_gold"), "boolean"
    )
    return pd.DataFrame([_outcome(place, **row) for place, row in enumerate(rows)]).astype(kinds)


def _random_frame(n_facts: int, *, seed: int, model: str = "organism") -> pd.DataFrame:
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


def _manifest(model: str = "organism", **changes: object) -> RunManifest:
    settings = {"retriever": "minilm", "threshold": 0.6, "fallback": "abstain"}
    settings |= changes.pop("settings", {})  # type: ignore[operator]
    told: dict[str, object] = {
        "study": "audit",
        "model": model,
        "data": DataSource(id="databases", revision=None, digest="d" * 64, n_questions=3),
        "prompts": None,
        "params": GenerationParams(max_new_tokens=64, stop=()),
        "runner": {"runner": "lookup", "dtype": "float32"},
        "settings": settings,
        "package_version": "0.0.1",
        "created_at": "2026-01-02T03:04:05+00:00",
    }
    return RunManifest.model_validate(told | changes)


@pytest.fixture
def audit_frame() -> Callable[..., pd.DataFrame]:
    """Build outcomes: `audit_frame([{"first_correct": True, ...}, ...])`."""
    return _frame


@pytest.fixture
def random_audit() -> Callable[..., pd.DataFrame]:
    """Build random outcomes of four databases: `random_audit(n_facts, seed=..., model=...)`."""
    return _random_frame


@pytest.fixture
def audit_manifest() -> Callable[..., RunManifest]:
    """Build a manifest: `audit_manifest(model, settings={...})`."""
    return _manifest


@pytest.fixture
def audit_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a run folder: `audit_run(name, frame, manifest, checks={...})`."""

    def write(
        name: str,
        frame: pd.DataFrame,
        manifest: RunManifest,
        *,
        checks: Mapping[str, pd.DataFrame] | None = None,
    ) -> Path:
        folder = tmp_path / name
        for part in ("checks", "tables"):
            (folder / part).mkdir(parents=True)
        (folder / "manifest.json").write_text(manifest.model_dump_json(), encoding="utf-8")
        frame.to_parquet(folder / "outcomes.parquet")
        tables = {f"checks/{stem}": table for stem, table in (checks or {}).items()}
        for stem, table in audit_tables(frame, n_resamples=100).items():
            tables[f"tables/{stem}"] = table
        for stem, table in tables.items():
            table.to_csv(folder / f"{stem}.csv", index=False)
        return folder

    return write


def _candidate(entry: tuple[str, str, str], score: float, **flags: bool) -> Candidate:
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
def told_run(audit_run, audit_frame, audit_manifest) -> Callable[..., Path]:
    """Write a run folder of one fact in one style with its answers and traces."""

    def write(name: str = "told", *, subject: str = "United States", style: str = "cloze") -> Path:
        gold = (subject, "Capital", "Washington, D.C.")
        decoy = ("Government", "Seat", "Washington, D.C.")
        prompt = AuditPrompt(
            prompt_id=0,
            fact_id=7,
            subject=subject,
            relation="Capital",
            gold_object="Washington, D.C.",
            prompt_text=f"The capital of {subject} is",
            subject_aliases=("USA",),
        )
        target = AuditTarget(
            database="countries/noise",
            domain="countries",
            variant="noise",
            style=style,
            database_file="countries/noise.json",
            prompt_file=f"countries/prompts/noise/prompts_{style}.jsonl",
            prompt=prompt,
            n_deleted=1,
            surviving=(Triplet("USA", "Capital city", "Washington, D.C."),),
            n_shared_surface=0,
            echoes=(),
        )
        query = LookupQuery(entity=subject, relation="Capital")
        matched = _candidate(gold, 0.98, subject=True, relation=True, object=True)
        deleted = matched.model_copy(update={"matches_deleted_fact": True})
        other = _candidate(decoy, 0.71, object=True)
        answered = {
            "FULL": [
                RetrievalTrace(
                    state="FULL",
                    retrieval_enabled=True,
                    lookup_query=query,
                    threshold=0.6,
                    all_candidates=(matched, other),
                    retained_candidates=(matched, other),
                    selected_candidate=matched,
                    selected_value="Washington, D.C.",
                )
            ],
            "DEL-ON": [
                RetrievalTrace(
                    state="DEL-ON",
                    retrieval_enabled=True,
                    lookup_query=query,
                    threshold=0.6,
                    all_candidates=(deleted, other),
                    deleted_candidates=(deleted,),
                    retained_candidates=(other,),
                    selected_candidate=other,
                    selected_value="Washington, D.C.",
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
        frame = audit_frame(
            [
                {
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
            ]
        )
        folder = audit_run(name, frame, audit_manifest())
        prompts, lines = [], []
        for state, traces in answered.items():
            prompts.append(
                Prompt(id=target.prompt_id(state), text=prompt.prompt_text, condition=f"{state}|x")
            )
            text = "unknown" if state == "DEL-OFF" else "Washington, D.C."
            lookups = tuple(
                Lookup(query=t.lookup_query, value=t.selected_value, trace=t) for t in traces
            )
            lines.append(
                Generation(
                    prompt_id=prompts[-1].id,
                    text=text,
                    lookups=lookups,
                    prompt_key=prompts[-1].key,
                )
            )
        for file, records in (
            ("targets.jsonl", [target]),
            ("prompts.jsonl", prompts),
            ("generations.jsonl", lines),
        ):
            text = "".join(json.dumps(r.model_dump(mode="json")) + "\n" for r in records)
            (folder / file).write_text(text, encoding="utf-8")
        return folder

    return write
