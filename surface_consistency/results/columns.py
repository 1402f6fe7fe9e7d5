"""Assign roles to the columns of a plain table of results."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.reading import find_column, first_names, shown
from surface_consistency.results.failures import ERRORS
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings


class ResultColumns(Settings):
    """Names of columns that are not detected from the file, and the requested metrics."""

    task: str | None = None
    """Column of the task; by default one of the usual names."""

    model: str | None = None
    """Column of the model; by default one of the usual names, else each file has one model."""

    item: Items[str] = ()
    """Columns that together name an item; by default one of the usual names."""

    form: str | None = None
    """Column of the form of an item, such as a paraphrase."""

    repeat: str | None = None
    """Column of the number of a repeat, such as an epoch."""

    metric: str | None = None
    """Column of the metric's name, if each row contains one of several scores."""

    score: str | None = None
    """Column of the score; by default one of the usual names."""

    prediction: str | None = None
    """Column of the answer."""

    references: str | None = None
    """Column of the accepted answers: one, a list, or an object of SQuAD, TriviaQA or MKQA."""

    reference_separator: str | None = None
    """Separator of several accepted answers in a cell of text, such as "|"."""

    question: str | None = None
    """Column of the question."""

    error: str | None = None
    """Column of the reason for a missing answer."""

    cluster: Items[str] = ()
    """Columns that identify dependent items, such as the article; detected by default."""

    names: Items[str] = ()
    """Names of the models, one per file; for one table, its columns with the models' scores."""

    metrics: Items[str] = ()
    """Metrics to read; all by default."""

    filter: str | None = None
    """Filter of lm-evaluation-harness to read, such as strict-match; all by default."""


class PredictionSettings(Settings):
    """Settings for reading predictions."""

    item: Items[str] = ()
    """Columns that together contain the id or the text of the question; by default a usual name."""

    prediction: str | None = None
    """Column of the generated text; by default one of the usual names."""

    strip_prompt: bool = False
    """Remove the prompt if an output repeats it at its start."""

    missing: Literal["drop", "raise", "wrong"] = "drop"
    """Handling of blank or absent predictions: drop excludes them, raise raises an error, wrong
    counts them as incorrect."""

    in_order: str | None = None
    """Match rows without ids with the questions by their order. The value is the digest of the
    questions, which the error message without this option contains."""

    filter: str | None = None
    """Filter of samples of lm-evaluation-harness whose text is scored, such as strict-match; the
    unfiltered text by default."""


USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "task": ("task", "dataset", "benchmark", "task_name"),
    "model": ("model", "model_id", "model_name", "system"),
    "item": (
        *("item", "item_id", "fact", "fact_id", "triplet_id", "question_id", "id", "qid"),
        *("example_id", "instance_id", "sample_id", "doc_id", "problem_idx", "idx"),
        *("index", "pair_id", "target_id", "prompt_id", "question", "prompt", "task_id"),
    ),
    "form": ("form", "form_id", "paraphrase", "variant_id", "variant", "template_id", "condition"),
    "repeat": ("repeat", "epoch", "seed", "trial"),
    "metric": ("metric", "metric_name"),
    "score": (
        *("score", "correct", "is_correct", "verdict", "resolved", "hit", "exact_match", "em"),
        *("f1", "acc", "accuracy", "success", "passed", "reward"),
    ),
    "prediction": (
        *("prediction", "pred", "response", "output", "completion", "generation"),
        *("generated_text", "model_output", "text", "answer"),
    ),
    "references": ("references", "reference", "possible_answers", "answers", "target", "gold"),
    "question": ("question", "query", "input", "prompt"),
    "error": ERRORS,
}
"""Usual names of columns, most likely first."""

ITEMS: Final = tuple(name for name in USUAL["item"] if name not in USUAL["question"])
"""Names in `USUAL["item"]`, except for those of the text of a question."""

UNSURE: Final = ("text", "answer")
"""Names in `USUAL["prediction"]` whose columns contain the reference in some files. Such a column
is the prediction only if answers are to be scored."""

SOURCE: Final = "columns of the source"
"""Attribute of a frame: the columns of the tables from which it was read, for messages."""

FACTS: Final = ("fact", "fact_id", "triplet_id")
"""Names in `USUAL["item"]` that identify facts, which may have several questions."""


class TableColumns(NamedTuple):
    """Roles of the columns of a plain table."""

    roles: Mapping[str, str]
    """Column by role, for the roles that have one."""

    items: tuple[str, ...]
    """Columns that together name an item."""


def table_columns(
    names: Collection[str], given: ResultColumns, source: str, *, for_judging: bool = False
) -> TableColumns:
    """Assign roles to the columns of a plain table.

    Args:
        names: The columns that are there.
        given: Names of columns that the user gives.
        source: The file, for messages.
        for_judging: Whether the answers are to be scored. A column of `UNSURE` may then contain
            them, and a column of items is not required.

    Returns:
        The columns.

    Raises:
        ColumnNotFoundError: If a named column is missing, or no column names the items.
    """
    roles: dict[str, str] = {}
    for role, usual in USUAL.items():
        named = None if role == "item" else getattr(given, role)
        if named is not None:
            roles[role] = need_column(named, names, role, source)
            continue
        there = [find_column(name, names) for name in usual if for_judging or name not in UNSURE]
        free = [one for one in there if one and (role == "question" or one not in roles.values())]
        if free:
            roles[role] = free[0]
    item = roles.pop("item", None)
    if given.item:
        return TableColumns(
            roles, tuple(need_column(name, names, "item", source) for name in given.item)
        )
    if item is None:
        only = next(iter(names)) if len(names) == 1 else ""
        mark = next((mark for mark in ";\t|" if mark in only), None)
        remedy = "name it by `item`"
        if mark is not None:
            remedy = f"cells separated by {mark!r}: write them with commas (.csv) or tabs (.tsv)"
        elif for_judging:
            return TableColumns(roles, ())
        raise ColumnNotFoundError(
            f"{source}: no column identifies the items; searched for "
            f"{', '.join(map(shown, USUAL['item']))}; {remedy}. Columns: {first_names(names)}"
        )
    return TableColumns(roles, (item,))


def need_column(
    wanted: str, names: Collection[str], role: str, source: str, seen: Collection[str] = ()
) -> str:
    """Find a column that a user names.

    Args:
        wanted: Its name, which may differ from that in the file in case and separators.
        names: The columns that are there.
        role: The argument that names it.
        source: The file, for messages.
        seen: Names that the message lists, if they differ from `names`.

    Returns:
        The column.

    Raises:
        ColumnNotFoundError: If it is missing.
    """
    column = find_column(wanted, names)
    if column is None:
        raise ColumnNotFoundError(
            f"{source}: column {shown(wanted)} of `{role}` not found. Columns: "
            f"{first_names(seen or names)}"
        )
    return column


def reject_nested(names: Iterable[str], nested: Collection[str]) -> None:
    """Check that cells of columns are labels or lists of labels.

    Args:
        names: Columns of groups or clusters.
        nested: The columns that were excluded because they contain objects or long lists.

    Raises:
        DataError: If one of `names` is in `nested`.
    """
    for name in names:
        if column := find_column(name, nested):
            raise DataError(
                f"column {shown(column)} contains objects, or lists of lists or of more than 100 "
                "values, which are not labels; name a column of texts or numbers, or of lists of "
                "them"
            )


def need_labels(given: ResultColumns, n_files: int) -> None:
    """Check that there is one label per file.

    Raises:
        DataError: If their numbers differ.
    """
    if len(given.names) not in (0, n_files):
        raise DataError(
            f"`names` gives {', '.join(given.names)} for {n_files} files or tables; give one name "
            "per file, in their order"
        )
