"""RedirectQA: questions and canonical-redirect pairs from the published rows."""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.data.questions import (
    describe_questions,
    plain_values,
    question_frame,
    question_records,
    unanswerable,
)
from surface_consistency.data.redirectqa_release import check_category_types
from surface_consistency.data.redirectqa_rows import read_questions
from surface_consistency.data.selection import (
    chosen_names,
    first_few,
    pause_gc,
    repeated_rows,
    spread,
)
from surface_consistency.data.sources import Source, card_language, open_source
from surface_consistency.errors import DataWarning, SurfaceConsistencyWarning, UnscoredWarning
from surface_consistency.reading import shown
from surface_consistency.rows.columns import (
    REDIRECTQA_COLUMNS,
    reject_late_columns,
    resolve_columns,
)
from surface_consistency.schemas import DataSource, QuestionRealization
from surface_consistency.taxonomy import CATEGORIES
from surface_consistency.text import guess_language

_N_FIRST: Final = 2_000

_REQUIRED: Final = (
    "surface",
    ("triple_id", "subject_id", "subject_title"),
    ("categories", "redirect_title"),
    ("references", "object_aliases"),
)
_REMEDIES: Final = {
    "question": ". To write every question with the templates of this package instead (those of "
    "PopQA and one paraphrase), set `ask_by_template=True`",
    "references": ". To accept only the object's name, name its column there",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class RedirectQA:
    """Questions of RedirectQA, one row per question, and their canonical-redirect pairs.

    Records of the questions are built on access.
    """

    rows: pd.DataFrame
    """The questions in the source's order, columns of `QUESTION_COLUMNS`."""

    source: DataSource
    """Origin of the questions, and the digest of exactly these."""

    card_language: str | None = None
    """The one language that the source's card names; None if it names none or several."""

    source_rows: npt.NDArray[np.int64] | None = None
    """Number of the source's row of each question, from 0; None if the rows come from memory."""

    @cached_property
    def language(self) -> str | None:
        """Code of the language of the questions; None if it cannot be inferred.

        It is inferred from words and letters of the questions (`text.guess_language`), else taken
        from the card of the source.
        """
        return guess_language(self.rows["question"].head(_N_FIRST).tolist()) or self.card_language

    def __repr__(self) -> str:
        """Summarise the content."""
        n_rows, n_pairs = len(self.rows), len(self.pairs)
        return f"<RedirectQA {self.source.id!r}: {n_rows:,} questions, {n_pairs:,} pairs>"

    @classmethod
    def from_questions(
        cls, questions: Iterable[QuestionRealization], *, source: str, revision: str | None = None
    ) -> "RedirectQA":
        """Create the data from records of questions.

        Args:
            questions: Questions with unique ids.
            source: Origin of the questions, for manifests.
            revision: Commit of the hub repository; None for other sources.

        Returns:
            The questions with their pairs.
        """
        return cls.from_rows(question_frame(questions), source=source, revision=revision)

    @classmethod
    def from_rows(
        cls,
        rows: pd.DataFrame,
        *,
        source: str,
        revision: str | None = None,
        card_language: str | None = None,
    ) -> "RedirectQA":
        """Create the data from a frame of questions.

        Args:
            rows: Questions with unique ids, columns of `QUESTION_COLUMNS`.
            source: Origin of the questions, for manifests.
            revision: Commit of the hub repository; None for other sources.
            card_language: The language that the source's card names.

        Returns:
            The questions with their pairs.
        """
        described = describe_questions(rows, source=source, revision=revision)
        return cls(rows=rows, source=described, card_language=card_language)

    @cached_property
    def questions(self) -> tuple[QuestionRealization, ...]:
        """Records of all questions, in the source's order."""
        with pause_gc():
            return tuple(question_records(self.rows))

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Redirect questions with the canonical question of their fact and template, one row each.

        The columns are those of `QUESTION_COLUMNS` for the redirect question, canonical_id and
        canonical_surface.
        """
        keys = ["item", "template"]
        canonical = self.rows.loc[self.rows["is_canonical"], [*keys, "id", "surface"]]
        named = canonical.drop_duplicates(keys, keep="last").rename(
            columns={"id": "canonical_id", "surface": "canonical_surface"}
        )
        return self.rows[~self.rows["is_canonical"]].merge(named, on=keys)

    @property
    def unpaired(self) -> pd.DataFrame:
        """Redirect questions without a canonical question of their template; also in `rows`."""
        # With Python's strings this takes a tenth of the time that it takes with Arrow's.
        is_paired = self.rows["id"].astype(object).isin(self.pairs["id"].astype(object))
        return self.rows[~self.rows["is_canonical"] & ~is_paired]

    def select(
        self,
        *,
        templates: str | Iterable[str] | None = None,
        relations: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> "RedirectQA":
        """Select a part of the questions; pairs are never split.

        Args:
            templates: Templates to keep; all if None.
            relations: Relations to keep; all if None.
            limit: Maximum number of facts (of those templates and relations), each with all its
                names and wordings, spread over the relations: the first fact of each relation,
                relations in order of appearance, then the second of each, and so on; all if None.

        Returns:
            The part in the order of the data, with its own digest.

        Raises:
            ValueError: If a template or relation is not in the data, or `limit` is below 1.
        """
        rows = self.rows
        kept = rows[
            rows["template"].isin(chosen_names(templates, "templates", rows["template"]))
            & rows["relation"].isin(chosen_names(relations, "relations", rows["relation"]))
        ]
        if limit is not None:
            if limit < 1:
                raise ValueError(f"limit counts facts and must be at least 1, got {limit}")
            facts = spread(zip(kept["relation"], kept["item"], strict=True), limit)
            kept = kept[kept["item"].isin(facts)]
        return RedirectQA.from_rows(
            kept.reset_index(drop=True),
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
    """Load RedirectQA, release v1.0.0 or v0.1.0, or your own rows in such columns.

    Only the names in `REDIRECTQA_COLUMNS` are recognised, and missing content is not filled in by
    default.

    Canonical rows are those whose categories contain "__MAIN__", or that have neither category nor
    redirect title and use the article's title. Categories get the taxonomy's spelling. Templates
    are named "original" (the question is PopQA's template with the surface in it) and "paraphrase",
    regardless of their names in the source. A relation that no column names is inferred from the
    questions. Accepted answers are stripped of white space. Rows that are identical to another one
    in all columns are dropped and counted; rows that would be one question but differ in a column
    that is not read raise an error with the names of these columns.

    Args:
        source: Hub id, folder in the hub's layout, file, `datasets` object, or rows as
            dictionaries; see `open_source`. "sample" is the bundled sample: questions over all 16
            relations with redirects in all 33 categories, for trials, not for results.
        revision: Branch, tag or commit of the hub repository; pin it for reproducible work.
        split: Split of a repository, folder or dictionary of splits.
        columns: Field to column, if a source uses names that `REDIRECTQA_COLUMNS` does not list,
            such as `{"question": "prompt_text"}`.
        ask_by_template: Whether questions are written by the taxonomy's templates for rows without
            one.

    Returns:
        The questions with their pairs.

    Raises:
        SourceNotFoundError: If the source or the split does not exist or cannot be reached.
        ColumnNotFoundError: If a required column is not found, or `columns` names an unknown field
            or a missing column.
        RecordError: If a row is broken, or a column that would be used appears only after the
            first thousand rows; names file, line, column and value.
        DataError: If rows contradict each other, would be one question but differ in a column that
            is not read, or there are none.

    Warns:
        DataWarning: If redirects have no canonical question.
        DataWarning: If categories are outside the taxonomy; they are kept.
        UnscoredWarning: If facts have no accepted answer; they are kept.
        SurfaceConsistencyWarning: If repeated rows were dropped, facts list no aliases of their
            object, or the source's own table of categories differs from the taxonomy.

    Examples:
        >>> load_redirectqa("sample").rows["relation"].nunique()
        16
    """
    opened = open_source(source, revision=revision, split=split, sample="redirectqa")
    fields = resolve_columns(
        opened.columns,
        REDIRECTQA_COLUMNS,
        overrides=columns,
        required=(*_REQUIRED, "relation" if ask_by_template else "question"),
        remedies=_REMEDIES,
    )
    if opened.folder is not None:
        check_category_types(opened.folder)
    late = reject_late_columns(opened.rows, opened.columns, REDIRECTQA_COLUMNS, overrides=columns)
    with pause_gc():
        rows, n_rows, numbers = read_questions(late, fields, ask_by_template=ask_by_template)
    data = RedirectQA.from_rows(
        rows, source=opened.id, revision=opened.revision, card_language=card_language(opened.folder)
    )
    data = replace(data, source_rows=numbers)
    for category, message in _notes(data, n_rows, fields):
        warnings.warn(message, category, stacklevel=2)
    return data


def _notes(
    data: RedirectQA, n_rows: int, fields: Mapping[str, str]
) -> Iterator[tuple[type[Warning], str]]:
    """Yield the warnings about the rows, each once per load."""
    rows, source = data.rows, data.source.id
    redirects = rows[~rows["is_canonical"]]
    labels = Counter(
        label
        for own in redirects["categories"]
        for label in own or ("(no category)",)
        if label not in CATEGORIES
    )
    if labels:
        counts = sorted(labels.items(), key=lambda item: (-item[1], item[0]))
        yield (
            DataWarning,
            f"{source} has redirect categories outside the taxonomy's 33 (rows in parentheses): "
            f"{', '.join(f'{label} ({count})' for label, count in counts)}; they are kept, with "
            'type "unknown"',
        )
    if note := repeated_rows(source, n_rows - len(rows)):
        yield SurfaceConsistencyWarning, note
    listed = [
        f"{shown(surface)} (fact {fact}, {template})"
        for surface, fact, template in plain_values(data.unpaired, ("surface", "item", "template"))
    ]
    if listed:
        yield (
            DataWarning,
            f"{len(listed)} redirect questions of {source} have no canonical question of the same "
            f"fact and template: {first_few(listed)}; they are in `.rows` and `.unpaired` but "
            "in no pair",
        )
    has_answers = rows["references"].map(bool)
    if "references" not in fields and "object_aliases" in fields:
        alone = rows.loc[has_answers & ~rows["object_aliases"].map(bool), "item"].unique()
        if len(alone):
            yield (
                SurfaceConsistencyWarning,
                f"{len(alone)} facts of {source} list no aliases of their object (facts "
                f"{first_few(alone.tolist())}); only the object's name is accepted as answer: "
                "fill in the aliases if it has others",
            )
    if note := unanswerable(source, rows.loc[~has_answers, "item"].tolist()):
        yield UnscoredWarning, note
