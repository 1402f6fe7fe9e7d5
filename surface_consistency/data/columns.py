"""The declared mapping from what a study needs to what a source calls it."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from surface_consistency.data.readers import Row
from surface_consistency.errors import ColumnNotFoundError, RecordError

__all__ = [
    "POPQA_COLUMNS",
    "REDIRECTQA_COLUMNS",
    "Candidates",
    "refuse_late_columns",
    "resolve_columns",
]

Candidates = Mapping[str, tuple[str, ...]]
"""Field to the column names it may have, the likeliest first."""

REDIRECTQA_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    field: tuple(names.split())
    for field, names in {
        "triple_id": "triplet_id triple_id fact_id",
        "subject_id": "subject_id subject_qid subj_id s_id qid",
        "surface": "subject_surface surface surface_form subject_surface_form",
        "categories": "subject_surface_category subject_surface_categories surface_category "
        "surface_categories redirect_category redirect_categories categories "
        "category",
        "subject_title": "subject_wiki_title s_wiki_title wiki_title canonical_title subject_title "
        "subject_label subject subj",
        "redirect_title": "subject_redirect_wiki_title redirect_wiki_title redirect_title",
        "pageviews": "subject_pageviews pageviews s_pop",
        "subject_aliases": "subject_aliases s_aliases",
        "relation": "relation relation_name relation_label relation_type property property_name "
        "prop predicate relation_id property_id prop_id pid",
        "object_id": "object_id object_qid obj_id o_id",
        "object": "object object_label object_name object_surface obj",
        "object_title": "object_wiki_title object_title o_wiki_title",
        "answers": "possible_answers answers gold_answers acceptable_answers answer_aliases answer",
        "object_aliases": "object_aliases obj_aliases o_aliases",
        "template": "template template_id template_name template_type question_template "
        "template_idx",
        "question": "question question_text query",
    }.items()
}
"""Fields of RedirectQA. The subject's columns are those of release v1.0.0, read by public code; the
names of the relation, object, answer, template and question columns are likely ones, since no
public description of either release tells them: override them where they differ."""

POPQA_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    name: (name,)
    for name in (
        *("id", "subj", "prop", "obj", "s_aliases", "o_aliases", "s_uri", "o_uri"),
        *("s_pop", "o_pop", "question", "possible_answers"),
    )
}
"""Fields of PopQA, which are its columns."""


def resolve_columns(
    available: Collection[str],
    candidates: Candidates,
    *,
    overrides: Mapping[str, str] | None = None,
    required: Collection[str | tuple[str, ...]] = (),
) -> dict[str, str]:
    """Find the column of each field.

    An override wins; then the first candidate that is there under its exact name; then the first
    that is there with other case, hyphens, spaces or none for underscores ("possibleAnswers").

    Args:
        available: Columns of the source.
        candidates: The declared mapping, such as `REDIRECTQA_COLUMNS`.
        overrides: Field to the column that holds it, for columns under other names.
        required: Fields that must be found; a tuple is satisfied by any one of its fields.

    Returns:
        Field to column, for the fields that were found.

    Raises:
        ColumnNotFoundError: If a required field has no column, or an override names a field that
            is not declared or a column that is not there.

    Examples:
        >>> resolve_columns(["Question", "gold"], REDIRECTQA_COLUMNS, overrides={"answers": "gold"})
        {'answers': 'gold', 'question': 'Question'}
    """
    _check_overrides(overrides or {}, available, candidates)
    folded = {_fold(column): column for column in reversed(list(available))}
    found: dict[str, str] = {}
    for field, names in candidates.items():
        if overrides and field in overrides:
            found[field] = overrides[field]
            continue
        column = next((name for name in names if name in available), None) or next(
            (folded[key] for name in names if (key := _fold(name)) in folded), None
        )
        if column is not None:
            found[field] = column
    for need in required:
        group = (need,) if isinstance(need, str) else need
        if not any(field in found for field in group):
            raise ColumnNotFoundError(_missing(group, available, candidates))
    return found


def refuse_late_columns(
    rows: Iterable[Row],
    columns: Collection[str],
    candidates: Candidates,
    *,
    overrides: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """Pass rows on, and refuse one with a column that would have changed the mapping.

    Args:
        rows: The rows with their places.
        columns: Columns of the rows that were looked at for the mapping.
        candidates: The declared mapping.
        overrides: As for `resolve_columns`.

    Yields:
        The rows.

    Raises:
        RecordError: At the first row with such a column, which would else go unread.
    """
    seen = list(columns)
    known = set(seen)
    resolved = resolve_columns(seen, candidates, overrides=overrides)
    for place, row in rows:
        for column in () if known.issuperset(row) else row:
            if column in known:
                continue
            known.add(column)
            seen.append(column)
            if resolve_columns(seen, candidates, overrides=overrides) != resolved:
                raise RecordError(
                    f"{place}: column {column!r} appears here for the first time, too late to be "
                    "read; give it to the first row too (null where it is empty), or move this row "
                    "to the front"
                )
        yield place, row


def _fold(name: str) -> str:
    """Fold spellings of one column name into one key."""
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


def _check_overrides(
    overrides: Mapping[str, str], available: Collection[str], candidates: Candidates
) -> None:
    """Refuse an override that could not take effect."""
    for field, column in overrides.items():
        if field not in candidates:
            raise ColumnNotFoundError(
                f"columns={{{field!r}: {column!r}}}: there is no field {field!r}"
                f"{_close(field, candidates)}; the fields are {', '.join(candidates)}"
            )
        if column not in available:
            raise ColumnNotFoundError(
                f"columns={{{field!r}: {column!r}}}: the source has no column {column!r}"
                f"{_close(column, available)}; its columns are {', '.join(available)}"
            )


def _missing(group: tuple[str, ...], available: Collection[str], candidates: Candidates) -> str:
    """Say what was looked for, what was seen, and how to name it."""
    looked = "; ".join(f"{field!r} under {', '.join(candidates[field])}" for field in group)
    names = [name for field in group for name in candidates[field]]
    near = next((hint for name in names if (hint := _close(name, available))), "")
    what = "this field" if len(group) == 1 else "any of these fields"
    return (
        f"the source has no column for {what}: {looked}. Its columns are "
        f"{', '.join(available) or '(none)'}{near}. If one of them holds it, say which: "
        f"columns={{{group[0]!r}: '<column>'}}"
    )


def _close(name: str, known: Collection[str]) -> str:
    """Suggest the names that look like a given one."""
    matches = difflib.get_close_matches(name, list(known), n=3, cutoff=0.75)
    return f" (close: {', '.join(matches)})" if matches else ""
