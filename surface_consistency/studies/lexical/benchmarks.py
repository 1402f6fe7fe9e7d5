"""LAMBADA, PIQA, COPA, WinoGrande and four groups of BLiMP as instances with options.

| task | hub repository | folder in it | split |
|---|---|---|---|
| `lambada` | EleutherAI/lambada_openai | | test |
| `piqa` | baber/piqa | | validation |
| `copa` | aps/super_glue | copa | validation |
| `winogrande` | allenai/winogrande | winogrande_xl | validation |
| four groups of BLiMP | nyu-mll/blimp | one per paradigm | train |
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from surface_consistency.data.sources import Source, fetch_repository, is_hub_id, open_source
from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.reading import shown
from surface_consistency.rows.cells import RowCells, count_of, text_of
from surface_consistency.rows.columns import resolve_columns
from surface_consistency.schemas import DataSource
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.studies.lexical.records import BenchmarkInstance, BenchmarkName

BLIMP_PARADIGMS: Final[Mapping[str, tuple[str, ...]]] = {
    "determiner_noun_agreement": (
        "determiner_noun_agreement_1",
        "determiner_noun_agreement_2",
        "determiner_noun_agreement_irregular_1",
        "determiner_noun_agreement_irregular_2",
        "determiner_noun_agreement_with_adj_2",
        "determiner_noun_agreement_with_adj_irregular_1",
        "determiner_noun_agreement_with_adj_irregular_2",
        "determiner_noun_agreement_with_adjective_1",
    ),
    "subject_verb_agreement": (
        "distractor_agreement_relational_noun",
        "distractor_agreement_relative_clause",
        "irregular_plural_subject_verb_agreement_1",
        "irregular_plural_subject_verb_agreement_2",
        "regular_plural_subject_verb_agreement_1",
        "regular_plural_subject_verb_agreement_2",
    ),
    "anaphor_agreement": ("anaphor_gender_agreement", "anaphor_number_agreement"),
    "argument_structure": (
        "animate_subject_passive",
        "animate_subject_trans",
        "causative",
        "drop_argument",
        "inchoative",
        "intransitive",
        "passive_1",
        "passive_2",
        "transitive",
    ),
}
"""Paradigms of each group of BLiMP, which are the configurations of the hub (Warstadt et al., 2020,
table 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Instances of one task, or of several, task by task."""

    instances: tuple[BenchmarkInstance, ...]
    """The instances, in the source's order."""

    source: DataSource
    """Their source, and the digest of these instances."""

    def __repr__(self) -> str:
        """Return the source and the number of instances."""
        return f"<Benchmark {self.source.id!r}: {len(self.instances):,} instances>"


class _Layout(NamedTuple):
    """Layout of a task on the hub."""

    repository: str
    folders: tuple[str, ...]
    split: str
    columns: tuple[str, ...]
    instance: Callable[[RowCells, str, str | None], BenchmarkInstance]


def load_benchmark(
    task: BenchmarkName,
    source: Source | None = None,
    *,
    revision: str | None = None,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Benchmark:
    """Load a task.

    Args:
        task: Name of the task.
        source: Hub id, folder in the hub's layout, file, `datasets` object or rows as
            dictionaries; the hub's repository of the task if None. If a folder has subfolders for
            configurations, those of the task are read. For a group of BLiMP in one file or rows,
            the column UID names the paradigm.
        revision: Branch, tag or commit of a hub repository.
        split: Split; the one that lm-evaluation-harness uses if None.
        columns: Mapping of field to column, if the names differ from those on the hub.

    Returns:
        The instances. Their ids are their row numbers from 0, for BLiMP as PARADIGM/NUMBER.

    Raises:
        SourceNotFoundError: If the source, a paradigm or the split is missing.
        ColumnNotFoundError: If a column is missing.
        RecordError: If a row is invalid; the message names file, line and column. A row without a
            label, as in test splits with hidden labels, is invalid.
        DataError: If there are no rows, or the task is unknown.
    """
    if task not in _LAYOUTS:
        raise DataError(f"unknown task {shown(task)}; the tasks are {', '.join(_LAYOUTS)}")
    layout = _LAYOUTS[task]
    given: Source = layout.repository if source is None else source
    name = given if isinstance(given, str) else type(given).__name__
    found_revision = None
    folder = _folder(given)
    if folder is None and isinstance(given, str) and is_hub_id(given) and not Path(given).exists():
        folder, found_revision = fetch_repository(given, revision=revision)
        revision = None
    parts: list[tuple[str | None, Source]] = [(None, given if folder is None else folder)]
    if folder is not None and layout.folders:
        parts = _subfolders(folder, layout.folders, task)
    instances: list[BenchmarkInstance] = []
    for group, part in parts:
        opened = open_source(part, revision=revision, split=split or layout.split)
        names = {field: (field,) for field in layout.columns}
        if task in BLIMP_PARADIGMS and group is None:
            names["UID"] = ("UID",)
        fields = resolve_columns(opened.columns, names, overrides=columns, required=tuple(names))
        for number, (place, row) in enumerate(opened.rows):
            cells = RowCells(fields, place, row)
            try:
                instance = layout.instance(cells, str(number), group)
            except ValidationError as error:
                raise RecordError(f"{place}: {describe_validation_error(error)}") from error
            if task not in BLIMP_PARADIGMS or instance.group in BLIMP_PARADIGMS[task]:
                instances.append(instance.model_copy(update={"task": task}))
    if not instances:
        raise DataError(f"{name} has no instances of {task}; check the source and the column UID")
    if isinstance(given, os.PathLike):
        name = os.fspath(given)
    return Benchmark(
        instances=tuple(instances),
        source=DataSource(
            id=name, revision=found_revision, digest=_digest(instances), n_questions=len(instances)
        ),
    )


def _folder(source: Source) -> Path | None:
    """Return the source as a path if it is a folder."""
    if isinstance(source, str | os.PathLike) and Path(source).expanduser().is_dir():
        return Path(source).expanduser()
    return None


def _subfolders(folder: Path, wanted: Sequence[str], task: str) -> list[tuple[str | None, Source]]:
    """Find the configurations of a task; a folder without subfolders for them contains the rows."""
    present = [name for name in wanted if (folder / name).is_dir()]
    if not present:
        return [(wanted[0] if folder.name == wanted[0] else None, folder)]
    missing = [name for name in wanted if name not in present]
    if missing:
        raise SourceNotFoundError(
            f"{folder} lacks the configurations {', '.join(missing)} of {task}; download the whole "
            "repository"
        )
    return [(name, folder / name) for name in present]


def _digest(instances: Sequence[BenchmarkInstance]) -> str:
    """Return the SHA-256 digest of instances."""
    digest = hashlib.sha256()
    for instance in sorted(instances, key=lambda item: (item.group or "", item.id)):
        digest.update(json.dumps(instance.model_dump(mode="json"), sort_keys=True).encode())
    return digest.hexdigest()


def _label(cells: RowCells, name: str) -> int:
    """Read the position of the correct option."""
    place = cells.read(name, count_of)
    if place is None:
        raise RecordError(
            f"{cells.place}: column {shown(cells.columns[name])} has no label; use a split with "
            "published labels, such as validation"
        )
    return place


def _lambada(cells: RowCells, number: str, group: str | None) -> BenchmarkInstance:
    """Split a passage into context and last word."""
    text = cells.needed("text", text_of)
    context, _, word = text.rpartition(" ")
    if not context or not word:
        raise RecordError(
            f"{cells.place}: column {shown(cells.columns['text'])} must be a passage that ends in "
            f"a separate word, got {shown(text[-40:])}"
        )
    return BenchmarkInstance(
        id=number, task="lambada", kind="functional", context=context, options=(word,), correct=0
    )


def _two_options(
    cells: RowCells, number: str, task: str, context: str, options: tuple[str, str], label: int
) -> BenchmarkInstance:
    """Read an instance with two options from the columns of its context and options."""
    first, second = (cells.needed(name, text_of) for name in options)
    return BenchmarkInstance(
        id=number,
        task=task,
        kind="functional",
        context=cells.needed(context, text_of),
        options=(first, second),
        correct=label,
    )


def _piqa(cells: RowCells, number: str, group: str | None) -> BenchmarkInstance:
    """Read a goal and two solutions."""
    label = _label(cells, "label")
    return _two_options(cells, number, "piqa", "goal", ("sol1", "sol2"), label)


def _copa(cells: RowCells, number: str, group: str | None) -> BenchmarkInstance:
    """Read a premise and two causes or effects."""
    relation = cells.needed("question", text_of)
    if relation not in ("cause", "effect"):
        raise RecordError(
            f"{cells.place}: column {shown(cells.columns['question'])} must be cause or effect, "
            f"got {shown(relation)}"
        )
    label = _label(cells, "label")
    instance = _two_options(cells, number, "copa", "premise", ("choice1", "choice2"), label)
    return instance.model_copy(update={"group": relation})


def _winogrande(cells: RowCells, number: str, group: str | None) -> BenchmarkInstance:
    """Read a sentence with a gap and two fillers."""
    sentence = cells.needed("sentence", text_of)
    answer = cells.read("answer", text_of)
    if "_" not in sentence or answer not in ("1", "2"):
        raise RecordError(
            f"{cells.place}: a row must have a sentence with _ and the answer 1 or 2 (missing in "
            f"test rows), got {shown(sentence[:60])} and {shown(answer)}"
        )
    label = int(answer) - 1
    return _two_options(cells, number, "winogrande", "sentence", ("option1", "option2"), label)


def _blimp(cells: RowCells, number: str, group: str | None) -> BenchmarkInstance:
    """Read a minimal pair, the acceptable sentence first."""
    paradigm = cells.needed("UID", text_of) if group is None else group
    return BenchmarkInstance(
        id=f"{paradigm}/{number}",
        task="blimp",
        kind="formal",
        options=(cells.needed("sentence_good", text_of), cells.needed("sentence_bad", text_of)),
        correct=0,
        group=paradigm,
    )


_LAYOUTS: Final[Mapping[str, _Layout]] = {
    "lambada": _Layout("EleutherAI/lambada_openai", ("default",), "test", ("text",), _lambada),
    "piqa": _Layout(
        "baber/piqa", ("plain_text",), "validation", ("goal", "sol1", "sol2", "label"), _piqa
    ),
    "copa": _Layout(
        "aps/super_glue",
        ("copa",),
        "validation",
        ("premise", "choice1", "choice2", "question", "label"),
        _copa,
    ),
    "winogrande": _Layout(
        "allenai/winogrande",
        ("winogrande_xl",),
        "validation",
        ("sentence", "option1", "option2", "answer"),
        _winogrande,
    ),
    **{
        group: _Layout(
            "nyu-mll/blimp", paradigms, "train", ("sentence_good", "sentence_bad"), _blimp
        )
        for group, paradigms in BLIMP_PARADIGMS.items()
    },
}
