"""Read results of any number of models, pair them by item, and compare them by metric."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.analysis._columns import directions_of, scored
from surface_consistency.analysis.clusters import ITEMS_ALONE, ClusterChoice, found_cluster
from surface_consistency.analysis.doubts import missing_answers, no_scores
from surface_consistency.analysis.flat import flat_totals
from surface_consistency.analysis.labels import label_list, note_several_labels, split_labels
from surface_consistency.analysis.scoring import ITEM
from surface_consistency.analysis.settings import ComparisonSettings, TableSettings
from surface_consistency.errors import ColumnNotFoundError, DataError, UndefinedMetricWarning
from surface_consistency.metrics.comparison.comparisons import (
    VERDICTS,
    ModelComparisonResult,
    compare_models,
    compare_totals,
)
from surface_consistency.metrics.comparison.totals import ScoreTotals
from surface_consistency.metrics.forms.repeats import repeats_by
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.metrics.uncertainty.means import mean_by
from surface_consistency.reading import first_names, shown
from surface_consistency.results.columns import USUAL, ResultColumns, reject_nested
from surface_consistency.results.epochs import reduced_rows
from surface_consistency.results.failures import kind_of
from surface_consistency.results.frame import Results, read_inputs
from surface_consistency.results.inputs import Input, ResultSource, inputs_of
from surface_consistency.results.logs import EXCLUDED_ENDING
from surface_consistency.results.names import direction
from surface_consistency.results.tables import is_answered
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import sentence_text

if TYPE_CHECKING:
    from surface_consistency.engine.compare.runs import RunResults

_Numbers: TypeAlias = npt.NDArray[np.int64]
"""Integer codes of the rows."""


_MOST_PAIRS: Final = 10
# Maximum number of pairs of models with repeats.
_MOST_FLIPS: Final = 2_000
# Maximum number of metrics times models, tasks and groups, each of which takes milliseconds.
_MOST_RESULTS: Final = 2_000

ITEM_OF_PAIR: Final = "item of the pair"
"""Column of the items of outcomes, whose rows are compared by pair; clusters within groups."""

REPORTED_MISSING: Final = 0.05
"""Proportion of items not common to all models above which the finding reports it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedResults:
    """Result of `compare_results`."""

    metrics: Mapping[str, ModelComparisonResult]
    """Comparison by metric."""

    models: Sequence[str]
    """Names of the models, in the order of the files."""

    read_rows: Callable[[], pd.DataFrame]
    """Function that reads `rows`, which are needed only to list single items."""

    cluster_note: str
    """Description of the clusters, with the reason for the choice."""

    are_items_clusters: bool
    """Whether each item is a separate cluster."""

    noise: pd.DataFrame
    """One row per model and metric with repeats scored 0 or 1: the test-retest flip rate, which is
    the probability that two repeats of an item differ (flip_rate, with bounds); pass^k, the
    probability that k repeats of an item, drawn at random, are all correct (pass_k, with bounds; k
    is the smallest number of repeats); n (items), n_clusters. See `repeats_by`."""

    flips: pd.DataFrame
    """One row per metric and pair of `differences`, for models with repeats: the flip rate of the
    two models, which is the probability that a repeat of one and a repeat of the other differ on an
    item (flip_rate, with bounds); n (items), n_clusters."""

    has_repeats: bool
    """Whether a model has several scores of an item, on any scale."""

    tools: tuple[str, ...]
    """Tools that wrote the files."""

    is_same_questions: bool
    """Whether the questions are verified to be the same; see `Results`."""

    settings: ComparisonSettings
    """Options of the comparison; `lower_is_better` contains all such metrics."""

    table: TableSettings
    """Groups, test and confidence level."""

    missing: tuple[str, ...]
    """Number of excluded items per metric, as sentences."""

    notes: tuple[str, ...]
    """Further notes, as sentences."""

    doubts: tuple[str, ...] = ()
    """Warnings about answers or scores, which the finding reports, as sentences."""
    failed_answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Number and kinds of failed answers per model, as sentences by metric."""

    by: Sequence[str] = ()
    """Columns of groups."""

    unit: str = "items"
    """Unit of observation: items, or answers if items have several forms."""

    runs: "RunResults | None" = None
    """The runs, if the results are runs of a study."""

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row per model, item, form and metric.

        The columns are those of `Results.frame` after averaging repeats, and the codes of the item
        (_unit), of item and form (_pair) and of the cluster (_cluster).
        """
        return self.read_rows()

    @cached_property
    def _common(self) -> dict[tuple[str, str], _Numbers]:
        """Positions in `rows` of the scores by metric and model on the items of all models."""
        places = np.flatnonzero(self.rows["score"].notna())
        scored = self.rows[["metric", "model", "_pair"]].iloc[places]
        n_models = scored.groupby(["metric", "_pair"], observed=True)["model"].transform("size")
        is_common = n_models.to_numpy() == len(self.models)
        groups = scored[is_common].groupby(["metric", "model"], observed=True).indices
        common = places[is_common]
        return {(str(key[0]), str(key[1])): common[at] for key, at in groups.items()}

    def failures(self) -> list[str]:
        """List the comparisons for which the condition of `fail_if` is met.

        Returns:
            One sentence per comparison. Tests are one-sided, after Holm's correction, at a
            significance level of (1 - confidence) / 2. For two models and "worse", the complete
            interval is then beyond the margin.
        """
        fail_if, alpha = self.settings.fail_if, 1.0 - self.table.confidence
        if fail_if is None:
            return []
        sentences = []
        for metric, result in self.metrics.items():
            rows = result.differences
            failed, how = rows["p_worse_holm"] < alpha / 2.0, "is worse than"
            if fail_if == "maybe-worse":
                failed, how = ~(rows["p_not_worse_holm"] < alpha / 2.0), "may be worse than"
            sentences += [
                f"`fail_if` {fail_if} is met: {row['model']} {how} {row['reference']} by {metric}"
                for row in rows[failed].to_dict("records")
            ]
        return sentences

    def changed(self, metric: str) -> Iterator[pd.DataFrame]:
        """List the items of all models on which a model and its reference score differently.

        Args:
            metric: The metric.

        Yields:
            One frame per pair of `differences` if there are at most ten pairs or a baseline. Its
            rows begin with losses; its columns are change ("lost" or "gained"), model, reference,
            task, item, form, question, references, reference_score, model_score,
            reference_answer and model_answer.
        """
        pairs = self.metrics[metric].differences
        if len(pairs) > _MOST_PAIRS and self.settings.baseline is None:
            return
        for row in pairs.to_dict("records"):
            both = self.paired(metric, row["model"], row["reference"])
            yield _changed(both, is_lower_better=metric in self.settings.lower_is_better)

    def paired(self, metric: str, model: str, reference: str) -> pd.DataFrame:
        """Join the scores of two models by item.

        Args:
            metric: The metric.
            model: The model.
            reference: The model with which it is compared.

        Returns:
            The rows of the model, on the items for which all models have a score, with the columns
            `model_of_reference`, `score_of_reference` and `prediction_of_reference`.
        """
        one, other = (
            self.rows.iloc[self._common[metric, name]].set_index("_pair")
            for name in (model, reference)
        )
        sides = ["model", "score", "prediction"]
        return pd.DataFrame(one.join(other[sides].add_suffix("_of_reference"), how="inner"))


def compare_results(
    sources: ResultSource | Results,
    columns: ResultColumns | None = None,
    settings: ComparisonSettings | None = None,
    table: TableSettings | None = None,
    *,
    has_answers: bool = True,
) -> ComparedResults:
    """Compare the mean scores of models on the items for which all of them have a score.

    Repeats of an item, such as epochs, are averaged. An item in several forms is one pair per form,
    and its forms are in the same cluster. For a single model the result is the mean with an
    interval, without a difference.

    Args:
        sources: Sources of `read_results` (files or folders of results of any tool, frames, rows,
            or a mapping of names of models to frames), or the results that it returns.
        columns: Names of columns without standard names, and the clusters.
        settings: Baseline, margin and other options of the comparison.
        table: Groups (`by`, `separator`), test and confidence level.
        has_answers: Whether to read answers, as for `read_results`; for runs they are always read.

    Returns:
        One comparison per metric that all models have.

    Raises:
        DataError: If the models share no metric or no item, or there are answers without scores and
            no rule.
        ValueError: If `compare_models` rejects the scores, or an option requires several models and
            there is one.
    """
    columns, settings, table = (
        columns or ResultColumns(), settings or ComparisonSettings(), table or TableSettings(),
    )  # fmt: skip
    _check_settings(settings, table)
    if isinstance(sources, Results):
        return _by_rows(sources, None, columns, settings, table)
    if folders := _run_folders(sources):
        # The engine is imported only for runs.
        from surface_consistency.engine.compare.runs import read_runs

        if isinstance(sources, Mapping):
            columns = columns.model_copy(update={"names": tuple(map(str, sources))})
        runs = read_runs(folders, columns)
        return _by_rows(runs.results, runs, columns, settings, table)
    inputs = inputs_of(sources, columns)
    compared = None
    if settings.rule is None and settings.missing == "drop" and not (table.by or table.separator):
        compared = _by_sums(inputs, columns, settings, table)
    if compared is None:
        results = read_inputs(inputs, columns, has_answers=has_answers)
        compared = _by_rows(results, None, columns, settings, table)
    return compared


def _read_rows(
    inputs: Sequence[Input],
    columns: ResultColumns,
    settings: ComparisonSettings,
    table: TableSettings,
) -> pd.DataFrame:
    """Read the rows of tables that were compared by sums."""
    return _by_rows(read_inputs(inputs, columns), None, columns, settings, table).rows


def _by_sums(
    inputs: Sequence[Input],
    columns: ResultColumns,
    settings: ComparisonSettings,
    table: TableSettings,
) -> ComparedResults | None:
    """Compare flat tables by sums over clusters; None if rows are needed."""
    has_cells = len(inputs) == 2 or table.test != "auto"
    flat = flat_totals(inputs, columns, has_cells=has_cells)
    if flat is None:
        return None
    models = flat.totals.models
    _check_models(models, settings, table)
    settings, notes = _with_directions(settings, [flat.metric], {})

    def compared(totals: ScoreTotals) -> ModelComparisonResult:
        with _naming_metric(flat.metric):
            return compare_totals(
                totals,
                [],
                n_missing=flat.n_missing,
                n_items_of_any=flat.n_items_of_any,
                **_options(settings, table, flat.metric),
            )

    result = compared(flat.totals)
    labels = _label_notes(
        flat.cluster.labels, result, lambda name: compared(flat.labels[name]), flat.metric,
        table.confidence,
    )  # fmt: skip
    return ComparedResults(
        metrics={flat.metric: result},
        models=models,
        read_rows=partial(_read_rows, inputs, columns, settings, table),
        cluster_note=flat.cluster.note,
        are_items_clusters=flat.n_clusters_of_any == flat.n_items_of_any,
        noise=pd.DataFrame(columns=_NOISE),
        flips=pd.DataFrame(columns=_FLIPS),
        has_repeats=False,
        tools=("a table",),
        is_same_questions=flat.is_same_questions,
        settings=settings,
        table=table,
        missing=tuple(_missing_items(flat.metric, result)),
        notes=(*notes, *labels),
    )


def _by_rows(
    results: Results,
    runs: "RunResults | None",
    columns: ResultColumns,
    settings: ComparisonSettings,
    table: TableSettings,
) -> ComparedResults:
    """Compare any results by a frame of their rows."""
    frame, doubts, of_files = scored(results, settings)
    notes = [*of_files, *(() if runs is None else runs.notes)]
    by = table.by or (() if runs is None else runs.by)
    models = [str(name) for name in frame["model"].unique()]
    _check_models(models, settings, table)
    frame = _common_metrics(frame, notes)
    metrics = [str(name) for name in frame["metric"].unique()]
    n_groups = sum(frame[name].astype(str).nunique() for name in ("task", *by) if name in frame)
    _check_size(len(metrics), len(models), n_groups)
    known = directions_of(frame, results.higher_is_better)
    settings, of_directions = _with_directions(settings, metrics, known)
    notes += of_directions
    frame = _with_file_names(frame, columns, (*by, *columns.cluster))
    reject_nested(by, results.nested)
    frame = split_labels(frame, by, table.separator)
    failed = _failures(frame, is_wrong=settings.missing == "wrong")
    if settings.missing == "wrong":
        if n := int(frame["score"].isna().sum()):
            notes.append(f"{n:,} of {len(frame):,} scores are missing and count as incorrect")
        frame = _with_missing_filled(frame, settings.lower_is_better)
    frame = frame.assign(_unit=_of_rows(results.items, frame), _pair=_of_rows(results.pairs, frame))
    frame = frame.assign(**{name: _labels_of_items(frame, name) for name in by})
    whole = columns if runs is None else ResultColumns(cluster=(runs.cluster,))
    notes += note_several_labels(frame, by)
    clusters, codes = find_clusters(frame, results, whole)
    frame = frame.assign(_cluster=codes)
    notes += [f"within a group of {name} each item is a cluster" for name in clusters.names
              if name in by]  # fmt: skip
    means = rows = _without_repeats(frame, notes)
    if results.reducers and settings.rule is None:
        rows = _without_repeats(reduced_rows(frame, results.reducers), [])
    intervals = Intervals(confidence=table.confidence)
    repeats = _repeats(frame, intervals)
    comparisons, missing = {}, list[str]()
    unit = "answers" if _varies(frame["form"]) else "items"
    for name, part in rows.groupby("metric", sort=False, observed=True):
        metric = str(name)
        comparisons[metric] = _compared(part, by, settings, table, clusters.names)
        missing += _missing_items(metric, comparisons[metric], unit)
        notes += _incomplete(part)
        notes += _label_notes(
            clusters.labels, comparisons[metric], partial(_by_column, part, settings, table),
            metric, table.confidence,
        )  # fmt: skip
    n_unscored = int(frame["score"].isna().sum())
    if settings.missing == "raise" and (missing or n_unscored):
        counted = [sentence for named in failed.values() for sentence in named]
        (reason, *_) = [*counted, *missing, f"{n_unscored:,} rows have no score"]
        raise DataError(
            f"`missing=raise`: {reason.partition(';')[0]}; add the scores, or choose drop or wrong"
        )
    # Failed answers are counted by kind elsewhere, so only blank answers are counted here.
    answers = frame[frame["metric"] == frame["metric"].iat[0]]
    is_failed = answers["error"].notna()
    if is_failed.any():
        has_texts = is_answered(answers["prediction"][~is_failed]).any()
        texts = answers["prediction"].astype(object)
        answers = answers.assign(prediction=texts.mask(is_failed, "failed" if has_texts else None))
    return ComparedResults(
        metrics=comparisons,
        models=models,
        read_rows=partial(pd.DataFrame, rows),
        cluster_note=clusters.note if runs is None else runs.cluster_note,
        are_items_clusters=rows["_cluster"].nunique() == rows["_unit"].nunique(),
        noise=repeats if runs is None else runs.noise().reindex(columns=_NOISE),
        flips=_flips(means, repeats, comparisons, intervals),
        has_repeats=_varies(frame["repeat"]),
        tools=tuple(dict.fromkeys(results.tool.values())),
        is_same_questions=results.is_same_questions,
        settings=settings,
        table=table,
        missing=tuple(missing),
        notes=tuple(dict.fromkeys(notes)),
        doubts=(*(text for _, text in missing_answers(answers.assign(error=None))), *doubts),
        failed_answers=failed,
        by=tuple(by),
        unit=unit,
        runs=runs,
    )


def _run_folders(sources: object) -> list[Path]:
    """List the run folders among sources; empty if any source is not a run folder."""
    paths = [sources] if isinstance(sources, str | os.PathLike) else sources
    paths = list(paths.values()) if isinstance(paths, Mapping) else paths
    if not isinstance(paths, list | tuple):
        return []
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        return []
    folders = [Path(path).expanduser() for path in paths]
    if len(folders) == 1 and folders[0].is_dir():
        folders = sorted(path.parent for path in folders[0].glob("**/manifest.json")) or folders
    return folders if all((path / "manifest.json").is_file() for path in folders) else []


def _with_file_names(
    frame: pd.DataFrame, columns: ResultColumns, names: Sequence[str]
) -> pd.DataFrame:
    """Add columns under their names in the file if the reader renamed them to a role.

    A column such as "prompt", which is read as the question, can then also be a group.
    """
    added = {}
    for name in names:
        roles = [role for role, usual in USUAL.items() if _is_role(role, name, usual, columns)]
        if name not in frame and len(roles) == 1:
            added[name] = frame[roles[0]]
    return frame.assign(**added)


def _is_role(role: str, name: str, usual: Sequence[str], columns: ResultColumns) -> bool:
    """Return whether a column of a file is read for a role, by its given or a standard name."""
    given = getattr(columns, role)
    named = (given,) if isinstance(given, str) else given or usual
    return name in named


def _check_settings(settings: ComparisonSettings, table: TableSettings) -> None:
    """Raise an error for incompatible options."""
    settings.check()
    if len(settings.scale) not in (0, 2):
        raise ValueError(f"`scale` requires the minimum and maximum score; got {settings.scale}")
    if settings.fail_if == "maybe-worse" and settings.margin is None:
        raise ValueError("`fail_if=maybe-worse` requires `margin`, the non-inferiority margin")


def _check_size(n_metrics: int, n_models: int, n_groups: int) -> None:
    """Raise an error if there are too many metrics, models and groups."""
    if n_metrics * (n_models + n_groups + 10) > _MOST_RESULTS and n_metrics > 1:
        raise DataError(
            f"{n_metrics:,} metrics of {n_models:,} models and {n_groups:,} tasks and groups: "
            f"the maximum of metrics * (models + groups + 10) is {_MOST_RESULTS:,}; select some of "
            "the metrics by `metrics`"
        )


def _check_models(
    models: Sequence[str], settings: ComparisonSettings, table: TableSettings
) -> None:
    """Raise an error for options that do not match the number of models."""
    if len(models) < 2:
        options = {
            "fail_if": settings.fail_if, "baseline": settings.baseline, "margin": settings.margin,
            "test": None if table.test == "auto" else table.test,
        }  # fmt: skip
        given = [f"`{name}`" for name, value in options.items() if value is not None]
        if given:
            raise ValueError(
                f"{', '.join(given)} requires several models, but all results are of one model, "
                f"{shown(models[0])}; pass results of another model, name the column of models by "
                f"`model` or the files by `names`, or omit {', '.join(given)}"
            )
    elif settings.fail_if and len(models) > 2 and settings.baseline is None:
        raise ValueError(
            f"`fail_if` {settings.fail_if} requires `baseline` if there are more than two models: "
            f"{first_names(models)}"
        )


def _common_metrics(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Choose the metrics by which all models have scores."""
    is_scored = frame["score"].notna()
    scored = frame if is_scored.all() else frame[is_scored]
    reasons = "".join([f"; {note}" for note in notes if note.endswith(EXCLUDED_ENDING)][:1])
    if scored.empty:
        raise no_scores(frame, notes)
    if not _varies(scored["metric"]) and not _varies(frame["metric"]):
        return frame
    n_models = frame["model"].nunique()
    n_scored = scored.groupby("metric", sort=False, observed=True)["model"].nunique()
    common = [str(name) for name in n_scored.index[n_scored == n_models]]
    if not common:
        by_model = scored.groupby("model", sort=False, observed=True)["metric"].unique()
        own = [
            f"{str(name)[:30]}: {', '.join(map(str, names))}"[:60]
            for name, names in by_model.items()
        ]
        listed = "; ".join(own[:3]) + (f" and {len(own) - 3:,} more models" if own[3:] else "")
        raise DataError(
            f"the models have no metric in common ({listed}); omit a model, or score the answers "
            f"of all models by `rule`{reasons}"
        )
    alone = [str(name) for name in n_scored.index if name not in common]
    if alone:
        notes.append(f"not all models have scores of {first_names(alone)}, which is excluded")
    return frame[frame["metric"].isin(common)] if len(n_scored) > len(common) else frame


def _with_directions(
    settings: ComparisonSettings, metrics: Sequence[str], directions: Mapping[str, bool]
) -> tuple[ComparisonSettings, list[str]]:
    """Set the metrics with better lower scores, from the user, the files or their names."""
    given, lower, notes = {*settings.lower_is_better}, list[str](), list[str]()
    # With the filter of lm-evaluation-harness, and without.
    both = {name: (name, name.partition(",")[0]) for name in metrics}
    if unknown := given.difference(["none"], *both.values()):
        raise ValueError(
            f"`lower_is_better` {min(unknown)} is not a metric of the results; name one of "
            f"{first_names(metrics)}, or `none`"
        )
    for name in metrics:
        stated = [directions[one] for one in both[name] if one in directions]
        is_lower = not stated[0] if stated else direction(name) != "higher"
        is_named = not given.isdisjoint(both[name])
        if is_named or (is_lower and "none" not in given):
            lower.append(name)
        if is_lower and not is_named and "none" not in given:
            notes.append(
                f"lower scores of {name} are better, by {'the files' if stated else 'its name'}; "
                "if not, list the metrics with better lower scores by `lower_is_better`, or `none`"
            )
    return settings.model_copy(update={"lower_is_better": tuple(lower)}), notes


def _failures(frame: pd.DataFrame, *, is_wrong: bool) -> dict[str, tuple[str, ...]]:
    """Count the failed answers of each model by metric and kind."""
    failed = frame[frame["error"].notna() & frame["score"].isna()]
    if failed.empty:
        return {}
    answers = frame.groupby(["metric", "model"], observed=True).size().to_dict()
    sentences: dict[str, list[str]] = {}
    for (metric, model), part in failed.groupby(["metric", "model"], observed=True, sort=False):
        kinds = part["error"].map(kind_of).value_counts(sort=False)
        counted = ((str(kind), n) for kind, n in kinds.items())
        named = ", ".join(f"{n:,} {kind[:-1] if n == 1 else kind}" for kind, n in counted)
        sentences.setdefault(str(metric), []).append(
            f"{len(part):,} of {answers[metric, model]:,} answers of {model} failed ({named}) and "
            f"{'count as incorrect' if is_wrong else 'have no score'}"
        )
    return {metric: tuple(named) for metric, named in sentences.items()}


def _with_missing_filled(frame: pd.DataFrame, lower_is_better: Sequence[str]) -> pd.DataFrame:
    """Score missing answers as incorrect: 0, or 1 if lower scores are better."""
    scores = frame["score"]
    if not scores.dropna().between(0, 1).all():
        raise DataError(
            "`missing=wrong` requires scores from 0 to 1, but there are others; omit it to exclude "
            "items without a score for all models"
        )
    return frame.assign(score=scores.fillna(frame["metric"].isin(lower_is_better).astype(float)))


def _labels_of_items(frame: pd.DataFrame, name: str) -> pd.Series:
    """Fill the labels of an item from its other rows; raise an error if rows differ."""
    labels = frame[name].map(lambda cell: "; ".join(sorted(label_list(cell))) or None)
    first = frame.assign(_labels=labels)[labels.notna()].drop_duplicates("_pair").set_index("_pair")
    known = first.reindex(frame["_pair"]).set_index(frame.index)
    moved = labels.notna() & (labels != known["_labels"])
    if moved.any():
        one, other = known[moved].iloc[0], frame[moved].iloc[0]
        raise DataError(
            f"`by` {name}: item {shown(other['item'])} is {shown(one['_labels'])} in a row of "
            f"{shown(one['model'])} and {shown(labels[moved].iloc[0])} in a row of "
            f"{shown(other['model'])}; name a column with one value per item"
        )
    return frame[name].mask(labels.isna() & known["_labels"].notna(), known[name])


def _of_rows(numbers: _Numbers, frame: pd.DataFrame) -> _Numbers:
    """Return the codes of the remaining rows, without gaps."""
    if len(frame) == len(numbers):
        return numbers
    return pd.factorize(numbers[frame.index])[0].astype(np.int64)


def _numbered(frame: pd.DataFrame, columns: Sequence[str]) -> _Numbers:
    """Return codes of the rows by their values in some columns."""
    codes = np.zeros(len(frame), dtype=np.int64)
    for column in columns:
        if _varies(frame[column]):
            added, labels = pd.factorize(frame[column])
            codes = pd.factorize(codes * len(labels) + added)[0] if codes.any() else added
    return codes.astype(np.int64)


def _varies(column: pd.Series) -> bool:
    """Return whether a column has several values."""
    return bool((column != column.iat[0]).any())


def find_clusters(
    frame: pd.DataFrame, results: Results, columns: ResultColumns
) -> tuple[ClusterChoice, _Numbers]:
    """Choose the clusters, with the reason.

    Args:
        frame: Rows of the results, with the code of the item, `_unit`, and of item and form,
            `_pair`.
        results: The results.
        columns: `cluster` names the clusters; if it is empty, `found_cluster` chooses among
            `results.clusters`.

    Returns:
        The clusters, and the code of the cluster of each row.

    Raises:
        ColumnNotFoundError: If a named column is not found.
        DataError: If a cell of it is empty, or an item has several values.
    """
    if columns.cluster:
        named = tuple(columns.cluster)
        return ClusterChoice(named, f"{' and '.join(named)}, as named"), _named_codes(frame, named)
    note = ITEMS_ALONE
    if _varies(frame["form"]):
        note = "items, each with all its forms"
    elif _varies(frame["repeat"]):
        note = "items, each with all its repeats"
    items, tasks = frame["_unit"].to_numpy(), _numbered(frame, ("task",))
    return found_cluster(frame, results.clusters, items, tasks, note)


def _label_notes(
    labels: Mapping[str, int],
    result: ModelComparisonResult,
    compare: Callable[[str], ModelComparisonResult],
    metric: str,
    confidence: float,
) -> Iterator[str]:
    """Report columns that label the items, and whether clustering by them changes a conclusion.

    `compare` returns the comparison clustered by a column.
    """
    before = result.differences
    for name, n in labels.items():
        note = f"column {name} ({n:,} values) labels the items; `cluster` {name} clusters by it"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            after = before if before.empty else compare(name).differences
        for row in after[after["conclusion"] != before["conclusion"]].head(1).to_dict("records"):
            kind: say.Kind = "difference" if result.scale == VERDICTS else "number"
            estimate = say.estimate(
                row,
                "difference",
                f"{metric}, clustered by {name}",
                kind=kind,
                confidence=confidence,
            )
            note += (
                f", and the difference of {row['model']} minus {row['reference']} ({metric}) is "
                f"then {sentence_text(estimate)}, which changes the conclusion"
            )
        yield note


def _of_items(items: _Numbers, codes: _Numbers) -> _Numbers:
    """Return the cluster of each item, from its last row."""
    of_item = np.zeros(int(items.max()) + 1, dtype=np.int64)
    of_item[items] = codes
    return of_item


def _named_codes(frame: pd.DataFrame, names: tuple[str, ...]) -> _Numbers:
    """Return codes of the named clusters, which must be the same for all models."""
    for name in names:
        if name not in frame:
            raise ColumnNotFoundError(
                f"`cluster` {name} is not among the columns, which are {list(frame.columns)}"
            )
        if frame[name].isna().any():
            row = frame[frame[name].isna()].iloc[0]
            raise DataError(
                f"`cluster` {name} is empty for item {shown(row['item'])} of "
                f"{shown(row['model'])}; fill it in, or name another column by `cluster`"
            )
    codes, pairs = _numbered(frame, names), frame["_pair"].to_numpy()
    moved = _of_items(pairs, codes)[pairs] != codes
    if moved.any():
        row = frame[moved].iloc[0]
        raise DataError(
            f"`cluster` {' '.join(names)}: item {shown(row['item'])} is in one cluster for "
            f"{shown(row['model'])} and in another for other models; name a column that is the "
            "same for all models"
        )
    return codes


def _without_repeats(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Average the repeats of an item; note the number of repeats without a score."""
    if not _varies(frame["repeat"]):
        return frame
    key = ["model", "_pair", "metric"]
    first = frame.drop_duplicates(key)
    scores = frame.groupby(key, sort=False, observed=True)["score"].agg(["mean", "count", "size"])
    lost = (scores["size"] - scores["count"])[scores["count"] > 0].reset_index(name="n")
    lost = lost.groupby(["model", "metric"], as_index=False, observed=True).agg({"n": "sum"})
    notes += [
        f"{model} has no score ({metric}) of {n:,} {'repeat' if n == 1 else 'repeats'}; the "
        "mean of an item excludes missing repeats"
        for model, metric, n in lost[lost["n"] > 0].itertuples(index=False, name=None)
    ]
    means = scores["mean"].loc[pd.MultiIndex.from_frame(first[key])].to_numpy()
    return first.assign(score=means, repeat=0)


_RATE: Final = ("flip_rate", "flip_rate_low", "flip_rate_high")
_COUNTS: Final = ("n", "n_clusters")
_FLIPS: Final = ("model", "reference", "metric", *_COUNTS, *_RATE)
_PASS: Final = ("k", "pass_k", "pass_k_low", "pass_k_high")
_NOISE: Final = ("model", "metric", *_COUNTS, *_RATE, *_PASS)


def _repeats(frame: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """Compute the test-retest flip rate and pass^k of each model; empty without repeats."""
    scored = frame[frame["score"].notna()] if _varies(frame["repeat"]) else frame[:0]
    graded = scored.loc[~scored["score"].isin((0, 1)), "metric"].unique()
    scored = scored[~scored["metric"].isin(graded)]
    if scored.empty:
        return pd.DataFrame(columns=_NOISE)
    with warnings.catch_warnings():
        # Numbers that cannot be inferred are NaN.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = repeats_by(
            scored.astype({"model": str, "metric": str}), by=["model", "metric"], prompt="_pair",
            cluster="_cluster", score="score", intervals=intervals,
        )  # fmt: skip
    names = {f"test_retest_{name}": name for name in _RATE} | {"n_prompts": "n"}
    return table.rename(columns=names)[list(_NOISE)]


def _flips(
    rows: pd.DataFrame,
    repeats: pd.DataFrame,
    comparisons: Mapping[str, ModelComparisonResult],
    intervals: Intervals,
) -> pd.DataFrame:
    """Compute the flip rate of single repeats of two models, from the means of their repeats."""
    parts: list[pd.DataFrame] = []
    n_pairs = sum(len(comparisons[metric].differences) for metric in repeats["metric"].unique())
    if n_pairs > _MOST_FLIPS:
        raise DataError(
            f"{n_pairs:,} pairs of models with repeats; the maximum is {_MOST_FLIPS:,}; name a "
            "reference model by `baseline`"
        )
    for metric in repeats["metric"].unique():
        scored = rows[(rows["metric"] == metric) & rows["score"].notna()]
        wide = scored.pivot(index=["_pair", "_cluster"], columns="model", values="score")
        pairs = comparisons[metric].differences[["model", "reference"]]
        for model, reference in pairs.itertuples(index=False, name=None):
            one, other = wide[model], wide[reference]
            differ = (one * (1 - other) + other * (1 - one)).dropna()
            items = differ.rename("score").reset_index()
            parts.append(items.assign(model=model, reference=reference, metric=str(metric)))
    if not parts:
        return pd.DataFrame(columns=_FLIPS)
    table = mean_by(
        pd.concat(parts), by=["model", "reference", "metric"], cluster="_cluster", scale=(0.0, 1.0),
        intervals=intervals,
    )  # fmt: skip
    return table.rename(columns=lambda name: name.replace("mean", "flip_rate"))[list(_FLIPS)]


def _compared(
    rows: pd.DataFrame,
    by: Sequence[str],
    settings: ComparisonSettings,
    table: TableSettings,
    clusters: Sequence[str] = (),
) -> ModelComparisonResult:
    """Compare the models by one metric; within groups of the clustering column, items cluster."""
    if _varies(rows["form"]) and "form" not in by:
        by = by if any(_is_form(rows, name) for name in by) else [*by, "form"]
    if has_tasks := _varies(rows["task"]):
        by = [name for name in by if name != "task"]  # Tasks are always groups.
    shares = rows["_pair"].duplicated().any()
    called = "" if shares else f"; items are called {_first_items(rows)}"
    compare = partial(
        compare_models, rows, item="_pair", task="task" if has_tasks else None,
        **_options(settings, table, str(rows["metric"].iat[0])),
    )  # fmt: skip
    with _naming_metric(str(rows["metric"].iat[0]), called):
        result = compare(cluster="_cluster", by=[name for name in by if name not in clusters])
        if own := [name for name in by if name in clusters]:
            within = compare(cluster=ITEM_OF_PAIR if ITEM_OF_PAIR in rows else "_unit", by=own)
            groups, means = (
                pd.concat([of_all, of_own[of_own["by"].isin(own)]], ignore_index=True)
                for of_all, of_own in ((result.groups, within.groups), (result.means, within.means))
            )
            result = replace(result, groups=groups, means=means)
    return result


def _by_column(
    rows: pd.DataFrame, settings: ComparisonSettings, table: TableSettings, column: str
) -> ModelComparisonResult:
    """Compare the models by one metric, clustered by a column."""
    return _compared(rows.assign(_cluster=_numbered(rows, (column,))), (), settings, table)


@contextmanager
def _naming_metric(metric: str, called: str = "") -> Iterator[None]:
    """Prefix the metric to errors of `compare_models`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"by the metric {shown(metric)}: {error}{called}") from error


def _options(settings: ComparisonSettings, table: TableSettings, metric: str) -> dict[str, Any]:
    """Return the options of `compare_models`."""
    return {
        "baseline": settings.baseline,
        "margin": settings.margin,
        "scale": settings.scale or None,
        "higher_is_better": metric not in settings.lower_is_better,
        "test": table.test,
        "intervals": Intervals(confidence=table.confidence),
    }


def _is_form(rows: pd.DataFrame, name: str) -> bool:
    """Return whether a column has exactly one distinct label per form."""
    labels = rows[name].map(label_list)
    if (labels.map(len) != 1).any():
        return False
    return np.array_equal(pd.factorize(labels.str[0])[0], pd.factorize(rows["form"])[0])


def _first_items(rows: pd.DataFrame) -> str:
    """List the first item of each of the first five models."""
    first = rows.drop_duplicates("model").head(5)
    named = zip(first["model"], first["item"], strict=True)
    listed = ", ".join(f"{shown(item, 30)} by {model[:30]}" for model, item in named)
    return listed if len(listed) <= 90 else f"{listed[:90]}..."


def _missing_items(
    metric: str, comparison: ModelComparisonResult, unit: str = "items"
) -> Iterator[str]:
    """Report how many items or answers are not common to all models."""
    n = comparison.n_items_of_any
    if comparison.n_items < n:
        of_several = len(comparison.models) > 1
        yield (
            f"{comparison.n_items:,} of {n:,} {unit} have a score ({metric})"
            f"{' of every model' if of_several else ''}; the others are excluded"
        )


def _incomplete(rows: pd.DataFrame) -> Iterator[str]:
    """Report tasks and forms that are not common to all models."""
    scored = rows[rows["score"].notna()]
    for column in ("task", "form"):
        if not _varies(rows[column]):
            continue
        n_scored = scored.groupby(column, sort=False, observed=True)["model"].nunique()
        alone = n_scored.index[n_scored < scored["model"].nunique()]
        if len(alone):
            yield (
                f"{column} {', '.join(map(shown, map(str, alone[:5])))} "
                f"{'and others ' if len(alone) > 5 else ''}is not answered by every model and is "
                "excluded"
            )


def _changed(both: pd.DataFrame, *, is_lower_better: bool) -> pd.DataFrame:
    """List the items on which two models score differently, losses first."""
    gain = both["score"] - both["score_of_reference"]
    both, gain = both[gain != 0], gain[gain != 0]
    gain = -gain if is_lower_better else gain
    listed = pd.DataFrame(
        {
            "change": np.where(gain < 0, "lost", "gained"),
            "model": both["model"].astype("str"),
            "reference": both["model_of_reference"].astype("str"),
            **{name: both[name].astype("str") for name in ITEM},
            "question": both["question"],
            "references": both["references"],
            "reference_score": both["score_of_reference"],
            "model_score": both["score"],
            "reference_answer": both["prediction_of_reference"],
            "model_answer": both["prediction"],
        },
        index=both.index,
    )
    return listed.iloc[np.argsort(gain.to_numpy(), kind="stable")].reset_index(drop=True)
