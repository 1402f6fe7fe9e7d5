"""A long query that lists its sub-questions: taken apart into clauses, put together in any order.

It stands among the records because both sides need it: prompts permute the clauses, and the checks
of a data set ask whether there are five.
"""

import re
from collections.abc import Sequence
from typing import Final

from surface_consistency.schemas._record import Items, NonEmpty, Record

__all__ = ["LongQuery", "parse_long_query"]

_STYLES: Final = tuple(
    (template, tuple(labels), re.compile(pattern, flags))
    for template, labels, pattern, flags in (
        ("({})", "123456789", r"(?<!\w)\(\s*([1-9])\s*\)", 0),
        ("({})", "abcdefghi", r"(?<!\w)\(\s*([a-i])\s*\)", 0),
        (
            "({})",
            ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"),
            r"(?<!\w)\(\s*(i{1,3}|iv|vi{0,3}|ix)\s*\)",
            re.IGNORECASE,
        ),
        ("{})", "123456789", r"(?<![\w(])([1-9])\)(?!\w)", 0),
        ("{})", "abcdefghi", r"(?<![\w(])([a-i])\)(?=\s)", 0),
        ("{}.", "123456789", r"(?<![\w.,])([1-9])\.(?=\s)", 0),
        ("{}:", "123456789", r"(?<![\w.,:])([1-9]):(?=\s)", 0),
    )
)
_QUOTES: Final = {'"': '"', "“": "”", "'": "'", "«": "»"}
_CONJUNCTION: Final = re.compile(
    r"[\s,;]*\b(and (?:finally|lastly|also)|and|finally|lastly|as well as),?$", re.IGNORECASE
)
_SENTENCE_END: Final = re.compile(r"(?:(?<=[?!])|(?<=[a-z\d)]{4}\.))\s+(?=[A-Z])")
_DEPENDENT: Final = re.compile(
    r"\b(?:he|she|him|her|hers|his|himself|herself|this|these|those|thereof|aforementioned"
    r"|the latter|the former(?!\s+[A-Za-z]))\b",
    re.IGNORECASE,
)


class LongQuery(Record):
    """A long query, taken apart."""

    lead: str
    """What stands before the list, such as "Discuss the Punic Wars by covering"."""

    clauses: Items[NonEmpty]
    """The sub-questions in the query's order, without marker, separator and conjunction."""

    labels: Items[NonEmpty]
    """What the slots are called, with their marks, such as "(1)"."""

    separator: str
    """What stands after each clause: "," or ";"; "" where the clauses are whole sentences."""

    conjunction: str = ""
    """What stands before the last clause, such as "and"; "" when nothing does."""

    end: str = ""
    """What stands after the list: the closing mark, and further sentences if there are any."""

    @property
    def dependent(self) -> tuple[int, ...]:
        """Clauses (from 1) with words like "he" or "the latter" that may point at another clause.

        In another order such a clause may stand before what it points at.
        """
        return tuple(
            number
            for number, clause in enumerate(self.clauses, start=1)
            if _DEPENDENT.search(clause)
        )

    def render(self, order: Sequence[int] | None = None) -> str:
        """Write the query with its clauses in an order.

        Args:
            order: The clause (from 1) in each slot; None for the query's own.

        Returns:
            The query: slots are labelled in sequence, and the conjunction stands before the last.

        Raises:
            ValueError: If the order lacks or repeats a clause.

        Examples:
            >>> query = parse_long_query("Discuss it: (1) who, (2) where, and (3) why.", n=3)
            >>> query.render([3, 1, 2])
            'Discuss it: (1) why, (2) who, and (3) where.'
        """
        numbers = list(range(1, len(self.clauses) + 1))
        chosen = numbers if order is None else list(order)
        if sorted(chosen) != numbers:
            raise ValueError(f"order must hold 1 to {len(numbers)} once each, got {chosen}")
        parts = [self.lead] if self.lead else []
        for slot, number in enumerate(chosen):
            is_last = slot == len(chosen) - 1
            if is_last and self.conjunction:
                parts.append(self.conjunction)
            mark = "" if is_last else self.separator
            parts.append(f"{self.labels[slot]} {self.clauses[number - 1]}{mark}")
        return " ".join(parts) + self.end


def parse_long_query(text: str, *, n: int = 5) -> LongQuery | None:
    r"""Take a long query apart where it lists its sub-questions.

    Lists are marked "(1)", "1)", "1.", "1:", "(a)", "a)" or "(i)", in running text or line by
    line.

    Args:
        text: The query.
        n: How many sub-questions it must list.

    Returns:
        The query in parts; None when it lists none, more, fewer, or some twice, so that nothing is
        cut in the wrong place.

    Examples:
        >>> query = parse_long_query("Discuss it by covering (1) who, (2) where and (3) why?", n=3)
        >>> query.lead, query.clauses, query.conjunction, query.end
        ('Discuss it by covering', ('who', 'where', 'why'), 'and', '?')
        >>> parse_long_query("Tell me about Rome.") is None
        True
    """
    plain = _unquoted(" ".join(text.split()))
    for template, labels, pattern in _STYLES:
        hits = list(pattern.finditer(plain))
        if [match[1].lower() for match in hits] != list(labels[:n]):
            continue
        ends = [match.start() for match in hits[1:]] + [len(plain)]
        pieces = [plain[match.end() : end].strip() for match, end in zip(hits, ends, strict=True)]
        marks = tuple(template.format(label) for label in labels[:n])
        return _assembled(plain[: hits[0].start()].strip(), pieces, marks)
    return None


def _assembled(lead: str, pieces: list[str], labels: tuple[str, ...]) -> LongQuery | None:
    """Take separators, conjunction and end off the pieces of a list."""
    last, tail = _without_tail(pieces[-1])
    before, conjunction = _without_conjunction(pieces[-2])
    inner = [*pieces[:-2], before]
    if all(piece.endswith((".", "?", "!")) for piece in inner):
        clauses, separator, end = [*inner, last], "", tail
    else:
        clauses = [piece.rstrip(" ,;") for piece in inner]
        clause = last.rstrip(" ,;.?!")
        end = (last[len(clause) :].strip(" ,;") or "") + tail
        clauses.append(clause)
        is_long = any("," in text for text in clauses) or inner[0].endswith(";")
        separator = ";" if is_long else ","
    if not all(clauses):
        return None
    return LongQuery(
        lead=lead,
        clauses=tuple(clauses),
        labels=labels,
        separator=separator,
        conjunction=conjunction,
        end=end,
    )


def _without_conjunction(piece: str) -> tuple[str, str]:
    """Split the piece before the last into its clause and the conjunction after it."""
    match = _CONJUNCTION.search(piece)
    if match is None:
        return piece, ""
    return piece[: match.start()], match[1]


def _without_tail(piece: str) -> tuple[str, str]:
    """Split the last piece into its clause and the sentences after it."""
    match = _SENTENCE_END.search(piece)
    if match is None:
        return piece, ""
    return piece[: match.start()], " " + piece[match.end() :]


def _unquoted(text: str) -> str:
    """Take off one pair of quotes around a whole query."""
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1].strip()
    return text
