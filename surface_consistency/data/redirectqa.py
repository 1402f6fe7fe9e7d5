"""RedirectQA: published rows to questions and canonical-redirect pairs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from surface_consistency.data.category_types import check_category_types
from surface_consistency.data.columns import REDIRECTQA_COLUMNS, resolve_columns
from surface_consistency.data.late_columns import refuse_late_columns
from surface_consistency.data.questions import describe_data, pair_questions
from surface_consistency.data.redirect_questions import build_questions
from surface_consistency.data.redirect_rows import RedirectRows
from surface_consistency.data.row_warnings import (
    warn_foreign_categories,
    warn_name_only,
    warn_repeated,
    warn_unanswerable,
    warn_unpaired,
)
from surface_consistency.data.sources import Source, open_source
from surface_consistency.schemas import CanonicalRedirectPair, DataSource, QuestionRealization

__all__ = ["RedirectQA", "load_redirectqa", "redirectqa_from"]

_REQUIRED = (
    "surface",
    ("triple_id", "subject_id", "subject_title"),
    ("categories", "redirect_title"),
    ("question", "relation"),
    ("answers", "object", "object_title", "object_aliases"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectQA:
    """Questions of RedirectQA and the pairs that the consistency analysis compares."""

    questions: tuple[QuestionRealization, ...]
    """All question realisations, in the source's order."""

    pairs: tuple[CanonicalRedirectPair, ...]
    """One for each redirect question whose fact has a canonical question in the same template."""

    unpaired: tuple[QuestionRealization, ...]
    """Redirect questions without a canonical one; they are in `questions` too."""

    source: DataSource
    """Where the questions came from, and the digest of exactly these."""

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
            limit: Keep the first so many facts (of those templates and relations, in order of
                appearance) with all their names and wordings; all when None.

        Returns:
            The part, with a digest of its own.

        Raises:
            ValueError: If a template or relation is not in the data, or `limit` is below 1.
        """
        wanted_templates = _wanted(templates, "templates", (q.template for q in self.questions))
        wanted_relations = _wanted(
            relations, "relations", (q.triple.relation for q in self.questions)
        )
        questions = [
            question
            for question in self.questions
            if question.template in wanted_templates
            and question.triple.relation in wanted_relations
        ]
        if limit is not None:
            if limit < 1:
                raise ValueError(f"limit counts facts and must be at least 1, got {limit}")
            facts = list(dict.fromkeys(question.triple.id for question in questions))
            kept = set(facts[:limit])
            questions = [question for question in questions if question.triple.id in kept]
        return redirectqa_from(questions, source=self.source.id, revision=self.source.revision)


def load_redirectqa(
    source: Source = "naist-nlp/RedirectQA",
    *,
    revision: str | None = None,
    split: str = "test",
    columns: Mapping[str, str] | None = None,
) -> RedirectQA:
    """Load RedirectQA, release v1.0.0 or v0.1.0, or rows of your own in such columns.

    Canonical rows are those whose categories contain "__MAIN__", or that have neither category nor
    redirect title and ask under the article's title. Categories get the taxonomy's spelling.
    Templates are named "original" (the question is PopQA's template with the surface in it) and
    "paraphrase", whatever the source calls them. A relation that no column names is told from the
    questions. Accepted answers lose the white space around them. Rows that repeat another to the
    letter are dropped and counted.

    Args:
        source: Hub id, folder in the hub's layout, file, `datasets` object, or rows as
            dictionaries; see `open_source`.
        revision: Branch, tag or commit of the hub repository; pin it in work to be repeated.
        split: Split of a repository, folder or dictionary of splits.
        columns: Field to column, where a source uses names that `REDIRECTQA_COLUMNS` does not list,
            such as `{"question": "prompt_text"}`.

    Returns:
        Questions, pairs, and redirects without a canonical question.

    Raises:
        SourceNotFoundError: If the source or the split is not there or cannot be reached.
        ColumnNotFoundError: If a needed column is not found, or `columns` names a wrong one.
        RecordError: If a row is broken, or a column that would be used appears only after the
            first thousand rows; names file, line, column and value.
        DataError: If rows contradict each other, or there are none.

    Warns:
        IncompletePairWarning: If redirects have no canonical question.
        UnknownCategoryWarning: If categories are outside the taxonomy; they are kept.
        UnscoredWarning: If facts have no accepted answer; they are kept.
        SurfaceConsistencyWarning: If repeated rows were dropped, facts list no aliases of their
            object, or the source's own table of categories differs from the taxonomy.
    """
    opened = open_source(source, revision=revision, split=split)
    found = resolve_columns(
        opened.columns, REDIRECTQA_COLUMNS, overrides=columns, required=_REQUIRED
    )
    if opened.folder is not None:
        check_category_types(opened.folder)
    rows = RedirectRows(found)
    rows.extend(
        refuse_late_columns(opened.rows, opened.columns, REDIRECTQA_COLUMNS, overrides=columns)
    )
    questions, n_repeated = build_questions(rows)
    data = redirectqa_from(questions, source=opened.id, revision=opened.revision)
    _report(data, rows, n_repeated)
    return data


def redirectqa_from(
    questions: Sequence[QuestionRealization], *, source: str, revision: str | None = None
) -> RedirectQA:
    """Pair questions that are records already.

    Args:
        questions: Questions with unique ids.
        source: Where they came from, for manifests.
        revision: Commit of the hub repository; None elsewhere.

    Returns:
        The questions with their pairs.
    """
    pairs, unpaired = pair_questions(questions)
    return RedirectQA(
        questions=tuple(questions),
        pairs=pairs,
        unpaired=unpaired,
        source=describe_data(questions, source=source, revision=revision),
    )


def _wanted(names: str | Iterable[str] | None, what: str, present: Iterable[str]) -> set[str]:
    """Check a choice against what is there."""
    known = dict.fromkeys(present)
    wanted = set(known) if names is None else {names} if isinstance(names, str) else set(names)
    unknown = sorted(wanted - known.keys())
    if unknown or not wanted:
        raise ValueError(
            f"{what} must be among those of the data, {', '.join(known)}; got "
            f"{', '.join(map(repr, unknown)) or 'none'}"
        )
    return wanted


def _report(data: RedirectQA, rows: RedirectRows, n_repeated: int) -> None:
    """Warn, once a load, of what a user should know about the rows."""
    source = data.source.id
    warn_foreign_categories(source, rows.foreign_categories, stacklevel=3)
    warn_repeated(source, n_repeated, stacklevel=3)
    warn_unpaired(source, data.unpaired, stacklevel=3)
    warn_name_only(source, rows.facts_by_name_only(), stacklevel=3)
    warn_unanswerable(source, data.questions, stacklevel=3)
