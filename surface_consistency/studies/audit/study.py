"""The audit of forgetting as a study: which answers survive a deletion, and from which source.

The framework is that of arXiv 2607.00605: every fact is queried with the full database (FULL),
with the fact deleted (DEL-ON), and with the fact deleted and retrieval off (DEL-OFF).
"""

import os
from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd

from surface_consistency.engine.design import Design, bibtex
from surface_consistency.engine.paired.page import fact_trace
from surface_consistency.engine.plan import Plan
from surface_consistency.engine.study import Scored, Study
from surface_consistency.errors import RunnerError
from surface_consistency.models.runner import Runner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.loader import load_runs
from surface_consistency.schemas.outcomes import PairedOutcome
from surface_consistency.studies.audit.conditions import AuditData, find_conditions
from surface_consistency.studies.audit.judge import AuditJudge, AuditVerdict
from surface_consistency.studies.audit.lookup.runner import LookupRunner
from surface_consistency.studies.audit.lookup.settings import LookupSettings
from surface_consistency.studies.audit.page import AUDIT_PAGE
from surface_consistency.studies.audit.plan import plan_audit
from surface_consistency.studies.audit.published import export_published
from surface_consistency.studies.audit.records import AuditOutcome
from surface_consistency.studies.audit.settings import (
    RECORDS,
    AuditScoring,
    AuditSettings,
    AuditSource,
)
from surface_consistency.studies.audit.stores import (
    AuditFactStore,
    MakeRetriever,
    built_once,
    retrievers_by_name,
)
from surface_consistency.studies.audit.tables import AUDIT_GROUPINGS, baseline_checks, lookup_table
from surface_consistency.studies.audit.trace import load_traces

_SAMPLE = Path(__file__).with_name("sample")
_SAMPLE_TOPOLOGIES = ("noise",)


class LookupModel(Runner):
    """A limited-memory model, loaded at its first use and shared by all stores.

    Args:
        model: Folder of the model, or hub id.
        options: Keyword arguments of `LookupRunner`, and fields of `LookupSettings`.

    Raises:
        RunnerError: If an option is unknown.
        ValueError: If no model is named, or the value of an option is invalid.
    """

    name: str = "lookup"
    """The runner's name."""

    def __init__(self, model: str | os.PathLike[str] | None = None, **options: object) -> None:
        if model is None:
            raise ValueError(
                "`runner=lookup` needs `model`, the folder or hub id of a limited-memory model; in "
                "the study audit, `model=toy_model` trains a small one, and with any other "
                "`runner` the facts found are put into the prompts"
            )
        known = {field.name for field in fields(LookupSettings)}
        self._model = model
        decoding = {name: value for name, value in options.items() if name in known}
        self._others = {name: value for name, value in options.items() if name not in known}
        self._loaded: LookupRunner | None = None
        try:
            self.settings = LookupSettings(**decoding)  # type: ignore[arg-type]
            """The decoding, as of `LookupRunner.settings`."""
            signature(LookupRunner).bind(model, store=None, **self._others)
        except TypeError as error:
            raise RunnerError(f"the lookup runner cannot be made: {error}") from error
        LookupRunner.check_options(**self._others)  # type: ignore[arg-type]

    def fingerprint(self) -> NoReturn:
        """Raise an error, since the answers depend on the store."""
        raise RunnerError(
            f"the model {self._model} looks facts up in the store of an audit; use the study "
            "audit, or another `runner`"
        )

    def with_store(self, source: AuditFactStore) -> LookupRunner:
        """Load the model, or share the memory of the loaded one.

        Args:
            source: The store that answers its lookups.

        Returns:
            The runner.

        Raises:
            RunnerError: If the model cannot be loaded.
        """
        if self._loaded is None:
            self._loaded = LookupRunner(
                self._model,
                store=source,
                settings=self.settings,
                **self._others,  # type: ignore[arg-type]
            )
        return self._loaded.with_store(source)


def _run_checks(scored: Scored) -> dict[str, pd.DataFrame]:
    """Count lookups, and compare FULL with DEL-ON: "lookups" and "contamination"."""
    return {
        "lookups": lookup_table(scored.items, scored.verdicts),
        "contamination": baseline_checks(scored.outcomes),
    }


def _trace(folder: str | os.PathLike[str], item: str, *, outcome: type[PairedOutcome]) -> str:
    """Describe the deletion, lookups and answers of a fact in each style."""
    run = load_runs([folder], outcome=outcome)[0]
    pairs = run.outcomes.loc[run.outcomes["item"] == item, "pair"]
    if pairs.empty:
        return fact_trace(folder, item, outcome=outcome)
    return "\n\n".join(trace.to_text() for trace in load_traces(run, pairs.tolist()))


class AuditStudy(Study):
    """Delete facts from a store, and measure which answers survive and from which source.

    Methods are those of `Study`.

    Args:
        find_retrievers: Returns the retriever factory of a name; called with the name and
            `cache_dir`.
    """

    name = "audit"
    design = Design(
        title="Audit of forgetting",
        citation=bibtex("surface_consistency.studies.audit"),
        question="the same fact with the full database, the fact deleted, and retrieval off",
        conditions=("DEL-ON", "DEL-OFF"),
        cells=("correct both times", "retrieval only", "parameters only", "neither"),
        clusters={"base_fact": "facts", "item": "fact-topology pairs"},
        stratum="state",
        kind="state",
        paper_prompts="the prompt files contain the authors' prompts (appendix A.1), in six styles",
        groupings={name: columns for name, columns in AUDIT_GROUPINGS.items() if columns},
    )
    records = replace(RECORDS, verdict=AuditVerdict, outcome=AuditOutcome)
    report = replace(AUDIT_PAGE, run_checks=_run_checks, export=export_published, trace=_trace)

    def __init__(
        self, *, find_retrievers: Callable[..., MakeRetriever] = retrievers_by_name
    ) -> None:
        # Cached for the other thresholds of a sweep; a retriever may contain a large index.
        self._retrievers = lru_cache(maxsize=1)(
            lambda name, cache_dir: built_once(find_retrievers(name, cache_dir=cache_dir))
        )

    def load(self, source: AuditSource) -> AuditData:
        """Read the databases and their prompts."""
        chosen: dict[str, Any] = source.model_dump(exclude={"databases"})
        folder: str | Path = source.databases
        if folder == "sample":
            folder = _SAMPLE
            chosen["topologies"] = source.topologies or _SAMPLE_TOPOLOGIES
        return AuditData(id=source.databases, conditions=find_conditions(folder, **chosen))

    def plan(
        self, data: AuditData, settings: AuditSettings, *, runner: Runner | None = None
    ) -> Plan:
        """Compute the deletions and the prompts; see `plan_audit`.

        Raises:
            ValueError: If there are several retrievers or thresholds, which need several plans.
        """
        if len(settings.retriever) * len(settings.threshold) > 1:
            raise ValueError(
                "several retrievers or thresholds are a sweep of several runs; plan one of "
                "`settings.variants()`, or run them all by `run_sweep`"
            )
        make = self._retrievers(settings.retriever[0], settings.index_cache)
        return plan_audit(data, settings, make)

    def judge(self, scoring: AuditScoring, folder: RunFolder | None) -> AuditJudge:
        """Make the judge, with the number of facts that the model was shown."""
        n_facts = folder and folder.read_manifest().runner.get("n_facts")
        return AuditJudge(
            cleaner=scoring.cleaner,
            equivalence=scoring.equivalence,
            support=scoring.support,
            n_facts=n_facts if isinstance(n_facts, int) else None,
        )
