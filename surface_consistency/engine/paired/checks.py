"""Checks of a paired study: limitations of its numbers, and provenance of the runs."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final

import numpy as np
import pandas as pd
from pydantic_core import to_jsonable_python

from surface_consistency.analysis.doubts import constant_scores, missing_answers
from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.engine.design import Report
from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.paired.answers import TEXTS as ANSWERS
from surface_consistency.engine.paired.tables import TEXTS, is_hardly_right, scored_pairs
from surface_consistency.engine.settings import study_records
from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import json_objects
from surface_consistency.report.page import Check, Provenance
from surface_consistency.runs.loader import Run
from surface_consistency.tables.sentences import Sentence, count, difference, direction
from surface_consistency.tables.table import Table
from surface_consistency.text import has_unspaced_script

Tables = Mapping[str, Table]
"""The tables of a report by name."""

_FROM_PYTHON: Final = "# from Python, with these settings"
_PARTS_OF_WORDS: Final = ("popqa", "boundary", "token_f1", "fuzzy")
_WHOLE_PHRASES: Final = ("squad_f1",)
_WHOLE_WORDS: Final = ("boundary", "segmented", "token_f1", "squad_f1")
_AFFIXING: Final = re.compile(
    "[\u1100-\u11ff\u3131-\u318e\uac00-\ud7af\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3]"
)
"""Letters of Hangul, Hebrew and Arabic, in which short words are written onto nouns."""
_MANY: Final = 0.02
"""Proportion of answers above which a flaw is reported."""
_CORRECT: Final = ("first_correct", "second_correct")
IMPORTED: Final = ("verdicts", "stored", "stored-scores")
"""Runners of answers that were made elsewhere, which cannot run a prompt twice."""
_SPANS: Final = {
    "first_line": "the first line",
    "first_text_line": "the first line that is not blank",
    "whole": "the whole output",
}
"""Names of the parts of an output that rules read."""
_REPLIES: Final = ("unclosed_reasoning", "content_filter", "refusal", "tie")


def rows_of(
    tables: Tables, name: str, row: Mapping[Any, Any], facet: str | None = None, **cells: object
) -> list[dict[Any, Any]]:
    """Choose the rows of a table that belong to the model and panel of a row.

    Args:
        tables: The tables.
        name: Name of the table.
        row: A row with `model`, and the facet if there is one.
        facet: Column of the panel; None without panels.
        cells: Further values that the rows have, by column.

    Returns:
        The rows; none if there is no such table.
    """
    if name not in tables:
        return []
    frame = tables[name].frame
    wanted = {key: row[key] for key in ("model", facet) if key in frame and key in row} | cells
    rows = frame[(frame[list(wanted)] == list(wanted.values())).all(axis=1)]
    return rows.to_dict("records")


def panel(report: Report, tables: Tables, row: Mapping[Any, Any]) -> str:
    """Name the panel of a row in parentheses.

    Args:
        report: The runs.
        tables: The tables.
        row: The row.

    Returns:
        Such as " (template: original)"; "" if there is a single panel.
    """
    if report.facet is None or tables["overall"].frame[report.facet].nunique() < 2:
        return ""
    name = str(row[report.facet])
    label = report.design.labels.get(report.facet, {}).get(name, name)
    return f" ({report.facet}: {label.replace('_', ' ')})"


def missing_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report pairs without a score, and flaws of the answers of each run."""
    n_all_missing = 0
    for run in report.runs:
        n = len(run.outcomes)
        n_missing = n - len(scored_pairs(run.outcomes))
        n_all_missing += n_missing
        if n_missing:
            yield TEXTS.check("missing", label=run.label, n_missing=n_missing, n=n)
        yield from check_answers(run)
    if not n_all_missing:
        yield TEXTS.check("all_scored")


def reply_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report replies with reasoning, replies without an answer, and answers that were cut off."""
    for run in report.runs:
        label = run.label
        if "replies" in run.checks:
            row = run.checks["replies"].iloc[0]
            counts: dict[str, Any] = {"label": label, "n_replies": int(row["n_replies"])}
            for name in _REPLIES:
                if row[f"n_{name}"]:
                    yield TEXTS.check(name, n=int(row[f"n_{name}"]), **counts)
            if n := int(row["n_with_reasoning"]):
                others = ["n_error", "n_content_filter", "n_refusal", "n_with_reasoning"]
                n_without = int(row["n_replies"] - row[others].sum())
                remedy = (
                    f" {n_without:,} contain none; if their prompts opened the reasoning, they are "
                    "not answers: set `reasoning_opened`."
                )
                warns = n_without > 0
                level = "warning" if warns else "ok"
                counts |= {"n": n, "remedy": remedy if warns else ""}
                yield TEXTS.check("with_reasoning", level=level, **counts)
        if "cut_answers" in run.checks:
            row = run.checks["cut_answers"].iloc[0]
            n_cut, n_answers = int(row["n_cut"]), int(row["n_answers"])
            yield TEXTS.check("cut_answers", label=label, n_cut=n_cut, n_answers=n_answers)


def published_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report deviations from the paper in runs that were run as published."""
    for run in report.runs:
        settings = run.manifest.settings
        if not settings.get("as_published"):
            continue
        records = study_records(run.manifest.study)
        wanted = to_jsonable_python(records.published(settings, "scoring", records.scoring))
        scored = {} if run.scoring is None else run.scoring.settings
        if any(scored.get(name) != value for name, value in wanted.items()):
            yield TEXTS.check("judged_otherwise", label=run.label, judged_by=scorer_of(run))
        loading = ModelSettings(**records.published(settings, "model", ModelSettings)).options
        for name, value in loading.items():
            if (made := run.manifest.runner.get(name)) != value:
                counts = {"name": name, "value": value, "made": made or "not set"}
                yield TEXTS.check("loaded_otherwise", label=run.label, **counts)


def judge_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report runs that were scored by different rules, so that they are not comparable."""
    scorers = {run.label: scorer_of(run) for run in report.runs}
    if len(set(scorers.values())) > 1:
        listed = "; ".join(f"{label} by {rule}" for label, rule in scorers.items())
        yield TEXTS.check("judges", judged=listed)


def noise_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Compare the flip rate of each model and panel with the noise floor."""
    given = {run.label for run in report.runs if run.manifest.runner.get("runner") in IMPORTED}
    for row in _labelled(report, tables):
        rows = rows_of(tables, "above_noise", row, report.facet)
        nearest = max(rows, key=_nearness, default=None)
        label = row["label"]
        if nearest is None:
            remedy = (
                "" if row["model"] in given else "; the setting `repeat` runs some prompts twice"
            )
            yield TEXTS.check("no_noise_floor", label=label, remedy=remedy)
            continue
        p_value, confidence = nearest["p_value_holm"], report.settings.confidence
        sign = direction(nearest, "difference", p_value, confidence=confidence)
        names = {None: "noise_unknown", 1: "above_noise"}
        sentence = difference(
            nearest | {"n": nearest["n_a"]},
            "difference",
            "flip rate",
            "identical prompts",
            "the two conditions",
            "between {}",
            p="p_value_holm",
            correction="Holm",
            **report.words,
        )
        name = names.get(sign, "not_above_noise")
        yield TEXTS.check(name, label=label, sentence=sentence)


def size_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report few clusters and a low accuracy, which limit the conclusions."""
    for row in _labelled(report, tables):
        # Tables of a study in another package may lack the effective number.
        n_effective = row.get("n_effective_clusters", row["n_clusters"])
        if n_effective < FEW_CLUSTERS:
            yield TEXTS.check(
                "few_clusters",
                label=row["label"],
                n_clusters=int(row["n_clusters"]),
                n_effective=f"{n_effective:.3g}",
                clusters=report.clusters,
                few=FEW_CLUSTERS,
            )
        if is_hardly_right(row):
            yield TEXTS.check("hardly_correct", label=row["label"])


def _nearness(row: Mapping[Any, Any]) -> tuple[bool, float, float]:
    """Sort comparisons with the noise by p-value; those without inference come last."""
    return np.isnan(row["p_value_holm"]), row["p_value_holm"], -row["difference"]


CheckFunction = Callable[[Report, Tables], Iterator[Check]]
"""Yields the checks of a report."""

PAIRED_CHECKS: Final[tuple[CheckFunction, ...]] = (
    missing_checks,
    reply_checks,
    published_checks,
    judge_checks,
    noise_checks,
    size_checks,
)
"""The checks of any paired study."""


def _labelled(report: Report, tables: Tables) -> Iterator[dict[Any, Any]]:
    """Yield the rows of "overall" with at least one pair, and the name of model and panel."""
    for row in tables["overall"].frame.to_dict("records"):
        if row["n"]:
            yield row | {"label": f"{row['model']}{panel(report, tables, row)}"}


def scorer_of(run: Run) -> str:
    """Name the matching rule of a run and the part of the answer that it reads, or the judge.

    Args:
        run: The run.

    Returns:
        Such as "matching rule popqa on the first line".
    """
    rule, _, span = run.judged_by.partition(" on ")
    if span not in _SPANS and not rule.startswith("matcher:"):
        return run.judged_by
    text = f"matching rule {rule.removeprefix('matcher:')}"
    return f"{text} on {_SPANS[span]}" if span in _SPANS else text


def check_answers(run: Run) -> list[Check]:
    """Check the answers of a run for flaws that do not depend on the correctness labels.

    Args:
        run: The run; its outcomes contain the scored answers.

    Returns:
        Warnings: scored parts that are empty; scripts without spaces under a rule that treats parts
        of words as words, or phrases as words; scripts that attach particles and prepositions to
        nouns under a rule that requires the noun alone; and plain text given to a model that has a
        chat template.
    """
    texts = Counter(_of_targets(run, ANSWERS).dropna().to_numpy(dtype=object).tolist())
    n_texts, most = texts.total(), _MANY * texts.total()
    rule = run.judged_by.split(" on ")[0].removeprefix("matcher:")
    facts: dict[str, Any] = {
        "label": run.label, "judged_by": scorer_of(run), "n_texts": n_texts
    }  # fmt: skip
    checks = []
    if (n_empty := _count(texts, lambda text: not text.strip())) > most:
        remedy = (
            " If the outputs begin with a newline, score the first line that is not blank, or the "
            "whole output: `surface-consistency score RUN --setting region=first_text_line`, or "
            "`region=whole`."
        )
        remedy = remedy if run.judged_by.endswith(" on first_line") else ""
        checks.append(TEXTS.check("empty", n_empty=n_empty, remedy=remedy, **facts))
    if (
        rule in (*_WHOLE_PHRASES, *_PARTS_OF_WORDS)
        and (n := _count(texts, has_unspaced_script)) > most
    ):
        how = (
            "treats a whole phrase as one word: 東京都です is incorrect for 東京都."
            if rule in _WHOLE_PHRASES
            else "accepts a part of a word: 京都 for 東京都."
        )
        remedy = _by_words(run, rule)
        checks.append(TEXTS.check("unspaced", n_unspaced=n, how=how, remedy=remedy, **facts))
    if rule in _WHOLE_WORDS and (n := _count(texts, _AFFIXING.search)) > most:
        checks.append(TEXTS.check("affixing", n_affixing=n, **facts))
    if texts and _has_chat_text(run) and _has_plain_prompts(run):
        checks.append(TEXTS.check("plain", label=run.label))
    return checks


def _of_targets(run: Run, names: Sequence[str]) -> "pd.Series[Any]":
    """Return the answers or labels of a run; that of a prompt in several pairs only once."""
    outcomes, parts = run.outcomes, [pd.DataFrame({"owner": [], "value": []}, dtype=object)]
    pairs = pd.DataFrame()
    with suppress(DataError):
        pairs = run.folder.read_plan()[1].set_index("pair")
    for name in {*names} & {*outcomes}:
        owner, target = outcomes["pair"] + f"/{name}", f"{name.partition('_')[0]}_target"
        if target in pairs:
            owner = outcomes["pair"].map(pairs[target]).fillna(owner)
        parts.append(pd.DataFrame({"owner": owner, "value": outcomes[name]}))
    return pd.concat(parts[1:] or parts, ignore_index=True).drop_duplicates("owner")["value"]


def _by_words(run: Run, rule: str) -> str:
    """Report how many correctness labels change if words are segmented, or how to compute it."""
    command = "`surface-consistency score RUN --rule segmented` (extra `lexical`)"
    table = run.checks.get("rules")
    if table is not None:
        table = table[(table["first_rule"] == rule) & (table["second_rule"] == "segmented")]
    if table is None or table.empty:
        return f"Score by words, {command}, and compare how many labels change."
    row = table.iloc[0]
    return (
        f"By words {row['n_differ']:,.0f} of {row['n']:,.0f} labels change: "
        f"{row['first_only']:,.0f} correct ones become incorrect, {row['second_only']:,.0f} "
        f"incorrect ones correct; {command} scores by words."
    )


def _count(texts: Counter[str], is_one: Callable[[str], object]) -> int:
    """Count the texts with a property."""
    return sum(n for text, n in texts.items() if is_one(text))


def _has_chat_text(run: Run) -> bool:
    """Return whether a model with a chat template wrote the scored text, rather than chose it."""
    reads = run.manifest.settings.get("read", "generate")
    return bool(run.manifest.runner.get("chat_template")) and reads == "generate"


def _has_plain_prompts(run: Run) -> bool:
    """Return whether the first prompt of a run is a text to continue."""
    try:
        return next(json_objects(run.folder.prompts))[1].get("text") is not None
    except (OSError, RecordError, StopIteration):
        return False


def provenance(report: Report) -> list[Provenance]:
    """Describe how each run was made.

    Args:
        report: The runs.

    Returns:
        Settings, command and signature of each run.
    """
    return [_provenance(report, run) for run in report.runs]


def _provenance(report: Report, run: Run) -> Provenance:
    """Describe how one run was made."""
    manifest = run.manifest
    scoring = {} if run.scoring is None else run.scoring.settings
    reported = report.settings.model_dump(mode="json", exclude={"page"})
    reported["cluster"] = report.cluster
    # The seed of the report is shown in addition to that of the run.
    renamed = {"report_seed" if name == "seed" else name: value for name, value in reported.items()}
    settings = {**manifest.source, **manifest.settings, **scoring, **renamed}
    shown: dict[str, object] = {
        "model": manifest.model,
        "data": manifest.data.id,
        "questions": f"{manifest.data.n_questions:,}",
        **{name.replace("_", " "): value for name, value in settings.items()},
        "revision": manifest.data.revision or f"digest {manifest.data.digest[:12]}",
        **{f"runner {name}": value for name, value in manifest.runner.items()},
        "scored by": scorer_of(run),
        "started": manifest.created_at,
        "version": manifest.package_version,
    }
    scored = None if run.scoring is None else run.scoring.command
    commands = dict.fromkeys([manifest.command, scored])
    return Provenance(
        label=run.label,
        settings={name: _setting(value) for name, value in shown.items()},
        command="\n".join(line or _FROM_PYTHON for line in commands),
        signature=run.signature,
    )


def warning_of(runs: Sequence[Run]) -> str:
    """Return the warning for runs of toy models or bundled samples.

    Args:
        runs: The runs.

    Returns:
        A sentence, or "".
    """
    named = [{run.manifest.model, _last(run.manifest.runner)} for run in runs]
    if all("toy_model" in names for names in named):
        return " ".join(TEXTS.paragraphs("toy_model"))
    if any(run.manifest.data.is_sample for run in runs):
        return " ".join(TEXTS.paragraphs("sample"))
    return ""


def doubts_of(runs: Sequence[Run]) -> list[Sentence]:
    """Report reasons to doubt the scores of runs, for the finding.

    Args:
        runs: The runs.

    Returns:
        Sentences on models with no or only correct answers, and on missing answers.
    """
    models, doubts = [], list[Sentence]()
    for run in runs:
        scores = _of_targets(run, _CORRECT).dropna()
        models.append((run.label, float(scores.mean()) if len(scores) else np.nan, len(scores)))
        if len(texts := _of_targets(run, ANSWERS)):
            errors = texts.isna().map({True: "no answer", False: None})
            frame = pd.DataFrame({"model": run.label, "prediction": texts, "error": errors})
            n_blank = int(texts.fillna("").astype(str).str.strip().eq("").sum())
            record = count(n_blank, len(texts), f"answers of {run.label} without text")
            doubts += [[record, doubt] for _, doubt in missing_answers(frame)]
    record = count(max(n for *_, n in models), None, "scores of a model, all 0 or all 1")
    constant: list[Sentence] = [[record, one] for one in constant_scores(models, "answers")]
    return [*constant, *doubts]


def key_facts(report: Report) -> list[tuple[str, str]]:
    """Gather the facts under the finding.

    Args:
        report: The runs.

    Returns:
        Names and values.
    """
    first = report.runs[0]
    n_pairs = max(len(run.outcomes) for run in report.runs)
    n_clusters = max(run.outcomes[report.cluster].nunique() for run in report.runs)
    is_published = any(run.manifest.settings.get("as_published") for run in report.runs)
    return [
        ("data", first.manifest.data.id),
        ("pairs", f"{n_pairs:,} on {n_clusters:,} {report.clusters}"),
        *([("protocol", "as published")] if is_published else []),
        ("scored by", " / ".join(dict.fromkeys(map(scorer_of, report.runs)))),
        ("run", first.manifest.created_at[:10]),
        ("version", first.manifest.package_version),
    ]


def _last(runner: Mapping[str, Any]) -> str:
    """Name the folder of a runner's model, as `train_toy_model` chose it."""
    return PurePath(str(runner.get("model", ""))).name


def _setting(value: object) -> str:
    """Format a setting for display."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_setting(item)}" for name, item in value.items()) or "none"
    if value is None:
        return "none"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
