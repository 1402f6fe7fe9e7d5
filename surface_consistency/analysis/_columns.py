"""Read the data of a call of a library function, and check the columns that its arguments name."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, get_origin

import numpy as np
import pandas as pd

from surface_consistency.analysis.clusters import ITEMS_ALONE, found_cluster
from surface_consistency.analysis.doubts import empty_texts
from surface_consistency.analysis.labels import note_several_labels
from surface_consistency.analysis.scoring import ScoredAnswers, scored_by_rule
from surface_consistency.analysis.settings import RuleSettings
from surface_consistency.errors import ColumnNotFoundError, DataError, PluginError
from surface_consistency.metrics._groups import column_names, has_list_cells, plain_label
from surface_consistency.metrics._inputs import check_choice, check_same_index
from surface_consistency.reading import find_column, first_names, shown, within
from surface_consistency.results.columns import SOURCE, UNSURE, USUAL, ResultColumns, reject_nested
from surface_consistency.results.epochs import reduced_rows
from surface_consistency.results.failures import without_scored_answers
from surface_consistency.results.frame import RUNS, UNSCORED, Results, read_results, table_or_rows
from surface_consistency.results.inputs import inputs_of
from surface_consistency.results.layouts import flat_rows
from surface_consistency.results.names import DIRECTIONS, cluster_names, direction
from surface_consistency.results.rows import nested_row
from surface_consistency.results.run_folders import is_run
from surface_consistency.results.tables import as_text, frame_of, number_of, table_part
from surface_consistency.rows.cells import strings_of
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.text import did_you_mean

_TABLES: Final = (".csv", ".tsv", ".parquet", ".jsonl", ".json", ".feather", ".arrow")
_SCORES: Final = ("score", "correct")
"""Default columns of scores, which may have another name in files."""
_NOTES: Final = "notes of read_results"
_MOST_GROUPS: Final = 5_000
_OPTIONAL: Final = ("item", "form", "pair", "cluster", "full", "gold_retrieved")


def to_frame(
    data: object,
    *tables: Sequence[str],
    by: str | Sequence[str] = (),
    score: str = "",
    **named: str | None,
) -> pd.DataFrame:
    """Return data as a frame with a fresh index.

    Args:
        data: A DataFrame; a `datasets.Dataset`, polars or Arrow table; a list of dictionaries; a
            dictionary of columns; or a source of `read_results`: a file or folder, or a log of
            inspect_ai.
        tables: Columns of scores of a table with one row per pair or fact. A file with these
            columns is read as such a table, and a run folder as its outcomes.
        by: Columns of groups.
        score: Column of scores if there is one row per answer. Failed answers then have no score,
            as for files, and the reader creates the columns `prediction` and `error`.
        named: Further columns by argument. A file has them under its own names.

    Returns:
        The frame; columns of a DataFrame are not copied. Scores of files are in the column `score`.

    Raises:
        DataError: If a file cannot be read, or has several tasks or metrics that are not groups.
        TypeError: If the data have another type.
        ValueError: If the data have no rows.
    """
    is_file = isinstance(data, str | os.PathLike) or hasattr(data, "model_dump")
    if isinstance(data, pd.DataFrame):
        frame = data
    elif is_file:
        frame = _read(data, tables, column_names(by), score, named)
    elif hasattr(data, "to_pandas"):
        frame = data.to_pandas()
    elif isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        frame = pd.DataFrame(data)
    elif isinstance(data, dict) and all(map(_is_column, data.values())):
        check_same_index(**{str(name): column for name, column in data.items()})
        frame = pd.DataFrame(data)
    else:
        remedy = (
            "To convert arrays, use a DataFrame with a column per array, such as "
            'pd.DataFrame({"item": items, "form": forms, "correct": scores})'
        )
        listed = data if isinstance(data, list | tuple) else getattr(data, "values", tuple)()
        if any(isinstance(one, os.PathLike | pd.DataFrame) for one in listed) or (
            any(isinstance(one, str) and os.path.exists(one) for one in listed)
        ):
            remedy = "To compare several sources, use surface_consistency.compare(df)"
        raise TypeError(
            "df must be a DataFrame, a list of dictionaries, a dictionary of columns or a file, "
            f"with one row per answer or pair; got {type(data).__name__}. {remedy}"
        )
    if frame.empty:
        raise ValueError("df has no rows; pass a DataFrame with one row per answer or pair")
    frame = frame.reset_index(drop=True)
    if not is_file:
        frame.attrs.pop(SOURCE, None)
    is_read = is_file or not score or not frame.columns.is_unique
    return of_study(frame if is_read else _without_failures(frame, score, column_names(by)))


def _is_column(values: object) -> bool:
    """Return whether a value of a dictionary can be a column of a table."""
    return hasattr(values, "__len__") and not isinstance(values, str | Mapping | pd.DataFrame)


def _without_failures(frame: pd.DataFrame, score: str, by: Sequence[str]) -> pd.DataFrame:
    """Detect failed answers of a frame like the reader of files, and remove their scores."""
    usual = (*USUAL["prediction"], *USUAL["error"], "finish_reason")
    columns = list(map(str, frame))
    found = {find_column(name, columns) for name in usual if name not in UNSURE}
    scores = {score, *USUAL["score"]} & {*frame}
    if score not in frame and score in _SCORES and len(scores) == 1:
        (score,) = scores
    if score not in frame:
        return frame
    names = [name for name in frame if name in found - {score, *by} and _is_plain(frame[name])]
    if not names:
        return frame
    notes, scored = list[str](), [score] if score not in found else []
    columns_of = ResultColumns(score=score if scored else None)
    part = table_part(frame[[*names, *scored]], columns_of, "df", notes, for_judging=True)
    samples = part.samples
    samples = samples.reindex(columns=["prediction", "error"])
    if samples["error"].notna().any() and pd.api.types.is_numeric_dtype(frame[score]):
        samples["error"] = without_scored_answers(samples["error"], frame[score])
    failed = samples["error"].notna()
    masked = {name: frame[name].mask(failed) for name in scores - {*names, *by} if failed.any()}
    own = {name: samples[name] for name in map(str, samples) if name not in (score, *by)}
    frame = frame.assign(**masked, **own)
    notes += empty_texts(frame, score)
    frame.attrs |= {_NOTES: [f"{note}." for note in notes], SOURCE: columns}
    return frame


def _is_plain(column: "pd.Series[Any]") -> bool:
    """Check whether all cells are texts, numbers or missing."""
    return all(isinstance(cell, str | float | int | None) or cell is pd.NA for cell in column)


def of_study(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert outcomes that were read from a file to the form of `outcomes_frame`.

    Args:
        frame: Any frame.

    Returns:
        Outcomes of a study with the columns of `outcomes_frame`, in which the text of lists is
        parsed (CSV files contain lists as text); other frames unchanged.
    """
    if not {"study", "pair"} <= {*frame}:
        return frame
    studies = frame["study"].unique()
    if len(studies) != 1:
        return frame
    from surface_consistency.engine.study import find_study, outcomes_frame

    try:
        study = find_study(str(studies[0]))
    except PluginError:
        return frame
    fields = study.records.outcome.model_fields.items()
    lists = [name for name, field in fields if get_origin(field.annotation) is tuple]
    for name in {*lists, *map(study.design.shown, lists)} & {*frame}:
        if frame[name].map(lambda cell: isinstance(cell, str)).any():
            frame = frame.assign(**{name: frame[name].map(strings_of)})
    return frame if "cluster" in frame else outcomes_frame(study, frame)


def with_cluster_of_runs(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Add the clustering column of the study to the answers of runs.

    Args:
        frame: The answers.
        results: The results from which they were read.

    Returns:
        The answers with `cluster` if all results are runs of one study; otherwise unchanged.
    """
    # In results an item is a prompt, and the item of a study is the fact of its prompts.
    names = {"task": "study", "item": "pair", "fact": "item"}
    if {*results.tool.values()} != {RUNS} or not {*names} <= {*frame}:
        return frame
    described = of_study(frame.rename(columns=names))
    return frame.assign(cluster=described["cluster"]) if "cluster" in described else frame


def scored(results: Results, settings: RuleSettings) -> ScoredAnswers:
    """Score the answers of results by the rule, if one is given.

    Args:
        results: The results.
        settings: The rule.

    Returns:
        The rows, with notes on the files and the rule.
    """
    if settings.rule is None:
        return ScoredAnswers(results.frame, (), (*results.notes, *empty_texts(results.frame)))
    made = scored_by_rule(results.frame, settings)
    notes = (note for note in results.notes if not note.endswith(UNSCORED))
    return made._replace(notes=(*notes, *made.notes, *empty_texts(made.frame)))


def answers_of(results: Results, settings: RuleSettings, by: Sequence[str]) -> ScoredAnswers:
    """Return the rows of results for a function of the library.

    Args:
        results: The results.
        settings: Rule that scores the answers, if one is given.
        by: Columns of groups, or other columns of the files that are needed under their own names.

    Returns:
        The rows, with repeats reduced as in the log and with the clustering column of a study. They
        have a column `higher_is_better` if the files contain the direction of a metric.

    Raises:
        DataError: If there are several tasks or metrics that are not groups.
    """
    reject_nested(by, results.nested)
    made = scored(results, settings)
    frame = made.frame if settings.rule else reduced_rows(made.frame, results.reducers)
    frame = with_cluster_of_runs(frame, results)
    own = {name: frame[results.roles[name]] for name in {*by} & {*results.roles} - {*frame}}
    frame = frame.assign(**own)
    for name in ("task", "metric"):
        values = [str(value) for value in frame[name].unique()]
        if len(values) > 1 and name not in by:
            raise DataError(
                f"the results have scores of {len(values)} {name}s ({first_names(values)}); pass "
                f"by={shown(name)} for one row per {name}, or use compare"
            )
    if known := directions_of(frame, results.higher_is_better):
        named = frame["metric"].astype(str)
        plain = named.str.partition(",")[0].map(known)
        frame = frame.assign(higher_is_better=named.map(known).fillna(plain))
    return made._replace(frame=frame)


def directions_of(frame: pd.DataFrame, known: Mapping[str, bool]) -> dict[str, bool]:
    """Return the direction of each metric that the files state.

    Args:
        frame: The rows, with a column `metric`.
        known: Directions by metric from the files of a tool.

    Returns:
        For each metric, whether higher scores are better.
    """
    directions = dict(known)
    for name in DIRECTIONS & {*frame}:
        cells = frame[frame[name].notna()].drop_duplicates("metric")[["metric", name]]
        for metric, cell in cells.itertuples(index=False, name=None):
            if (value := number_of(cell)) in (0.0, 1.0):
                directions[str(metric)] = bool(value) == (name == "higher_is_better")
    return directions


def _outcomes(path: Path) -> pd.DataFrame:
    """Read the pairs of a run."""
    import pyarrow as pa

    try:
        with open_parquet(path) as file:
            pairs: pd.DataFrame = file.read().to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path}: cannot be read as Parquet ({str(error)[:200]}); score the run again"
        ) from error
    return pairs


def _read(
    source: Any,  # noqa: ANN401 - a path or a log
    tables: Sequence[Sequence[str]],
    by: Sequence[str],
    score: str,
    named: Mapping[str, str | None],
) -> pd.DataFrame:
    """Read a table of pairs, or results of any tool, which have one metric."""
    if tables and isinstance(source, str | os.PathLike):
        path = Path(source)
        if is_run(path):
            return _outcomes(within(path, "outcomes.parquet"))
        if {*map(str.lower, path.suffixes)} & {*_TABLES} and not path.is_dir():
            table = read_table(source)
            scores = next((one for one in tables if {*one} <= {*table}), None)
            if scores is not None:
                return table.assign(**{name: read_scores(table[name], path) for name in scores})
    columns = ResultColumns() if score in ("", *_SCORES) else ResultColumns(score=score)
    for role in ("item", "form", "repeat", "model"):
        name = named.get(role)
        if name and not find_column(name, (role, *["question"] * (role == "item"), *USUAL[role])):
            given = {role: (name,) if role == "item" else name}
            columns = columns.model_copy(update=given)
    names = [*by, *({*filter(None, named.values())} - {"task", "metric"})]
    results = read_results(source, columns)
    made = answers_of(results, RuleSettings(), names)
    if made.frame["score"].isna().all() and any(note.endswith(UNSCORED) for note in made.notes):
        own = {role: name for name, role in results.roles.items()}
        raise DataError(
            f"{source} contains answers without scores; read it as a frame df, and score them by "
            f"{scored_by(own.get('prediction', ''), own.get('references', 'references'))}, or use "
            "compare with `rule`"
        )
    frame = (
        made.frame if score in ("", *_SCORES) else made.frame.assign(**{score: made.frame["score"]})
    )
    is_text = frame.dtypes == "category"
    frame = frame.astype(dict.fromkeys(frame.columns[is_text], object))
    unused = ["task"] * ("task" not in by) + ["form"] * bool((frame["form"] == "").all())
    frame = frame.drop(columns=[*unused, "content", "file"])
    frame.attrs[_NOTES] = [f"{note}." for note in made.notes]
    return frame


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file as one table.

    Args:
        path: Path or URL of a table in a supported format, which may be compressed.

    Returns:
        The rows, without a value for an empty cell of CSV and TSV.

    Raises:
        DataError: If the file has no rows.
    """
    first_of, *_ = inputs_of(path, ResultColumns())
    table, rows = table_or_rows(first_of)
    if table is None:
        name = first_of.name
        table = frame_of([flat.row() for flat in flat_rows(rows, Path(name), [])[1]], name)
    if table.empty:
        raise DataError(f"{first_of.name} has no rows; check how it was written")
    return table


def read_scores(column: "pd.Series[Any]", path: Path) -> "pd.Series[float]":
    """Read the scores of a column of a file.

    Args:
        column: Numbers, true and false, or their texts.
        path: The file, for the message.

    Returns:
        The scores, NaN for empty cells.

    Raises:
        DataError: If a cell is not a score.
    """
    try:
        codes, cells = pd.factorize(column)
    except TypeError:  # A list has no hash.
        codes, cells = np.arange(len(column)), pd.Index(column, dtype=object)
    numbers = [*map(number_of, cells), float("nan")]
    if None in numbers:
        row = int(np.argmax(codes == numbers.index(None)))
        raise DataError(
            f"{path.name}: row {row + 1}, column {shown(column.name)}: {shown(column.iloc[row])} "
            "is not a score; use a number, true or false, or an empty cell for a missing score"
        )
    # Code -1 is a missing cell.
    return pd.Series(np.array(numbers, dtype=float)[codes], index=column.index)


def find(frame: pd.DataFrame, role: str, name: str, *, default: str = "") -> str:
    """Find the column of an argument.

    Args:
        frame: The frame.
        role: Name of the argument.
        name: Name of the column.
        default: Default of the argument. If `name` is the default and not in the frame, the only
            column with a standard name of the role is used.

    Returns:
        The column.

    Raises:
        ColumnNotFoundError: If the column is not in the frame, or several have a standard name.
        ValueError: If the frame has two columns of that name.
    """
    columns = list(frame.columns)
    if columns.count(name) > 1:
        raise ValueError(f"df has {columns.count(name)} columns {shown(name)}; rename or drop one")
    if name in columns:
        return name
    usual = [one for one in USUAL.get(role, ()) if one in columns] if name == default else []
    if len(usual) == 1:
        return usual[0]
    own = frame.attrs.get(SOURCE) or [*map(str, columns)]
    listed = f"Columns: {first_names(own)}"
    if usual:
        raise ColumnNotFoundError(
            f"column {shown(name)} not found, but {' and '.join(map(shown, usual))} are possible; "
            f"pass {role}= the name of one. {listed}"
        )
    hint = did_you_mean(name, own)
    remedy = f"{role}= the name of a column"
    if role == "score" and {"first_correct", "second_correct"} <= {*columns}:
        remedy = 'score="first_correct" or "second_correct" for one condition, or use paired'
    elif role == "score" and (texts := [one for one in USUAL["prediction"] if one in columns]):
        references = [one for one in USUAL["references"] if one in columns]
        remedy += f", or score the answers by {scored_by(texts[0], *references[:1])}"
    elif role in ("item", "form") and {"first_correct", "second_correct"} <= {*columns}:
        remedy = "a column pair (df.assign(pair=range(len(df))) for one per row), or use paired"
        if "pair" in columns:
            remedy = "none of item=, form= and score=, which outcomes do not need, or use paired"
    if role in _OPTIONAL and not default:
        remedy = f"{role}=None or the name of a column"
    raise ColumnNotFoundError(f"column {shown(name)} not found{hint}; pass {remedy}. {listed}")


def scored_by(prediction: str, references: str = "references", rule: str = "popqa") -> str:
    """Write code that scores a column of predictions by a column of references.

    Args:
        prediction: The column of predictions.
        references: The column of references.
        rule: The matching rule.

    Returns:
        The code, for a message.
    """
    columns = f"df[{shown(prediction)}], df[{shown(references)}], rule={rule!r}"
    return f'df["correct"] = surface_consistency.matching.match_columns({columns}).is_match'


def find_optional(frame: pd.DataFrame, role: str, name: str | None, default: str) -> str | None:
    """Find the column of an argument whose default column may be absent.

    Args:
        frame: The frame.
        role: Name of the argument.
        name: Name of the column; None if there is no column.
        default: Default of the argument.

    Returns:
        The column. If the default is not in the frame, the first standard name that is in the
        frame, as for `compare`; otherwise None.

    Raises:
        ColumnNotFoundError: If `name` is not the default and not in the frame.
    """
    if name is None:
        return None
    if name == default and name not in frame:
        return next((one for one in USUAL.get(role, ()) if one in frame), None)
    return find(frame, role, name)


def averaged(frame: pd.DataFrame, unit: Sequence[str], scores: Sequence[str]) -> pd.DataFrame:
    """Average the repeats of each observation.

    Args:
        frame: The frame.
        unit: Columns that identify an observation.
        scores: Columns of scores; missing scores are excluded from the mean.

    Returns:
        One row per observation, with the other columns of its first row.
    """
    numbers = frame.assign(**{name: pd.to_numeric(frame[name]).astype(float) for name in scores})
    groups = numbers.groupby(list(unit), sort=False, dropna=False)
    means = groups[list(scores)].mean().to_numpy()
    first = numbers.drop_duplicates(list(unit)).reset_index(drop=True)
    return first.assign(**dict(zip(scores, means.T, strict=True)))


class Rows(NamedTuple):
    """The rows of a call, with the columns that identify an observation, a group and a cluster."""

    frame: pd.DataFrame
    keys: list[str]
    """The column of models, if there are several, and the groups."""
    family: list[str]
    """The column of models if there are groups, otherwise empty; the rows of a model are one family
    of tests."""
    cluster: str | None
    """Column of dependent rows."""
    unit: list[str]
    """Columns that identify an observation, with the model and the groups."""
    scores: Sequence[str]
    """Columns of scores."""
    clusters: str
    """Name of the clusters, in the plural."""
    is_binary: bool
    """Whether all known scores are 0 or 1."""
    is_share: bool
    """Whether all known scores are from 0 to 1."""
    lower: Sequence[str]
    """Metrics or columns of scores for which lower scores are better."""
    note: str
    """Notes on a detected clustering column, and from the reader of the file, with remedies."""
    several: Sequence[str]
    """Notes on rows with several labels of a group."""


def _check_groups(frame: pd.DataFrame, keys: Sequence[str]) -> None:
    """Raise an error if there are too many groups."""
    listed = [name for name in keys if has_list_cells(frame[name])]
    plain = [name for name in keys if name not in listed]
    numbers = {name: frame[name].explode().nunique() for name in listed}
    numbers[", ".join(plain)] = len(frame[plain].drop_duplicates()) if plain else 0
    for name, n_groups in numbers.items():
        if n_groups > _MOST_GROUPS:
            raise DataError(
                f"{name} makes {n_groups:,} groups; the maximum is {_MOST_GROUPS:,}; name columns "
                "with fewer values by `by`, or select some of the models"
            )


def prepare(
    frame: pd.DataFrame,
    scores: Sequence[str],
    unit: Sequence[str | None],
    by: str | Sequence[str],
    cluster: str | None,
    item: str | None,
    model: str,
    repeat: str | None,
    missing: str,
    *,
    binary_reason: str = "",
) -> Rows:
    """Check the columns of a call, and choose its groups and clusters.

    Args:
        frame: The frame that `to_frame` returns.
        scores: Columns of scores; if empty, no clustering column is detected.
        unit: Columns that identify an observation of a model, such as item and form, or None.
        by: Columns of groups.
        cluster: Column of dependent rows; None uses the finest column of a shared context, as for
            `compare`, or else the item. Within groups of the same column, items are the clusters.
        item: Column of items; None if the frame has none.
        model: Column of models, which are groups if there are several. A column with a standard
            name is renamed "model".
        repeat: Column of repeats; None if every observation has one row.
        missing: Policy for missing scores.
        binary_reason: Why graded scores are rejected; empty if they are accepted.

    Returns:
        The rows.

    Raises:
        ColumnNotFoundError: If a column is not in the frame.
        DataError: If an observation has several rows, an id is missing, or a column of ids has
            numbers and texts.
        ValueError: If there are more than 5,000 groups, `missing` is unknown, or is "raise" or
            "wrong" and cannot be applied, `repeat` is given without a column of items, a score is
            graded but must be 0 or 1, or a 0/1 score is an error or a loss by its name.
    """
    check_choice(missing, ("drop", "raise", "wrong"), "missing")
    keys = [find(frame, "by", name) for name in column_names(by)]
    several = [f"{one}." for one in note_several_labels(frame, keys)]
    named = find_optional(frame, "model", model, "model")
    for name in filter(None, (item, named, *unit)):
        _check_no_lists(frame[name])
    models = []
    if (
        named not in (None, cluster, item, repeat, *unit, *scores, *keys)
        and frame[named].nunique(dropna=False) > 1
    ):
        _check_ids(frame[named])
        models = ["model" if model == "model" else model]
        frame = frame.rename(columns={named: models[0]})
    family = models if keys else []
    keys = [*models, *keys]
    _check_groups(frame, keys)
    if cluster is None and not scores:
        chosen, note = item, ""
    elif cluster is None:
        frame, chosen, note = _found_cluster(frame, item, keys)
    else:
        chosen, note = find(frame, "cluster", cluster), ""
        if chosen in keys:
            note = f"Clusters: {item or 'rows'}, since each group is one value of {chosen}."
            chosen = item
    repeats = [] if repeat is None else [find(frame, "repeat", repeat)]
    own = list(filter(None, unit))
    # An empty form is a form without a name, as in files.
    empty = [name for name in own[1:] if frame[name].isna().any()]
    frame = frame.assign(**{name: as_text(frame[name]) for name in empty})
    for name in dict.fromkeys(filter(None, [*own, *repeats, chosen])):
        _check_ids(frame[name])
    labels = [name for name in keys if not has_list_cells(frame[name])]
    observation = [*dict.fromkeys([*labels, *own])]
    if own:
        _check_no_duplicates(frame, observation, repeats)
    elif repeats:
        raise ValueError("repeat needs the column of items; pass item= the name of a column")
    graded = [_graded(frame[name], binary_reason) for name in scores]
    is_share = all(_is_share(frame[name]) for name in scores)
    lower = _lower(frame, scores)
    if missing == "raise":
        _check_no_missing(frame, scores)
    if missing == "wrong":
        if not is_share:
            raise ValueError(
                "missing='wrong' scores a missing answer 0, or 1 if lower scores are better, but "
                "there are scores outside 0 to 1; "
                "pass missing='drop' to exclude answers without a score"
            )
        worst = frame["metric"].isin(lower).astype(int) if "metric" in frame else 0
        filled = {
            name: frame[name].astype(object).where(frame[name].notna(), int(name in lower) or worst)
            for name in scores
        }
        if n := int(frame[list(scores)].isna().any(axis=1).sum()):
            several.append(f"{n:,} of {len(frame):,} rows without a score count as incorrect.")
        frame = frame.assign(**filled).infer_objects()
    if lower and not any(graded):
        raise ValueError(
            f"{shown(lower[0])} is an error or a loss by its name or the file, so 1 is not a "
            "correct answer; use compare, or pass a column of correct answers, such as 1 - error"
        )
    return Rows(
        frame,
        keys,
        family,
        chosen,
        observation,
        scores,
        "items" if chosen == item else "clusters",
        not any(graded),
        is_share,
        lower,
        " ".join(filter(None, (note, *frame.attrs.get(_NOTES, ())))),
        several,
    )


def _lower(frame: pd.DataFrame, scores: Sequence[str]) -> list[str]:
    """List the columns of scores and the metrics for which lower scores are better."""
    if not scores:
        return []
    frame = frame if "metric" in frame else frame.assign(metric=scores[0])
    known = directions_of(frame, {})
    names = dict.fromkeys(map(str, (*scores, *frame["metric"].unique())))
    return [name for name in names if not known.get(name, direction(name) == "higher")]


def _is_share(column: "pd.Series[Any]") -> bool:
    """Return whether all known scores are from 0 to 1."""
    return bool(pd.to_numeric(column.dropna(), errors="coerce").astype(float).between(0, 1).all())


def _check_no_missing(frame: pd.DataFrame, scores: Sequence[str]) -> None:
    """Raise an error for missing scores."""
    for name in scores:
        if n := int(frame[name].isna().sum()):
            row = int(np.argmax(frame[name].isna()))
            raise ValueError(
                f"column {shown(name)} has no score in {n:,} of {len(frame):,} rows, first in row "
                f"{row}; fill it in, or pass missing='drop' or 'wrong'"
            )


def _found_cluster(
    frame: pd.DataFrame, item: str | None, keys: Sequence[str]
) -> tuple[pd.DataFrame, str | None, str]:
    """Find the column of a context that items share, as for `compare`.

    Returns the frame, with cluster numbers in the clustering column; this column, or the column of
    items if no column has enough groups; and a note that names the column.
    """
    names = [name for name in cluster_names(frame) if name not in (item, *keys)]
    names = [name for name in names if not has_list_cells(frame[name])]
    rows = frame.index if item is None else frame[item]
    items = pd.factorize(rows, use_na_sentinel=False)[0].astype(np.int64)
    choice, codes = found_cluster(frame, names, items, np.zeros_like(items), ITEMS_ALONE)
    if choice.names:
        (name,) = choice.names
        remedy = "" if item is None else f"; pass cluster={shown(item)} if items are independent"
        return frame.assign(**{name: codes}), name, f"Clusters: {choice.note}{remedy}."
    few = f"Clusters: {choice.note}." if choice.note != ITEMS_ALONE else ""
    labels = [
        f"Column {name} ({n:,} values) labels the items; cluster={shown(name)} clusters by it."
        for name, n in choice.labels.items()
    ]
    return frame, item, " ".join(filter(None, [few, *labels]))


def _graded(column: "pd.Series[Any]", binary_reason: str) -> bool:
    """Return whether a score is neither 0 nor 1; raise an error for a text, or with a reason."""
    known = column.dropna()
    graded = known[~known.isin((0, 1))]
    if len(graded) and isinstance(graded.iloc[0], str):
        name = shown(column.name)
        raise ValueError(
            f"column {name} has the text {shown(graded.iloc[0])} in row {graded.index[0]}, and a "
            f"score is a number; pass df[{name}].replace(codes).astype(float), where codes is a "
            "dictionary with 1 or 0 for each word"
        )
    if len(graded) and binary_reason:
        score = plain_label(graded.iloc[0])
        raise ValueError(
            f"column {shown(column.name)} has {shown(score)} in row {graded.index[0]}, which is "
            f"neither 0 nor 1; {binary_reason}; pass a 0/1 column, such as "
            f"(df[{shown(column.name)}] >= 0.5), or use accuracy, paired or compare for graded "
            "scores"
        )
    return bool(len(graded))


def _check_no_lists(column: "pd.Series[Any]") -> None:
    """Raise an error for lists and objects in a column of ids."""
    if (row := nested_row(column)) is not None:
        raise DataError(
            f"column {shown(column.name)} has {shown(column.iloc[row])} in row {row}, and a list "
            "or an object is not an id; pass a column with one text or number per row"
        )


def _check_ids(column: "pd.Series[Any]") -> None:
    """Raise an error for missing ids, and for a mix of numbers and texts."""
    _check_no_lists(column)
    if column.isna().any():
        row = int(np.argmax(column.isna()))
        raise DataError(
            f"column {shown(column.name)} has no id in row {row}; fill it in, or pass another "
            "column"
        )
    if column.dtype == object and len({isinstance(value, str) for value in column}) > 1:
        raise DataError(
            f"column {shown(column.name)} has ids that are texts and ids that are numbers, which "
            f"never match; convert them with df[{shown(column.name)}].astype(str)"
        )


def _check_no_duplicates(frame: pd.DataFrame, unit: list[str], repeats: list[str]) -> None:
    """Raise an error for observations with several rows."""
    named = [*unit, *repeats]
    repeated = frame[named].duplicated()
    if not repeated.any():
        return
    row = frame[repeated].iloc[0]
    first = ", ".join(f"{name}={shown(plain_label(row[name]))}" for name in named)
    remedy = "drop the duplicates"
    if not repeats:
        remedy += (
            ", or, if they are repeated answers to the same prompt, pass repeat= the column that "
            "numbers them, such as the run"
        )
    raise DataError(
        f"{int(repeated.sum()):,} rows have the same {', '.join(named)} as another row, first "
        f"{first}; {remedy}"
    )
