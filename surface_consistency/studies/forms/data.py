"""Read items in their forms from rows of a user or of a known data set."""

import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pandas as pd

from surface_consistency.data.selection import first_few, pause_gc, spread
from surface_consistency.data.sources import Source, open_source
from surface_consistency.errors import (
    DataError,
    RecordError,
    SurfaceConsistencyWarning,
    UnscoredWarning,
)
from surface_consistency.reading import find_column, shown
from surface_consistency.results.columns import ITEMS, USUAL
from surface_consistency.rows.cells import (
    RowCells,
    answers_of,
    count_of,
    identifier_of,
    strings_of,
    text_of,
    unsplit_references,
)
from surface_consistency.rows.columns import reject_late_columns, resolve_columns
from surface_consistency.schemas import DataSource
from surface_consistency.studies.forms.layouts import (
    Layout,
    Wordings,
    find_preset,
    forms_of_row,
    layout_rows,
)

FORMS_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "item": ITEMS,
    "form": USUAL["form"],
    "question": USUAL["question"],
    "references": USUAL["references"],
    "choices": ("choices", "options"),
    "answer_index": ("answer_index",),
    "kind": ("kind",),
    "relation": ("relation",),
    "cluster": ("cluster",),
    "is_reference": ("is_reference",),
}
"""Fields of custom rows, and the names that their columns may have.

If there are several such columns, the one with the name of the field is read."""

_FIELDS: Final = {name: name for name in FORMS_COLUMNS}
_TRUE: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """Items in their forms."""

    rows: pd.DataFrame
    """One row per item and form: item, form, question, rest (the text after the answer in a
    sentence with a gap), references (a tuple), choices (a tuple, may be empty), kind, relation,
    cluster (None if unknown), is_reference (None if the source does not contain it) and source_row
    (number of the row of the source, from 0)."""

    source: DataSource
    """Source of the rows, and the digest of exactly these rows."""

    layout: Layout
    """Layout of the source, with the default prompt template and reference form."""

    wordings: Wordings
    """Whether forms are shared by all items, templates of a relation, or specific to each item."""

    needs_two: bool = True
    """Whether items with a single form are excluded; otherwise they have prompts but no pair."""

    def select(self, rows: pd.DataFrame) -> "Forms":
        """Select some of the rows.

        Args:
            rows: Some of the rows.

        Returns:
            The selection with its own digest.
        """
        rows = rows.reset_index(drop=True)
        described = _described(rows, self.source.id, self.source.revision)
        return replace(self, rows=rows, source=described)

    def limited(self, limit: int | None) -> "Forms":
        """Select a number of items, each in all its forms, spread over the relations.

        Args:
            limit: Maximum number of items; None for all.

        Returns:
            The selection.
        """
        if limit is None:
            return self
        relations = self.rows["relation"].fillna("")
        chosen = spread(zip(relations, self.rows["item"], strict=True), limit)
        return self.select(self.rows[self.rows["item"].isin(chosen)])


def load_forms(
    source: Source = "",
    *,
    preset: str | None = None,
    columns: Mapping[str, str] | None = None,
    reference_separator: str | None = None,
    wordings: Wordings | None = None,
    revision: str | None = None,
    split: str = "test",
) -> Forms:
    """Load items in their forms.

    Args:
        source: Hub id, folder, file, `datasets` object or rows as dictionaries, with the columns of
            `FORMS_COLUMNS`: item, form, question, and references (one or a list) or choices and
            answer_index, from 0. "sample" is the bundled sample. With a preset a folder, file
            or rows in its layout, or "" for its hub repository.
        preset: Layout of a known data set, see `presets`.
        columns: Field to column, if custom rows use other names.
        reference_separator: See `FormsSource`.
        wordings: See `FormsSource`.
        revision: Commit of the hub repository.
        split: Split of a repository, folder or dictionary of splits.

    Returns:
        The items that have two forms or more, in the order of the source.

    Raises:
        SourceNotFoundError: If the source is missing, gated or out of reach.
        ColumnNotFoundError: If a required column is missing, or two columns match a field.
        RecordError: If a row is invalid, or an item has two questions under one form.
        DataError: If no item has two forms, or the preset does not exist.

    Warns:
        UnscoredWarning: If rows have no accepted answer; they are excluded.
        SurfaceConsistencyWarning: If items with a single form were excluded, rows of one question
            were merged, or items have unequal numbers of forms; also for the licence of a preset
            and the note on its data.
    """
    if preset is not None:
        if columns:
            raise DataError("a preset names its columns; omit `column` or the preset")
        layout = find_preset(preset)
        opened = layout_rows(layout, source, revision=revision, split=split)
        cells = (
            (number, RowCells(_FIELDS, place, form))
            for number, (place, row) in enumerate(opened.rows)
            for form in forms_of_row(layout, row, place)
        )
    else:
        if source == "":
            raise DataError("no source is given; pass `source`, or `preset` for a known data set")
        layout = Layout()
        opened = open_source(source, revision=revision, split=split, sample="forms")
        required = ("item", "form", "question", ("references", "choices"))
        usual = {
            field: names if find_column(field, opened.columns) is None else (field,)
            for field, names in FORMS_COLUMNS.items()
        }
        fields = resolve_columns(
            opened.columns, usual, overrides=columns, required=required, spelled=_as_flag
        )
        late = reject_late_columns(opened.rows, opened.columns, usual, overrides=columns)
        cells = ((number, RowCells(fields, place, row)) for number, (place, row) in enumerate(late))
    records = _merged(cells, reference_separator)
    with pause_gc():
        return _forms(records, opened.id, opened.revision, layout, wordings)


def forms_of(
    rows: pd.DataFrame, *, name: str, revision: str | None, layout: Layout, needs_two: bool
) -> Forms:
    """Make items in forms from rows that were read elsewhere; all items have the same forms.

    Args:
        rows: Columns of `Forms.rows`; choices, rest and relation are optional.
        name: Name of the source.
        revision: Commit of the source.
        layout: Layout with the prompt template.
        needs_two: Whether items with a single form are excluded.

    Returns:
        The items.
    """
    missing: dict[str, Any] = {"choices": [()] * len(rows), "rest": "", "relation": None}
    rows = rows.assign(**{key: x for key, x in missing.items() if key not in rows})
    rows = rows.assign(references=rows["references"].map(tuple)).reset_index(drop=True)
    described = _described(rows, name, revision)
    return Forms(rows=rows, source=described, layout=layout, wordings="shared", needs_two=needs_two)


def _as_flag(field: str, column: str) -> str:
    """Return the command-line option that assigns a column to a field."""
    return f"`column` {field}={column}"


@dataclass(slots=True)
class _Merged:
    """Records by item and form, and the numbers of merged rows and of rows without an answer."""

    records: dict[tuple[str, str], dict[str, Any]]
    n_merged: int = 0
    n_unanswered: int = 0


def _merged(rows: Iterable[tuple[int, RowCells]], separator: str | None) -> _Merged:
    """Read numbered rows; merge the accepted answers of rows of one item, form and question."""
    merged = _Merged({})
    for number, cells in rows:
        record = _record(cells, separator) | {"source_row": number}
        if not record["references"]:
            merged.n_unanswered += 1
            continue
        known = merged.records.setdefault((record["item"], record["form"]), record)
        if known is record:
            continue
        if known["question"] != record["question"]:
            raise RecordError(
                f"{cells.place}: item {shown(record['item'])} already has another question under "
                f"form {shown(record['form'])} ({shown(known['question'])}); use one question per "
                "form of an item: rename one of the forms, or use different item ids"
            )
        merged.n_merged += 1
        for name in ("references", "choices"):
            known[name] = tuple(dict.fromkeys((*known[name], *record[name])))
    return merged


def _record(cells: RowCells, separator: str | None) -> dict[str, Any]:
    """Read one form of an item."""
    record: dict[str, Any] = {name: cells.needed(name, identifier_of) for name in ("item", "form")}
    record["question"] = cells.needed("question", text_of)
    answers = cells.read("references", partial(answers_of, separator=separator))
    choices = cells.read("choices", strings_of)
    index = cells.read("answer_index", count_of)
    if index is not None:
        if answers or index >= len(choices):
            raise RecordError(
                f"{cells.place}: answer_index {index} must be the index of the correct choice, "
                f"from 0, in a row without references; the row has {len(choices)} choices"
                + (" and references" if answers else "")
            )
        answers = (choices[index].strip(),)
    choices = tuple(choice.strip() for choice in choices)
    if choices and answers and not {*answers} & {*choices}:
        raise RecordError(
            f"{cells.place}: no accepted answer ({first_few(answers)}) is among the choices "
            f"({first_few(choices)})"
        )
    record |= {"references": answers, "choices": choices}
    record |= {name: cells.read(name, identifier_of) for name in ("kind", "relation", "cluster")}
    return record | {"is_reference": cells.read("is_reference", _flag_of)}


def _flag_of(value: object) -> bool | None:
    """Read a yes or no."""
    if isinstance(value, bool):
        return value
    text = identifier_of(value)
    if text is None:
        return None
    if text.casefold() not in _TRUE:
        raise ValueError("expected true or false")
    return _TRUE[text.casefold()]


def _forms(
    merged: _Merged, name: str, revision: str | None, layout: Layout, wordings: Wordings | None
) -> Forms:
    """Arrange the items, exclude those that cannot be compared, and warn about them."""
    rows = pd.DataFrame(list(merged.records.values()), columns=[*_FIELDS, "source_row"])
    rows = rows.drop(columns="answer_index").astype(object)
    rows = rows.where(rows.notna(), None)
    rows["choices"] = _without_correct_ones(rows)
    rows["question"], rows["rest"] = _gaps(rows["question"], layout.cloze)
    sizes = rows.groupby("item", sort=False)["form"].transform("size")
    single = list(rows.loc[sizes == 1, "item"])
    rows, sizes = rows[sizes > 1].reset_index(drop=True), sizes[sizes > 1]
    for category, note in _notes(merged, single, sizes, name, layout):
        warnings.warn(note, category, stacklevel=3)
    if rows.empty:
        raise DataError(f"no item of {name} has two forms with an accepted answer")
    has_relations = bool(rows["relation"].notna().all())
    chosen = wordings or layout.wordings or ("templates" if has_relations else "shared")
    if chosen == "templates" and not has_relations:
        raise DataError(
            "`wordings=templates` needs the relation of every item, but some rows have none; fill "
            "in the column relation, or pass `wordings=shared` or own"
        )
    rows["cluster"] = _clusters(rows, layout.reference)
    described = _described(rows, name, revision)
    return Forms(rows=rows, source=described, layout=layout, wordings=chosen)


def _notes(
    merged: _Merged, single: Sequence[str], sizes: pd.Series, name: str, layout: Layout
) -> Iterator[tuple[type[Warning], str]]:
    """Yield the warnings about the rows, with their categories."""
    if layout.licence or layout.note:
        licence = f"licence: {layout.licence}" if layout.licence else ""
        yield (
            SurfaceConsistencyWarning,
            f"{name}: " + ". ".join(filter(None, (licence, layout.note.rstrip(".")))),
        )
    if merged.n_unanswered:
        yield (
            UnscoredWarning,
            f"{merged.n_unanswered} rows of {name} have no accepted answer and are excluded",
        )
    references = [record["references"] for record in merged.records.values()]
    for sentence in unsplit_references(references):
        yield SurfaceConsistencyWarning, f"{name}: {sentence}"
    if merged.n_merged:
        yield (
            SurfaceConsistencyWarning,
            f"{merged.n_merged} rows of {name} repeat item, form and question of an earlier row; "
            "their answers are also accepted",
        )
    if single:
        yield (
            SurfaceConsistencyWarning,
            f"{name}: excluded because they have a single form: "
            f"{len(single)} {'item' if len(single) == 1 else 'items'} ({first_few(single)})",
        )
    if len(sizes) and sizes.min() < sizes.max():
        yield (
            SurfaceConsistencyWarning,
            f"items of {name} have from {sizes.min()} to {sizes.max()} forms; the proportion "
            "correct in all forms falls with their number; the page also has the proportion in "
            "equally many sampled forms",
        )


def _without_correct_ones(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """Remove the incorrect choices that another row of the same question accepts.

    If the forms of an item have equally many choices, as in translations, a choice that is removed
    in one form is removed in all. So the position of a choice has the same meaning in all forms.
    """
    if not rows["choices"].map(len).any():
        return list(rows["choices"])
    accepted: dict[tuple[str, str], set[str]] = {}
    keys = list(zip(rows["form"], rows["question"], strict=True))
    for key, answers in zip(keys, rows["references"], strict=True):
        accepted.setdefault(key, set()).update(answers)
    removed: dict[tuple[str, int], set[int]] = {}
    columns = (keys, rows["item"], rows["choices"], rows["references"])
    for key, item, choices, answers in zip(*columns, strict=True):
        others = accepted[key] - {*answers}
        places = {place for place, one in enumerate(choices) if one in others}
        removed.setdefault((item, len(choices)), set()).update(places)
    return [
        tuple(
            one
            for place, one in enumerate(choices)
            if one in answers or place not in removed[item, len(choices)]
        )
        for _, item, choices, answers in zip(*columns, strict=True)
    ]


def _gaps(questions: pd.Series, cloze: str) -> tuple[list[str], list[str]]:
    """Split sentences at their gaps into the texts before and after the gap."""
    if not cloze:
        return list(questions), [""] * len(questions)
    parts = [question.partition(cloze) for question in questions]
    return [before for before, _, _ in parts], [after.rstrip() for *_, after in parts]


def _clusters(rows: pd.DataFrame, reference: str) -> pd.Series:
    """Assign one cluster to each item: that of its reference form, or of its first form."""
    order = rows.assign(place=rows["form"] != reference).sort_values("place", kind="stable")
    first = order.drop_duplicates("item").set_index("item")["cluster"]
    return rows["item"].map(first.to_dict())


def _described(rows: pd.DataFrame, name: str, revision: str | None) -> DataSource:
    """Describe the rows by a digest of their questions, references and choices."""
    digest = hashlib.sha256()
    columns = ("item", "form", "question", "rest", "references", "choices")
    for values in zip(*(rows[column] for column in columns), strict=True):
        digest.update(json.dumps(values).encode())
    return DataSource(id=name, revision=revision, digest=digest.hexdigest(), n_questions=len(rows))
