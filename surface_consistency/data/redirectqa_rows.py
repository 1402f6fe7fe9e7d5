"""Conversion of rows in RedirectQA's columns to one frame of questions.

The cells of all rows are read into a frame. The rows of a fact are then merged, relations and
templates are determined, and rows that contradict each other raise an error with their places.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency import taxonomy
from surface_consistency.data.questions import question_id, typed_questions
from surface_consistency.data.redirectqa_wordings import (
    infer_relation,
    relation_name,
    resolve_templates,
)
from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import first_names, shown
from surface_consistency.rows.cells import (
    ParsedCells,
    RowCells,
    answers_of,
    count_of,
    identifier_of,
    strings_of,
    text_of,
)
from surface_consistency.rows.readers import Place, Row
from surface_consistency.text import surface_from_title

_CELLS: Final[Mapping[str, Callable[[object], Any]]] = {
    "triple_id": identifier_of,
    "surface": text_of,
    "categories": strings_of,
    "redirect_title": text_of,
    "template": identifier_of,
    "question": text_of,
    "subject_id": identifier_of,
    "subject_title": text_of,
    "subject_aliases": strings_of,
    "pageviews": count_of,
    "relation": identifier_of,
    "object_id": identifier_of,
    "object": text_of,
    "object_title": text_of,
    "object_aliases": strings_of,
    "references": answers_of,
}
"""Reader of each field of `REDIRECTQA_COLUMNS`."""

_OF_FACT: Final = tuple(_CELLS)[6:]
"""Fields that describe the fact."""

_IDENTIFYING: Final = (
    *("subject_id", "subject_name", "relation", "object_id", "object_name", "references"),
)
"""Columns in which the rows of a fact must not differ."""

_ONE_FACT: Final = "one triple id must identify one fact"
_OBJECTS: Final = dict.fromkeys(
    ("object_name", "references"),
    " with all its accepted answers; rows that vary the name of the object are not for this study, "
    "which compares names of the subject",
)
_NEEDED: Final = ("triple_id", "surface")
"""Fields that must not be empty in any row."""

_BATCH: Final = 1024
_NO_CELL: Final = hash(repr(None))


def read_questions(
    rows: Iterable[Row], fields: Mapping[str, str], *, ask_by_template: bool = False
) -> tuple[pd.DataFrame, int, npt.NDArray[np.int64]]:
    """Read rows as questions.

    Args:
        rows: Rows with their places, at least one.
        fields: Field of `REDIRECTQA_COLUMNS` to the source's column, for the fields that it has.
        ask_by_template: Whether questions are written by the taxonomy's templates for rows without
            one.

    Returns:
        The questions, columns of `QUESTION_COLUMNS`, in order; the number of rows; and the number
        of the row of each question, from 0. A row that repeats another in all columns adds no
        question.

    Raises:
        RecordError: If a cell has an invalid type or is not Unicode, or a relation or question is
            neither given nor can be inferred; names place, column and value.
        DataError: If rows of one fact contradict each other, two rows are the same question but
            differ, or a fact has two canonical names.
    """
    raw, places = _read_cells(rows, fields)
    made = _stated_facts(raw, fields, places)
    _merge_facts(made, places)
    is_canonical = [
        taxonomy.CANONICAL_LABEL in labels
        or (not labels and title is None and _is_title(text, subject))
        for labels, title, text, subject in zip(
            *(raw[n] for n in ("categories", "redirect_title", "surface", "subject_title")),
            strict=True,
        )
    ]
    made["surface"], made["is_canonical"] = raw["surface"], is_canonical
    made["redirect_title"] = raw["redirect_title"].mask(made["is_canonical"], None)
    kinds = [
        ((), ()) if is_named else _parsed_categories(labels)
        for labels, is_named in zip(raw["categories"], is_canonical, strict=True)
    ]
    for column, values in zip(("categories", "types"), zip(*kinds, strict=True), strict=True):
        made[column] = _column(values)
    _infer_relations(made, raw["question"], places)
    _name_subjects(made)
    made["template"] = resolve_templates(
        made[["relation", "surface"]].assign(question=raw["question"], template=raw["template"])
    )
    made["question"] = _questions(made, raw["question"], places, fields, ask_by_template)
    titles = made["redirect_title"].mask(made["is_canonical"], taxonomy.CANONICAL_LABEL)
    names = (made["item"], made["template"], made["surface"], titles)
    made["id"] = _column(map(question_id, *names))
    again = made["id"].duplicated()
    if again.any():
        compared = {fields[name]: raw[name] for name in _OF_FACT if name in fields}
        compared |= {name: raw[name] for name in raw.columns[len(_CELLS) :]}
        _check_duplicates(made, compared, places)
        made = made[~again]
    _check_canonical(made, places)
    return typed_questions(made.reset_index(drop=True)), len(raw), made.index.to_numpy()


def _read_cells(rows: Iterable[Row], fields: Mapping[str, str]) -> tuple[pd.DataFrame, list[Place]]:
    """Read the cells of all rows: a column per field, then a hash per cell of unread columns."""
    parsed = {name: ParsedCells(parse) for name, parse in _CELLS.items() if name in fields}
    columns: dict[str, list[Any]] = {name: [] for name in parsed}
    unread: dict[str, array[int]] = {}
    places: list[Place] = []
    of_fields = frozenset(fields.values())
    rows = iter(rows)
    while batch := [*islice(rows, _BATCH)]:
        cells_of = [row for _, row in batch]
        try:
            for name, known in parsed.items():
                column = fields[name]
                values = known.of([row.get(column) for row in cells_of])
                if name in _NEEDED and None in values:
                    raise ValueError
                columns[name] += values
        except ValueError:
            # The message names the first invalid row, and its first column.
            for place, row in batch:
                cells = RowCells(fields, place, row)
                for name in parsed:
                    (cells.needed if name in _NEEDED else cells.read)(name, _CELLS[name])
            raise
        for name in dict.fromkeys(chain.from_iterable(cells_of)):
            if name not in of_fields and name not in unread:
                unread[name] = array("q", [_NO_CELL]) * len(places)
        for name, sums in unread.items():
            sums.extend(hash(repr(row.get(name))) for row in cells_of)
        places += [place for place, _ in batch]
    empty = {name: [parse(None)] * len(places) for name, parse in _CELLS.items()}
    raw = pd.DataFrame({name: _column(values) for name, values in (empty | columns).items()})
    return raw.assign(**{name: np.array(sums) for name, sums in unread.items()}), places


def _stated_facts(
    raw: pd.DataFrame, fields: Mapping[str, str], places: Sequence[Place]
) -> pd.DataFrame:
    """Return the cells of each row about its fact, with an id for facts that no column names."""
    has_answers = "references" in fields

    @cache
    def accepted(name: str | None, listed: tuple[str, ...]) -> tuple[str, ...]:
        own = tuple(map(str.strip, listed))
        named = [] if name is None else [name.strip()]
        return tuple(dict.fromkeys((*(n for n in named if n in own or not has_answers), *own)))

    relation = cache(relation_name)
    made = raw[["subject_id", "subject_aliases", "object_id", "object_aliases"]].assign(
        subject_name=raw["subject_title"],
        subject_pageviews=raw["pageviews"],
        relation=_column(name and relation(name) for name in raw["relation"]),
        object_name=_column(
            name or (title and surface_from_title(title))
            for name, title in zip(raw["object"], raw["object_title"], strict=True)
        ),
    )
    listed = raw["references" if has_answers else "object_aliases"]
    made["references"] = _column(map(accepted, made["object_name"], listed))
    made["item"] = raw["triple_id"] if "triple_id" in fields else _own_ids(made, places)
    return made


def _own_ids(made: pd.DataFrame, places: Sequence[Place]) -> pd.Series:
    """Identify facts by subject, relation and object."""
    subjects = made["subject_id"].where(made["subject_id"].notna(), made["subject_name"])
    objects = made["object_id"].where(made["object_id"].notna(), made["object_name"])
    things = (
        thing or "|".join(own) for thing, own in zip(objects, made["references"], strict=True)
    )
    parts = list(zip(subjects, made["relation"], things, strict=True))
    for row, identity in enumerate(parts):
        if not all(identity):
            raise RecordError(
                f"{places[row]}: without a column of triple ids a row needs subject, relation and "
                f"object, got {shown(identity)}"
            )
    return _column(map("|".join, parts))


def _merge_facts(made: pd.DataFrame, places: Sequence[Place]) -> None:
    """Merge the cells of the rows of each fact; raise an error for rows that contradict."""
    facts, names = pd.factorize(made["item"])
    for column in made.columns.drop("item"):
        values = made[column].to_numpy()
        stated = np.flatnonzero([value is not None and value != () for value in values])
        # Of repeated indices the last one is assigned, which is the first row of a fact here.
        first = np.full(len(names), -1)
        first[facts[stated[::-1]]] = stated[::-1]
        row_of = first[facts]
        of_fact = np.where(row_of < 0, values, values[row_of])
        if column in _IDENTIFYING:
            for row in stated[values[stated] != of_fact[stated]]:
                if _key(values[row]) != _key(of_fact[row]):
                    raise DataError(
                        f"{places[row_of[row]]} and {places[row]} belong to one fact, "
                        f"{shown(made['item'][row])}, but differ in {column}: "
                        f"{shown(of_fact[row])} and {shown(values[row])}; "
                        f"{_ONE_FACT}{_OBJECTS.get(column, '')}"
                    )
        made[column] = _column(of_fact)


def _infer_relations(made: pd.DataFrame, questions: pd.Series, places: Sequence[Place]) -> None:
    """Infer the relations that no column names from the questions of their facts."""
    if not (missing := made["relation"].isna()).any():
        return
    facts, surfaces = made.loc[missing, "item"], made.loc[missing, "surface"]
    relations = [
        None if question is None else infer_relation(question, surface)
        for question, surface in zip(questions[missing], surfaces, strict=True)
    ]
    inferred = pd.DataFrame({"item": facts, "relation": np.array(relations, dtype=object)})
    known = inferred.dropna().drop_duplicates("item").set_index("item")["relation"]
    for row in np.flatnonzero(missing & ~made["item"].isin(known.index)).tolist():
        raise RecordError(
            f"{places[row]}: fact {shown(made['item'][row])} has no relation, and its questions "
            "follow no known template; name the column of the relation with "
            "columns={'relation': 'NAME'}"
        )
    made.loc[missing, "relation"] = facts.map(known)


def _name_subjects(made: pd.DataFrame) -> None:
    """Name subjects without a title by their canonical surface, otherwise by the first one."""
    missing = made["subject_name"].isna()
    rows = made[missing]
    names = dict(zip(rows["item"][::-1], rows["surface"][::-1], strict=True))
    rows = rows[rows["is_canonical"]]
    names |= dict(zip(rows["item"], rows["surface"], strict=True))
    made.loc[missing, "subject_name"] = made.loc[missing, "item"].map(names)
    made["object_name"] = _column(
        name or next(iter(answers), None) or thing or "unknown"
        for name, answers, thing in zip(
            made["object_name"], made["references"], made["object_id"], strict=True
        )
    )


def _questions(
    made: pd.DataFrame,
    questions: pd.Series,
    places: Sequence[Place],
    fields: Mapping[str, str],
    ask_by_template: bool,
) -> pd.Series:
    """Write the questions of rows without one by templates, if requested."""
    worded = questions.copy()
    for row in np.flatnonzero(questions.isna()).tolist():
        if not ask_by_template:
            raise RecordError(
                f"{places[row]}: column {shown(fields['question'])} is empty, and no question is "
                "generated by default: fill it in, or set `ask_by_template=True` to write it with "
                "the templates of this package"
            )
        relation = made["relation"][row]
        if relation not in taxonomy.RELATIONS:
            raise RecordError(
                f"{places[row]}: no question, and the taxonomy has no template for relation "
                f"{shown(relation)}; name the column of the question with columns={{'question': "
                "'NAME'}}"
            )
        worded[row] = taxonomy.RELATIONS[relation].question(
            made["surface"][row], template=made["template"][row]
        )
    return worded


def _check_duplicates(
    made: pd.DataFrame, compared: Mapping[str, pd.Series], places: Sequence[Place]
) -> None:
    """Raise an error for two different rows of one fact, name and template."""
    codes, _ = pd.factorize(made["id"])
    again = np.flatnonzero(made["id"].duplicated())
    first = np.flatnonzero(~made["id"].duplicated())[codes[again]]

    def differing(column: pd.Series) -> npt.NDArray[np.bool_]:
        values = column.to_numpy()
        return np.asarray(values[first] != values[again], dtype=bool)

    for column in ("question", "is_canonical", "categories"):
        for one, other in zip(first[at := differing(made[column])], again[at], strict=True):
            named = "question" if column == "question" else "categories"
            raise DataError(
                f"{_both(made, one, other, places, 'are the same fact')}, but differ in {named}: "
                f"{shown(made[named][one])} and {shown(made[named][other])}; remove one, or name "
                "the column that distinguishes them with columns={'template': 'NAME'}"
            )
    unequal = {name: differing(column) for name, column in compared.items()}
    for place in np.flatnonzero(np.logical_or.reduce([*unequal.values()])):
        names = first_names([name for name, at in unequal.items() if at[place]])
        one, other = first[place], again[place]
        raise DataError(
            f"{_both(made, one, other, places, 'would be one question, fact')}, but they differ in "
            f"{names}; if one of these columns distinguishes the questions, name it with "
            "columns={'question': 'NAME'} or columns={'template': 'NAME'}, else drop the column or "
            "all rows of a question but one"
        )


def _both(made: pd.DataFrame, one: int, other: int, places: Sequence[Place], what: str) -> str:
    """Name two rows of one question."""
    row = made.loc[other]
    return (
        f"{places[one]} and {places[other]} {what} {shown(row['item'])}, surface "
        f"{shown(row['surface'])} and template {shown(row['template'])}"
    )


def _check_canonical(made: pd.DataFrame, places: Sequence[Place]) -> None:
    """Raise an error for a second canonical name of one fact and template."""
    named = made[made["is_canonical"]]
    keys = ["item", "template"]
    for other in named.index[named.duplicated(keys)]:
        row = named.loc[other]
        one = named.index[(named[keys] == row[keys]).all(axis=1)][0]
        raise DataError(
            f"{places[one]} and {places[other]} are both canonical for fact {shown(row['item'])}, "
            f"template {shown(row['template'])}: {shown(named['surface'][one])} and "
            f"{shown(row['surface'])}; a fact has one canonical name"
        )


def _column(values: Iterable[Any]) -> pd.Series:
    """Make a column of plain Python values, tuples and None among them."""
    listed = list(values)
    return pd.Series(np.fromiter(listed, dtype=object, count=len(listed)), dtype=object)


def _key(value: str | tuple[str, ...]) -> str | frozenset[str]:
    """Return a key of titles that ignores underscores, or of answers that ignores their order."""
    return value.replace("_", " ") if isinstance(value, str) else frozenset(value)


@cache
def _parsed_categories(labels: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Spell categories as the taxonomy does, and name their types."""
    parsed = [(label, taxonomy.parse_category(label)) for label in labels]
    spelled = tuple(dict.fromkeys(known.label if known else label for label, known in parsed))
    return spelled, taxonomy.types_of(spelled) or (taxonomy.UNKNOWN_TYPE,)


def _is_title(text: str, title: str | None) -> bool:
    """Return whether a surface is the article's title, with or without its parenthesis."""
    return title is None or text in {title, title.replace("_", " "), surface_from_title(title)}
