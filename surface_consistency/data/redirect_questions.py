"""Questions of RedirectQA from its rows: relations, templates and repeats settled."""

from pydantic import ValidationError

from surface_consistency.data.questions import question_id
from surface_consistency.data.redirect_facts import build_triples
from surface_consistency.data.redirect_rows import InstanceRow, RedirectRows
from surface_consistency.data.wordings import Wording, infer_relation, resolve_templates
from surface_consistency.errors import DataError, RecordError
from surface_consistency.schemas import QuestionRealization
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.taxonomy import RELATIONS

__all__ = ["build_questions"]


def build_questions(rows: RedirectRows) -> tuple[list[QuestionRealization], int]:
    """Build the questions of rows that were read.

    Args:
        rows: The rows.

    Returns:
        The questions, each once, in order; and how many rows repeated an earlier one.

    Raises:
        RecordError: If a relation or question is neither given nor to be told.
        DataError: If two rows are the same question but differ, or a fact has two canonical names.
    """
    _infer_relations(rows)
    triples = build_triples(rows.facts, rows.subject_names())
    wordings = [
        Wording(triples[row.fact].relation, row.surface.text, row.question, row.template)
        for row in rows.instances
    ]
    built: dict[str, tuple[QuestionRealization, InstanceRow]] = {}
    canonical: dict[tuple[str, str], InstanceRow] = {}
    n_repeated = 0
    for row, template in zip(rows.instances, resolve_templates(wordings), strict=True):
        triple = triples[row.fact]
        key = question_id(row.fact, template, row.surface)
        text = row.question or _ask(row, triple.relation, template)
        if key in built:
            _check_repeated(built[key], row, text)
            n_repeated += 1
            continue
        if row.surface.is_canonical:
            _check_only_canonical(canonical.setdefault((row.fact, template), row), row, template)
        try:
            question = QuestionRealization(
                id=key, triple=triple, surface=row.surface, template=template, question=text
            )
        except ValidationError as error:
            raise RecordError(f"{row.place}: {describe_validation_error(error)}") from error
        built[key] = (question, row)
    return [question for question, _ in built.values()], n_repeated


def _infer_relations(rows: RedirectRows) -> None:
    """Tell relations from the questions, for the facts whose rows name none."""
    for row in rows.instances:
        draft = rows.facts[row.fact]
        if draft.relation is None and row.question is not None:
            draft.relation = infer_relation(row.question, row.surface.text)


def _ask(row: InstanceRow, relation: str, template: str) -> str:
    """Word the question of a row that has none."""
    if relation not in RELATIONS:
        raise RecordError(
            f"{row.place}: no question, and the taxonomy has no template for relation "
            f"{relation!r}; name the column that holds it with columns={{'question': '<column>'}}"
        )
    return RELATIONS[relation].question(row.surface.text, template=template)


def _check_repeated(
    earlier: tuple[QuestionRealization, InstanceRow], row: InstanceRow, text: str
) -> None:
    """Refuse two different rows for one fact, name and template."""
    question, first = earlier
    if question.question == text and first.surface == row.surface:
        return
    what = "question" if question.question != text else "categories"
    values = (
        (question.question, text)
        if what == "question"
        else (first.surface.categories, row.surface.categories)
    )
    raise DataError(
        f"{first.place} and {row.place} are the same fact {row.fact!r}, surface "
        f"{row.surface.text!r} and template {question.template!r}, but differ in {what}: "
        f"{values[0]!r} and {values[1]!r}; remove one, or name the column that tells them apart "
        "with columns={'template': '<column>'}"
    )


def _check_only_canonical(first: InstanceRow, row: InstanceRow, template: str) -> None:
    """Refuse a second canonical name for one fact and template."""
    if first is not row:
        raise DataError(
            f"{first.place} and {row.place} are both canonical for fact {row.fact!r}, template "
            f"{template!r}: {first.surface.text!r} and {row.surface.text!r}; a fact has one "
            "canonical name"
        )
