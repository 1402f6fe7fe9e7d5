"""RedirectQA: published rows to questions and canonical-redirect pairs."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.compute as pc

from surface_consistency.data.selection import (
    chosen_names,
    first_few,
    pause_gc,
    repeated_rows,
    spread,
)
from surface_consistency.data.sources import Source, card_language, open_source
from surface_consistency.errors import (
    IncompletePairWarning,
    SurfaceConsistencyWarning,
    UnknownCategoryWarning,
    UnscoredWarning,
)
from surface_consistency.rows.columns import (
    REDIRECTQA_COLUMNS,
    refuse_late_columns,
    resolve_columns,
)
from surface_consistency.rows.readers import python_values
from surface_consistency.schemas import CanonicalRedirectPair, DataSource, QuestionRealization
from surface_consistency.studies.redirectqa.question_table import (
    QuestionTable,
    pair_records,
    unanswerable,
)
from surface_consistency.studies.redirectqa.release import check_category_types
from surface_consistency.studies.redirectqa.rows import RedirectQARows
from surface_consistency.text import guess_language

SAMPLE_ID: Final = "redirectqa-sample"
"""Name of the bundled sample in manifests, wherever the package is installed."""

SAMPLE_PATH: Final = Path(__file__).with_name("sample")
"""Folder of the bundled sample, in the hub's layout."""

_LOOKED_AT: Final = 2_000

_REQUIRED: Final = (
    "surface",
    ("triple_id", "subject_id", "subject_title"),
    ("categories", "redirect_title"),
    ("answers", "object_aliases"),
)
_REMEDIES: Final = {
    "question": ". To ask every question in the words of this package's templates instead, which "
    "are those of PopQA and one paraphrase, set `ask_by_template=True`",
    "answers": ". To accept the object's name alone, name its column there",
}


@dataclass(frozen=True, kw_only=True)
class RedirectQA:
    """Questions of RedirectQA and the pairs that the consistency analysis compares.

    They are kept as columns; the records are made when they are asked for.
    """

    table: QuestionTable
    """All questions and their facts, in the source's order."""

    source: DataSource
    """Where the questions came from, and the digest of exactly these."""

    card_language: str | None = None
    """The one language that the source's card names; None where it names none or several."""

    @cached_property
    def language(self) -> str | None:
        """Code of the language that the questions are asked in; None where nothing tells.

        Their own words and letters tell it where they leave no doubt (`text.guess_language`), else
        the card of the source.
        """
        questions = self.table.questions["question"].slice(0, _LOOKED_AT)
        return guess_language(python_values(questions)) or self.card_language

    def __repr__(self) -> str:
        """Say what it holds, not all of it."""
        n_pairs = len(self.table.pair()[0])
        return f"<RedirectQA {self.source.id!r}: {len(self.table):,} questions, {n_pairs:,} pairs>"

    @classmethod
    def from_questions(
        cls, questions: Sequence[QuestionRealization], *, source: str, revision: str | None = None
    ) -> "RedirectQA":
        """Pair questions that are records already.

        Args:
            questions: Questions with unique ids.
            source: Where they came from, for manifests.
            revision: Commit of the hub repository; None elsewhere.

        Returns:
            The questions with their pairs.
        """
        return cls.from_table(
            QuestionTable.from_records(questions), source=source, revision=revision
        )

    @classmethod
    def from_table(
        cls,
        table: QuestionTable,
        *,
        source: str,
        revision: str | None = None,
        card_language: str | None = None,
    ) -> "RedirectQA":
        """Describe questions that are columns already.

        Args:
            table: Questions with unique ids.
            source: Where they came from, for manifests.
            revision: Commit of the hub repository; None elsewhere.
            card_language: The language that the source's card names.

        Returns:
            The questions with their pairs.
        """
        return cls(
            table=table,
            source=table.describe(source=source, revision=revision),
            card_language=card_language,
        )

    @cached_property
    def questions(self) -> tuple[QuestionRealization, ...]:
        """All question realisations, in the source's order."""
        with pause_gc():
            return tuple(self.table.records())

    @cached_property
    def pairs(self) -> tuple[CanonicalRedirectPair, ...]:
        """One for each redirect question whose fact has a canonical one in the same template."""
        canonical, redirect, _ = self.table.pair()
        return pair_records(self.questions, canonical, redirect)

    @cached_property
    def unpaired(self) -> tuple[QuestionRealization, ...]:
        """Redirect questions without a canonical one; they are in `questions` too."""
        return tuple(self.questions[row] for row in self.table.pair()[2])

    def select(
        self,
        *,
        templates: str | Iterable[str] | None = None,
        relations: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> "RedirectQA":
        """Keep a part of the questions; pairs stay whole.

        Args:
            templates: Templates to keep; all when None.
            relations: Relations to keep; all when None.
            limit: Keep so many facts (of those templates and relations), each with all its names
                and wordings, spread over the relations: the first fact of each relation, relations
                in order of appearance, then the second of each, and so on; all when None.

        Returns:
            The part in the order of the whole, with a digest of its own.

        Raises:
            ValueError: If a template or relation is not in the data, or `limit` is below 1.
        """
        columns = [
            python_values(self.table.column(name)) for name in ("template", "relation", "fact_id")
        ]
        wanted_templates = chosen_names(templates, "templates", columns[0])
        wanted_relations = chosen_names(relations, "relations", columns[1])
        chosen = [
            (row, relation, fact)
            for row, (template, relation, fact) in enumerate(zip(*columns, strict=True))
            if template in wanted_templates and relation in wanted_relations
        ]
        if limit is not None:
            if limit < 1:
                raise ValueError(f"limit counts facts and must be at least 1, got {limit}")
            chosen_facts = spread(((relation, fact) for _, relation, fact in chosen), limit)
            chosen = [item for item in chosen if item[2] in chosen_facts]
        rows = np.array([row for row, _, _ in chosen], dtype=np.int64)
        return RedirectQA.from_table(
            self.table.take(rows),
            source=self.source.id,
            revision=self.source.revision,
            card_language=self.card_language,
        )


def load_redirectqa(
    source: Source = "naist-nlp/RedirectQA",
    *,
    revision: str | None = None,
    split: str = "test",
    columns: Mapping[str, str] | None = None,
    ask_by_template: bool = False,
) -> RedirectQA:
    """Load RedirectQA, release v1.0.0 or v0.1.0, or rows of your own in such columns.

    No column is guessed by another name than those of `REDIRECTQA_COLUMNS`, and nothing that a
    source lacks is filled in unasked.

    Canonical rows are those whose categories contain "__MAIN__", or that have neither category nor
    redirect title and ask under the article's title. Categories get the taxonomy's spelling.
    Templates are named "original" (the question is PopQA's template with the surface in it) and
    "paraphrase", whatever the source calls them. A relation that no column names is told from the
    questions. Accepted answers lose the white space around them. Rows that repeat another to the
    letter, in all columns, are dropped and counted; rows that would be one question and differ in
    a column that is not read are refused, with the names of these columns.

    Args:
        source: Hub id, folder in the hub's layout, file, `datasets` object, or rows as
            dictionaries; see `open_source`. "sample" is the bundled sample, where no file or
            folder has that name.
        revision: Branch, tag or commit of the hub repository; pin it in work to be repeated.
        split: Split of a repository, folder or dictionary of splits.
        columns: Field to column, where a source uses names that `REDIRECTQA_COLUMNS` does not list,
            such as `{"question": "prompt_text"}`.
        ask_by_template: Whether rows without a question are asked in the words of the taxonomy's
            templates.

    Returns:
        Questions, pairs, and redirects without a canonical question.

    Raises:
        SourceNotFoundError: If the source or the split is not there or cannot be reached.
        ColumnNotFoundError: If a needed column is not found, or `columns` names a wrong one.
        RecordError: If a row is broken, or a column that would be used appears only after the
            first thousand rows; names file, line, column and value.
        DataError: If rows contradict each other, would be one question but differ in a column that
            is not read, or there are none.

    Warns:
        IncompletePairWarning: If redirects have no canonical question.
        UnknownCategoryWarning: If categories are outside the taxonomy; they are kept.
        UnscoredWarning: If facts have no accepted answer; they are kept.
        SurfaceConsistencyWarning: If repeated rows were dropped, facts list no aliases of their
            object, or the source's own table of categories differs from the taxonomy.
    """
    if source == "sample" and not Path(source).exists():
        if columns or revision or ask_by_template:
            raise ValueError(
                '"sample" is the bundled sample, whose columns are known: leave columns, revision '
                "and ask_by_template out, or name a file"
            )
        return load_sample()
    opened = open_source(source, revision=revision, split=split)
    fields = resolve_columns(
        opened.columns,
        REDIRECTQA_COLUMNS,
        overrides=columns,
        required=(*_REQUIRED, "relation" if ask_by_template else "question"),
        remedies=_REMEDIES,
    )
    if opened.folder is not None:
        check_category_types(opened.folder)
    rows = RedirectQARows(fields, ask_by_template=ask_by_template)
    late = refuse_late_columns(opened.rows, opened.columns, REDIRECTQA_COLUMNS, overrides=columns)
    with pause_gc():
        rows.extend(late)
        data = RedirectQA.from_table(
            rows.build(),
            source=opened.id,
            revision=opened.revision,
            card_language=card_language(opened.folder),
        )
    for category, message in _notes(data, rows):
        warnings.warn(message, category, stacklevel=2)
    return data


def load_sample() -> RedirectQA:
    """Load the bundled sample, a small set of real facts for trying things out, not for results.

    It needs neither network nor cache nor the `datasets` library.

    Returns:
        Questions over all 16 relations with redirects in all 33 categories, and their pairs.

    Examples:
        >>> sample = load_sample()
        >>> len({question.triple.relation for question in sample.questions})
        16
    """
    data = load_redirectqa(SAMPLE_PATH / "test.jsonl")
    return replace(data, source=data.source.model_copy(update={"id": SAMPLE_ID}))


def _notes(data: RedirectQA, rows: RedirectQARows) -> Iterator[tuple[type[Warning], str]]:
    """Say what a user should know about the rows, each once a load."""
    source = data.source.id
    if rows.foreign_categories:
        counts = sorted(rows.foreign_categories.items(), key=lambda item: (-item[1], item[0]))
        yield (
            UnknownCategoryWarning,
            f"{source} has redirect categories outside the taxonomy's 33 (rows in parentheses): "
            f"{', '.join(f'{label} ({count})' for label, count in counts)}; they are kept, with "
            'type "unknown"',
        )
    if note := repeated_rows(source, rows.n_rows - len(data.table)):
        yield SurfaceConsistencyWarning, note
    if len(data.table.pair()[2]):
        listed = [f"{q.surface.text!r} (fact {q.triple.id}, {q.template})" for q in data.unpaired]
        yield (
            IncompletePairWarning,
            f"{len(listed)} redirect questions of {source} have no canonical question of the same "
            f"fact and template: {first_few(listed)}; they are in `.questions` and `.unpaired` but "
            "in no pair",
        )
    if facts := rows.name_only_facts():
        yield (
            SurfaceConsistencyWarning,
            f"{len(facts)} facts of {source} list no aliases of their object (facts "
            f"{first_few(facts)}); the object's name alone is accepted as answer: fill in the "
            "aliases if it has others",
        )
    without = np.flatnonzero(pc.equal(pc.list_value_length(data.table.column("answers")), 0))
    if note := unanswerable(source, data.table.column("fact_id", without).to_pylist()):
        yield UnscoredWarning, note
