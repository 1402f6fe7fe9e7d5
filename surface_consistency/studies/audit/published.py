"""Write results in the format of the published audit, and recompute the published numbers.

Three of the thirteen published databases (arXiv 2607.00605) were answered from the index of another
one, because the index was cached under a file name and a number of entries. The guards detect them
by their FULL state, which is near zero or equals DEL-ON in every prompt style.
"""

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.study import Scored
from surface_consistency.errors import DataError, DataWarning, SourceNotFoundError
from surface_consistency.metrics.forgetting.audit_checks import (
    contamination_by,
    decomposition_residual,
    recover_table,
)
from surface_consistency.metrics.forgetting.forgetting_groups import (
    DELETION_RATES,
    FULL_RATES,
    TRACE_RATES,
)
from surface_consistency.metrics.paired.mcnemar_tests import run_test
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS
from surface_consistency.reading import first_names
from surface_consistency.runs.files import write_csv, write_text
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas.memory import AuditPrompt, Lookup, RetrievalTrace
from surface_consistency.studies.audit.base_facts import base_facts
from surface_consistency.studies.audit.conditions import condition_label
from surface_consistency.studies.audit.files import ALIASES, AuditResult, read_audit_results
from surface_consistency.studies.audit.matching.judgement import judge_answer
from surface_consistency.studies.audit.plan import target_rows, to_audit_prompt
from surface_consistency.studies.audit.settings import STATES

_MEANS: Final = {
    "exact_match": "correct",
    "contains_match": "contains",
    "unknown_rate": "is_unknown",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
}
_RATES: Final = ("parametric_leakage", "retrieval_mediated_correctness", "retrieval_artifact_rate")
CROSS_STATE_COLUMNS: Final = (
    "prompt_file",
    "database_path",
    "count",
    *_MEANS,
    "paired_count",
    *_RATES,
)
"""Columns of `cross_state_metrics.csv`."""

PER_STATE_COLUMNS: Final = (*CROSS_STATE_COLUMNS[:2], "state", *CROSS_STATE_COLUMNS[2:])
"""Columns of `per_state_metrics.csv`; the paired ones are 0 there."""

_CELLS: Final = {"a": "both", "b": "first_only", "c": "second_only", "d": "neither"}
_COUNTS: Final = ("n", *_CELLS, "full_correct", "del_on_correct", "del_off_correct", "artifacts")
_HEADLINE_RATES: Final = (
    "full_accuracy",
    "leakage",
    "retrieval_mediated",
    "interference",
    "del_on_accuracy",
    "artifact_rate",
)
_OF_PROMPT: Final = ("fact_id", "base_fact", "subject", "relation", *ALIASES[:2])
_SLICES: Final[Mapping[str, tuple[str, ...]]] = {
    "all": (),
    "topology": ("topology",),
    "domain": ("domain",),
    "style": ("style",),
}


def export_published(scored: Scored) -> None:
    """Write the answers and means of a scored run in the format of the published audit.

    The folder gets three kinds of files. `results/<database>/<style>.jsonl` contains the answers:
    `model_output` is the cleaned answer that was scored, as in the published rows, and `raw_output`
    is the output of the model. Each has the trace of its first lookup, whose value the published
    code uses as the answer. `per_state_metrics.csv` contains means by condition and state, and
    `cross_state_metrics.csv` means by condition with leakage, mediated correctness and artifacts.
    The artifact rate is missing if a trace is missing, and the paired rates without pairs.
    `exact_match` and the rates computed from it use the correctness labels of the run; containment,
    unknown answers and token overlap use the rules.

    Args:
        scored: The run.
    """
    verdicts = scored.verdicts[list(_MEANS.values())].astype(float)
    answers = scored.verdicts["prediction"].to_numpy()
    rows = scored.items.assign(**verdicts, answer=answers)
    judged = rows[scored.verdicts["correct"].notna()]
    pairs = scored.outcomes.groupby(["database", "style"], sort=False)
    per_state: list[dict[str, Any]] = []
    cross_state: list[dict[str, Any]] = []
    for key, part in judged.groupby(["database", "style"], sort=False):
        _write_results(scored.folder, part)
        first = part.iloc[0]
        head = {"prompt_file": first["prompt_file"], "database_path": first["database_file"]}
        per_state += _state_means(part, head)
        cross_state.append(head | _means(part) | _paired_rates(pairs.get_group(key)))
    for table, columns, name in (
        (per_state, PER_STATE_COLUMNS, "per_state_metrics"),
        (cross_state, CROSS_STATE_COLUMNS, "cross_state_metrics"),
    ):
        write_csv(scored.folder.path / f"{name}.csv", pd.DataFrame(table, columns=list(columns)))


def _write_results(folder: RunFolder, answers: pd.DataFrame) -> None:
    """Write the answers of a condition."""
    first = answers.iloc[0]
    path = folder.path / "results" / first["database"] / f"{first['style']}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = target_rows(answers, "state", "text", "lookups", "answer")
    write_text(path, "".join(map(_result_line, rows)))


def _result_line(row: Mapping[Any, Any]) -> str:
    """Format an answer as a row of the published results."""
    prompt, state, lookups = to_audit_prompt(row), row["state"], row["lookups"] or ()
    trace = next((lookup.trace for lookup in lookups if lookup.trace is not None), None)
    trace = trace or RetrievalTrace(
        state=state,
        retrieval_enabled=state != "DEL-OFF",
        lookup_query=next((lookup.query for lookup in lookups), None),
        threshold=None,
    )
    result = {
        **{name: getattr(prompt, name) for name in _OF_PROMPT},
        "state": state,
        "prompt": prompt.prompt_text,
        "ground_truth": prompt.gold_object,
        "object_aliases": prompt.object_aliases,
        "model_output": row["answer"],
        "retrieval_trace": trace.model_dump(mode="json", exclude={"is_fallback"}),
        "raw_output": row["text"],
    }
    return json.dumps(result, ensure_ascii=False) + "\n"


def _means(answers: pd.DataFrame) -> dict[str, Any]:
    """Average the columns of scores."""
    means = {name: float(answers[field].mean()) for name, field in _MEANS.items()}
    return {"count": len(answers)} | means


def _paired_rates(outcomes: pd.DataFrame) -> dict[str, Any]:
    """Compare DEL-ON with DEL-OFF on the facts of a condition that have both."""
    paired = outcomes[outcomes["first_correct"].notna() & outcomes["second_correct"].notna()]
    if paired.empty:
        return {"paired_count": 0}
    right, leaked = (paired[f"{name}_correct"].astype(bool) for name in ("first", "second"))
    rates = {
        "paired_count": len(paired),
        "parametric_leakage": leaked.mean(),
        "retrieval_mediated_correctness": (right & ~leaked).mean(),
    }
    if paired["gold_retrieved"].notna().all():
        rate = (right & ~paired["gold_retrieved"].astype(bool)).mean()
        rates["retrieval_artifact_rate"] = rate
    return rates


def score_published_results(
    files: Mapping[str, str | os.PathLike[str]], *, equivalence: str = "published"
) -> dict[str, pd.DataFrame]:
    """Score answers of the published audit, or answers that this package wrote in its format.

    Args:
        files: Result files by the label of their condition, such as "countries/alias/cloze";
            database and style of the outcomes are the parts before and after the last slash.
        equivalence: Name of an equivalence, one of `studies.audit.matching.EQUIVALENCES`. The
            answers are already cleaned and are scored unchanged.

    Returns:
        "per_state" and "cross_state": the tables of the published audit, the label as their
        `prompt_file`. "outcomes": one row per fact and condition that was run in DEL-ON or
        DEL-OFF, with database, style, item, base_fact (the cluster; see `base_facts`), pair,
        subject, relation, gold_object, prompt, full_correct, first_correct (DEL-ON), second_correct
        (DEL-OFF; each None if it was not run) and gold_retrieved (None without a trace), as
        `metrics.forgetting_by`, `paired_by` and `compare` accept them.

    Raises:
        SourceNotFoundError: If a file is missing.
        DataError: If a line is not a result row, or a prompt has two answers in one state.
        ValueError: If the equivalence is unknown.

    Warns:
        DataWarning: If facts of several databases are not linked to their base facts.
    """
    per_state: list[dict[str, Any]] = []
    cross_state: list[dict[str, Any]] = []
    outcomes: list[pd.DataFrame] = []
    facts: dict[str, tuple[str, AuditPrompt]] = {}
    for label, file in files.items():
        database, _, style = label.rpartition("/")
        results = [(one, _prompt_of(one, database)) for one in read_audit_results(file)]
        rows = pd.DataFrame([_scored_result(*one, equivalence) for one in results])
        topology = database.rpartition("/")[2]
        facts |= {f"{database or label}/{fact.fact_id}": (topology, fact) for _, fact in results}
        keys = ["fact_id", "prompt"]
        repeated = rows[rows[[*keys, "state"]].duplicated()]
        if len(repeated):
            twice = repeated.iloc[0]
            raise DataError(
                f"{file}: fact {twice['fact_id']} occurs twice in {twice['state']}; score the "
                "results of one run"
            )
        pairs = _paired_results(rows, keys).assign(database=database or label, style=style or label)
        pairs = pairs.rename(columns={"fact_id": "item"})
        pairs["pair"] = [f"{label}/{fact}/{place}" for place, fact in enumerate(pairs["item"])]
        pairs["item"] = [f"{database or label}/{fact}" for fact in pairs["item"]]
        outcomes.append(pairs)
        head = {"prompt_file": label, "database_path": database or label}
        per_state += _state_means(rows, head)
        cross_state.append(head | _means(rows) | _paired_rates(pairs))
    linked = dict(zip(facts, base_facts([*facts.values()]), strict=True))
    without = sum(not fact.is_linked for fact in linked.values())
    if without and len({item.rpartition("/")[0] for item in facts}) > 1:
        text = f"{without:,} of {len(facts):,} facts of the databases are without a known base fact"
        warnings.warn(f"{text}; each is a separate cluster", DataWarning, stacklevel=2)
    for pairs in outcomes:
        pairs["base_fact"] = [linked[item].name for item in pairs["item"]]
    return {
        "per_state": pd.DataFrame(per_state, columns=list(PER_STATE_COLUMNS)),
        "cross_state": pd.DataFrame(cross_state, columns=list(CROSS_STATE_COLUMNS)),
        "outcomes": pd.concat(outcomes, ignore_index=True) if outcomes else pd.DataFrame(),
    }


def _prompt_of(result: AuditResult, database: str) -> AuditPrompt:
    """Return the fact of a published answer; a missing relation is named by the fact's number."""
    return AuditPrompt(
        prompt_id=0,
        gold_object=result.ground_truth,
        prompt_text=result.prompt or "?",
        relation=result.relation or f"{database}/{result.fact_id}",
        **{name: getattr(result, name) for name in ("fact_id", "base_fact", "subject", *ALIASES)},
    )


def _scored_result(result: AuditResult, prompt: AuditPrompt, equivalence: str) -> dict[str, Any]:
    """Score one published answer unchanged."""
    scored = judge_answer(result.model_output, prompt, cleaner=_unchanged, equivalence=equivalence)
    trace = result.retrieval_trace
    return {
        "fact_id": result.fact_id,
        "subject": result.subject,
        "relation": result.relation,
        "gold_object": result.ground_truth,
        "prompt": result.prompt,
        "state": result.state,
        **{field: float(getattr(scored, field)) for field in _MEANS.values()},
        "gold_retrieved": None
        if trace is None
        else any(candidate.supports_target_fact for candidate in trace.retained_candidates),
    }


def _unchanged(text: str, prompt: AuditPrompt, lookups: Sequence[Lookup]) -> str:
    """Return the text unchanged."""
    return text


def _paired_results(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Pivot the states of each fact into columns."""
    names = {"FULL": "full_correct", "DEL-ON": "first_correct", "DEL-OFF": "second_correct"}
    described = [*keys, "subject", "relation", "gold_object"]
    prompts = rows[rows["state"] != "FULL"].drop_duplicates(keys)[described]
    for state, name in names.items():
        part = rows[rows["state"] == state]
        columns = part[keys].assign(**{name: part["correct"].astype(bool)})
        if state == "DEL-ON":
            columns["gold_retrieved"] = part["gold_retrieved"]
        prompts = prompts.merge(columns, on=keys, how="left")
        prompts[name] = prompts[name].astype("boolean")
    return prompts.astype({"gold_retrieved": "boolean"}).reset_index(drop=True)


def _state_means(rows: pd.DataFrame, head: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Average the answers of each state; the paired columns are 0, as published."""
    unpaired = {"paired_count": 0, **dict.fromkeys(_RATES, 0.0)}
    return [
        {**head, "state": state, **_means(answers), **unpaired}
        for state in STATES
        if len(answers := rows[rows["state"] == state])
    ]


def published_tables(
    per_state_csv: str | os.PathLike[str],
    cross_state_csv: str | os.PathLike[str],
    *,
    near_zero: float = 0.05,
) -> dict[str, pd.DataFrame]:
    """Recompute the numbers of an audit from its two tables of means.

    Args:
        per_state_csv: `per_state_metrics.csv`.
        cross_state_csv: `cross_state_metrics.csv` of the same audit.
        near_zero: Maximum FULL accuracy that counts as near zero.

    Returns:
        "cells": the paired counts of each prompt file (n, a, b, c, d, full_correct, del_on_correct,
        del_off_correct, artifacts) and whether its database is contaminated. "contamination": one
        row per database, as of `metrics.contamination_by`. "headline": rows by `slice` ("all",
        "topology", "domain", "style"), `label` and `subset` ("published" for all databases, "clean"
        without the contaminated ones): the counts, n_databases, full_accuracy, leakage,
        retrieval_mediated, interference, del_on_accuracy, artifact_rate, leakage_plus_mediated,
        identity_residual, McNemar's test (`mcnemar_statistic`, `mcnemar_p_value` and
        `mcnemar_method`). "states": exact match and token F1, weighted by facts, by
        slice, label, subset and state.

    Raises:
        SourceNotFoundError: If a file is missing.
        DataError: If a column is missing, the files are not of the same cells, or the rates of a
            cell cannot come from whole counts.
    """
    per_state = _read(per_state_csv, PER_STATE_COLUMNS)
    cross_state = _read(cross_state_csv, CROSS_STATE_COLUMNS)
    cells = pd.DataFrame(_cell_rows(per_state, cross_state))
    contamination = contamination_by(
        cells, by=["database", "domain", "topology"], near_zero=near_zero
    )
    flagged = set(contamination.loc[contamination["is_contaminated"], "database"])
    cells["is_contaminated"] = cells["database"].isin(flagged)
    labels = cells[["prompt_file", "database", "domain", "topology", "style", "is_contaminated"]]
    states = per_state.merge(labels, on="prompt_file", validate="many_to_one")
    headline, by_state = [], []
    for name, columns in _SLICES.items():
        for subset, of_subset in (
            ("published", cells),
            ("clean", cells[~cells["is_contaminated"]]),
        ):
            names: Any = list(columns) or (lambda _: "all")
            parts = of_subset.groupby(names, sort=False)
            for key, part in parts:
                label = str(key[0] if isinstance(key, tuple) else key)
                place = {"slice": name, "label": label, "subset": subset}
                headline.append(place | _headline(part))
                chosen = states[states["prompt_file"].isin(part["prompt_file"])]
                by_state += [place | row for row in _state_rows(chosen)]
    return {
        "cells": cells,
        "contamination": contamination,
        "headline": pd.DataFrame(headline),
        "states": pd.DataFrame(by_state),
    }


def _read(path: str | os.PathLike[str], columns: Sequence[str]) -> pd.DataFrame:
    """Read a table that must have some columns."""
    file = Path(path)
    if not file.is_file():
        raise SourceNotFoundError(f"table {file} not found; check the path")
    table = pd.read_csv(file, keep_default_na=False, na_values=[""])
    if missing := [column for column in columns if column not in table]:
        raise DataError(
            f"{file} has no column {', '.join(missing)}; columns: {first_names(list(table))}"
        )
    return table


def _cell_rows(per_state: pd.DataFrame, cross_state: pd.DataFrame) -> list[dict[str, Any]]:
    """Recover the counts of every cell."""
    keys = list(zip(per_state["prompt_file"], per_state["state"], strict=True))
    exact = dict(zip(keys, per_state["exact_match"], strict=True))
    if len(exact) < len(keys) or not cross_state["prompt_file"].is_unique:
        raise DataError("a cell occurs twice in the tables; pass the tables of one audit")
    rows = []
    for cell in cross_state.to_dict(orient="records"):
        file, n = str(cell["prompt_file"]), int(cell["paired_count"])
        label = condition_label(file)
        accuracy = {}
        for state in STATES:
            if (file, state) not in exact:
                raise DataError(f"{file} has no state {state}; the tables are of different audits")
            accuracy[state] = float(exact[file, state])
        try:
            table = recover_table(
                n=n,
                del_on=accuracy["DEL-ON"],
                leakage=cell["parametric_leakage"],
                retrieval_mediated=cell["retrieval_mediated_correctness"],
            )
        except ValueError as error:
            raise DataError(f"{file}: {error}") from error
        rows.append(
            {
                "prompt_file": file,
                "database": label.database,
                **asdict(label),
                "n": n,
                **dict(zip(_CELLS, table.counts, strict=True)),
                "full_correct": round(accuracy["FULL"] * n),
                "del_on_correct": round(accuracy["DEL-ON"] * n),
                "del_off_correct": round(accuracy["DEL-OFF"] * n),
                "artifacts": round(cell["retrieval_artifact_rate"] * n),
            }
        )
    return rows


def _headline(cells: pd.DataFrame) -> dict[str, Any]:
    """Sum the cells, and compute the rates and the test."""
    sums = {name: int(cells[name].sum()) for name in _COUNTS}
    counts = [*(sums[name] for name in _CELLS), sums["artifacts"], sums["full_correct"], *[0] * 4]
    known = {**DELETION_RATES, **TRACE_RATES, **FULL_RATES}
    rates = {name: float(known[name](counts)) for name in _HEADLINE_RATES}
    test = run_test(np.array([counts[:4]]), "independent", DEFAULT_INTERVALS)
    parts = {name: rates[name] for name in ("leakage", "retrieval_mediated", "interference")}
    return {
        "n_databases": cells["database"].nunique(),
        **sums,
        **rates,
        "leakage_plus_mediated": rates["leakage"] + rates["retrieval_mediated"],
        "identity_residual": decomposition_residual(del_on=rates["del_on_accuracy"], **parts),
        "mcnemar_statistic": test["statistic"],
        "mcnemar_p_value": test["p_value"],
        "mcnemar_method": test["test"],
    }


def _state_rows(cells: pd.DataFrame) -> list[dict[Any, Any]]:
    """Average exact match and F1 of cells by state, weighted by their facts."""
    means = ["exact_match", "f1"]
    weighted = cells[means].mul(cells["count"], axis=0).assign(n=cells["count"])
    sums = weighted.groupby(cells["state"]).sum().reindex(STATES).query("n > 0")
    sums[means] = sums[means].div(sums["n"], axis=0)
    return sums.astype({"n": int}).reset_index()[["state", "n", *means]].to_dict("records")
