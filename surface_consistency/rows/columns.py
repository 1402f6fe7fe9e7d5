"""The mapping of fields that a study needs to the columns of a source."""

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from surface_consistency.errors import ColumnNotFoundError, RecordError
from surface_consistency.reading import find_column, first_names, shown
from surface_consistency.rows.readers import Row

Candidates = Mapping[str, tuple[str, ...]]
"""Possible column names of each field, the most likely first."""

REDIRECTQA_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "triple_id": ("triplet_id",),
    "subject_id": ("subject_id",),
    "surface": ("subject_surface",),
    "categories": ("subject_surface_category",),
    "subject_title": ("subject_wiki_title", "s_wiki_title"),
    "redirect_title": ("subject_redirect_wiki_title",),
    "pageviews": ("subject_pageviews", "s_pop"),
    "subject_aliases": ("subject_aliases", "s_aliases"),
    "relation": ("relation", "prop"),
    "object_id": ("object_id",),
    "object": ("object_surface", "obj"),
    "object_title": ("o_wiki_title",),
    "references": ("possible_answers",),
    "object_aliases": ("object_aliases", "o_aliases"),
    "template": ("template",),
    "question": ("question",),
}
"""Fields of RedirectQA and their known column names: the eight columns of release v1.0.0 that
public code reads, the columns that this package writes, and those of PopQA. The columns of
relation, object, answer, template and question in the releases are not publicly described. Name
them if they differ, because no other names are tried."""

POPQA_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    name: (name,)
    for name in (
        *("id", "subj", "prop", "obj", "s_aliases", "o_aliases", "s_uri", "o_uri"),
        *("s_pop", "o_pop", "question", "possible_answers"),
    )
}
"""Fields of PopQA, with the names of its columns."""


def _as_columns(field: str, column: str) -> str:
    """Return the text of an argument `columns` that maps a field to a column."""
    return f"columns={{{shown(field)}: {shown(column)}}}"


def resolve_columns(
    available: Collection[str],
    candidates: Candidates,
    *,
    overrides: Mapping[str, str] | None = None,
    required: Collection[str | tuple[str, ...]] = (),
    remedies: Mapping[str, str] | None = None,
    source: str = "the source",
    spelled: Callable[[str, str], str] = _as_columns,
) -> dict[str, str]:
    """Find the column of each field.

    An override has precedence. Otherwise the first known name that is present is used; case does
    not matter, and underscores may be hyphens, spaces or missing ("possibleAnswers").

    Args:
        available: Columns of the source.
        candidates: The declared mapping, such as `REDIRECTQA_COLUMNS`.
        overrides: Field to its column, for columns with other names.
        required: Fields that must be found; of a tuple of fields, at least one.
        remedies: Further remedies for a missing required field, by (first) field.
        source: Name of the source, for messages.
        spelled: Function that returns the text of the option that maps a field to a column, for
            messages.

    Returns:
        The column of each field that was found.

    Raises:
        ColumnNotFoundError: If a required field has no column, two columns match a field, or an
            override names a field that is not declared or a column that is missing.

    Examples:
        >>> named = {"references": "gold"}
        >>> resolve_columns(["Question", "gold"], REDIRECTQA_COLUMNS, overrides=named)
        {'references': 'gold', 'question': 'Question'}
    """
    resolved: dict[str, str] = {}
    for field, column in (overrides or {}).items():
        argument = spelled(field, column)
        if field not in candidates:
            raise ColumnNotFoundError(
                f"{argument}: unknown field {shown(field)}{_close(field, candidates)}; the fields "
                f"are {', '.join(candidates)}"
            )
        own = find_column(column, available)
        if own is None:
            raise ColumnNotFoundError(
                f"{argument}: {source} has no column {shown(column)}{_close(column, available)}; "
                f"its columns are {first_names(available)}"
            )
        resolved[field] = own
    for field, names in candidates.items():
        if field in resolved:
            continue
        columns = [own for name in names if (own := find_column(name, available))]
        if len(columns) > 1:
            raise ColumnNotFoundError(
                f"{source}: columns {' and '.join(map(shown, columns))} could both be "
                f"{shown(field)}; name the one that is: {spelled(field, columns[0])}"
            )
        if columns:
            resolved[field] = columns[0]
    for need in required:
        group = (need,) if isinstance(need, str) else need
        if not any(field in resolved for field in group):
            other = (remedies or {}).get(group[0], "")
            raise ColumnNotFoundError(
                f"{source} has no column for {_missing(group, available, candidates)}. If one of "
                f"them contains it, name it: {spelled(group[0], 'NAME')}{other}"
            )
    return {field: resolved[field] for field in candidates if field in resolved}


def reject_late_columns(
    rows: Iterable[Row],
    columns: Collection[str],
    candidates: Candidates,
    *,
    overrides: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """Yield rows, and reject a row with a new column that would have changed the mapping.

    Args:
        rows: The rows with their places.
        columns: Columns of the rows from which the mapping was made.
        candidates: The declared mapping.
        overrides: As for `resolve_columns`.

    Yields:
        The rows.

    Raises:
        RecordError: At the first row with such a column, which would otherwise not be read.
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
                    f"{place}: column {shown(column)} appears here for the first time, too late to "
                    "be read; add it to the first row (null if it is empty), or move this row to "
                    "the front"
                )
        yield place, row


def _missing(group: tuple[str, ...], available: Collection[str], candidates: Candidates) -> str:
    """Describe a missing field: the names that were searched for, and the columns."""
    looked = "; ".join(f"{shown(field)} under {', '.join(candidates[field])}" for field in group)
    names = [name for field in group for name in candidates[field]]
    near = next((hint for name in names if (hint := _close(name, available))), "")
    what = "this field" if len(group) == 1 else "any of these fields"
    return f"{what}: {looked}. Its columns are {first_names(available) or '(none)'}{near}"


def _close(name: str, known: Collection[str]) -> str:
    """Suggest the names that are similar to a given one."""
    matches = difflib.get_close_matches(name, list(known), n=3, cutoff=0.75)
    return f" (close: {', '.join(matches)})" if matches else ""
