"""The long query of a topic: parsing into clauses, and balanced orders of the clauses.

Prompts contain the clauses in permuted order. The checks of a new data set parse its queries in the
same way.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import permutations
from random import Random
from typing import Final, Literal

from surface_consistency.schemas._record import Items, NonEmpty, Record

QueryWording = Literal["auto", "query", "questions"]
"""Source of the clauses: the topic's long query, or its short questions. "auto" uses the query
unless a clause of it may refer to another one ("he", "the latter")."""

_N: Final = 5
_ZIGZAG: Final = (0, 1, 4, 2, 3)
_ARRANGEMENTS: Final = tuple(
    (0, *rest) for rest in permutations(range(1, _N)) if rest[0] < rest[-1]
)
_LABELS: Final = ("(1)", "(2)", "(3)", "(4)", "(5)")
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
    """The parts of a long query."""

    lead: str
    """Text before the list, such as "Discuss the Punic Wars by covering"."""

    clauses: Items[NonEmpty]
    """The sub-questions in the query's order, without marker, separator and conjunction."""

    labels: Items[NonEmpty]
    """Markers of the slots, such as "(1)"."""

    separator: str
    """Text after each clause: "," or ";"; "" if the clauses are whole sentences."""

    conjunction: str = ""
    """Conjunction before the last clause, such as "and"; "" for no conjunction."""

    end: str = ""
    """Text after the list: the final punctuation mark, and further sentences, if any."""

    @property
    def dependent(self) -> tuple[int, ...]:
        """Clauses (from 1) with words like "he" or "the latter" that may refer to another clause.

        In another order such a clause may precede the clause that it refers to.
        """
        return tuple(
            number
            for number, clause in enumerate(self.clauses, start=1)
            if _DEPENDENT.search(clause)
        )

    def render(self, order: Sequence[int] | None = None) -> str:
        """Write the query with its clauses in an order.

        Args:
            order: The clause (from 1) in each slot; None for the original order.

        Returns:
            The query: slots are labelled in sequence, with the conjunction before the last clause.

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
            raise ValueError(f"order must contain 1 to {len(numbers)} once each, got {chosen}")
        parts = [self.lead] if self.lead else []
        for slot, number in enumerate(chosen):
            is_last = slot == len(chosen) - 1
            if is_last and self.conjunction:
                parts.append(self.conjunction)
            mark = "" if is_last else self.separator
            parts.append(f"{self.labels[slot]} {self.clauses[number - 1]}{mark}")
        return " ".join(parts) + self.end


def parse_long_query(text: str, *, n: int = 5) -> LongQuery | None:
    r"""Parse a long query that lists its sub-questions.

    The markers of lists are "(1)", "1)", "1.", "1:", "(a)", "a)" or "(i)", in running text or one
    per line.

    Args:
        text: The query.
        n: Number of sub-questions that it must list.

    Returns:
        The query in parts; None if the number of its listed sub-questions is not `n`, or a marker
        is repeated, so that it is never split at an incorrect position.

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
    """Separate the clauses of a list from separators, conjunction and end."""
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
    """Remove one pair of quotes around a query."""
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1].strip()
    return text


def topic_query(
    topic: str, long_question: str, questions: Iterable[str], *, wording: QueryWording = "auto"
) -> tuple[LongQuery, bool]:
    """Parse a topic's long query, or build one from its short questions.

    A query is built if that of the topic does not list exactly five sub-questions. The clauses of
    the topic's query are assumed to be in the order of the short questions, as in the data of SLAQ.

    Args:
        topic: Name of the topic.
        long_question: Its long query.
        questions: Its short questions, in order.
        wording: Source of the clauses; "query" uses the topic's query whenever it can be parsed.

    Returns:
        The query in parts, whose clause k corresponds to question k; and whether it was built from
        the short questions.

    Raises:
        ValueError: If `wording` is unknown.
    """
    if wording not in ("auto", "query", "questions"):
        raise ValueError(f"wording must be one of auto, query, questions; got {wording!r}")
    query = None if wording == "questions" else parse_long_query(long_question)
    if query is None or (wording == "auto" and query.dependent):
        texts = (" ".join(question.split()) for question in questions)
        rebuilt = LongQuery(
            lead=f"Discuss the topic {topic.strip()} by answering these questions:",
            clauses=tuple(text if text.endswith(("?", ".", "!")) else f"{text}?" for text in texts),
            labels=_LABELS,
            separator="",
        )
        return rebuilt, True
    if not query.lead:
        query = query.model_copy(update={"lead": f"Discuss {topic} by covering"})
    return query, False


def free_query(topic: str) -> str:
    """Write a query on a topic that does not list its facts.

    Args:
        topic: Name of the topic.

    Returns:
        The query, such as "Tell me about the Punic Wars."
    """
    name = re.sub(r"^The ", "the ", topic.strip())
    mark = "" if name.endswith((".", "?", "!")) else "."
    return f"Tell me about {name}{mark}"


def latin_square_orders(
    n_permutations: int, *, seed: int = 0, topic_id: str = ""
) -> tuple[tuple[int, ...], ...]:
    """Draw orders in which each sub-question is in each slot equally often.

    Orders form Latin squares of five, and squares form Williams pairs. With a multiple of five,
    each sub-question is in each slot exactly `n_permutations / 5` times. With a multiple of ten,
    each sub-question also follows each other one equally often, which a single square of five
    cannot achieve. With any other number, the counts of a sub-question in two slots differ by at
    most one. Up to 120 orders are all different; after that they repeat.

    Args:
        n_permutations: Number of orders.
        seed: Seed of the draw.
        topic_id: The topic; the squares are drawn per topic, so that over topics all orders are
            equally likely.

    Returns:
        For each order the sub-question (1 to 5) in each slot.

    Raises:
        ValueError: If `n_permutations` is below 1.

    References:
        Williams, Australian Journal of Scientific Research A 2, 1949 (balance of predecessors);
        SLAQ, arXiv 2510.11218, section 4.1 (five permutations).

    Examples:
        >>> orders = latin_square_orders(5, seed=1, topic_id="the-punic-wars")
        >>> [sorted(slot) for slot in zip(*orders)] == [[1, 2, 3, 4, 5]] * 5
        True
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations}")
    random = _generator(seed, topic_id)
    arrangements = random.sample(_ARRANGEMENTS, len(_ARRANGEMENTS))
    orders: list[tuple[int, ...]] = []
    pair = 0
    while len(orders) < n_permutations:
        for square in _williams_pair(arrangements[pair % len(arrangements)], random):
            orders.extend(square)
        pair += 1
    return tuple(orders[:n_permutations])


def random_orders(
    n_permutations: int, *, seed: int = 0, topic_id: str = ""
) -> tuple[tuple[int, ...], ...]:
    """Draw orders at random, without balance.

    Args:
        n_permutations: Number of orders.
        seed: Seed of the draw.
        topic_id: The topic; orders are drawn per topic.

    Returns:
        For each order the sub-question (1 to 5) in each slot. Up to 120 orders are all different;
        after that they repeat.

    References:
        SLAQ, arXiv 2510.11218, section 4.1, which does not state whether topics share their orders.

    Examples:
        >>> len(set(random_orders(5, topic_id="the-punic-wars")))
        5
    """
    random = _generator(seed, topic_id)
    every = list(permutations(range(1, _N + 1)))
    orders: list[tuple[int, ...]] = []
    while len(orders) < n_permutations:
        orders += random.sample(every, len(every))
    return tuple(orders[:n_permutations])


def _generator(seed: int, topic_id: str) -> Random:
    """Return the random generator of a topic's orders."""
    name = f"{seed}\n{topic_id}"
    return Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))


def _williams_pair(arrangement: tuple[int, ...], random: Random) -> list[list[tuple[int, ...]]]:
    """Build a square and its mirror image, squares and rows in random order."""
    squares = []
    for base in random.sample([_ZIGZAG, _ZIGZAG[::-1]], 2):
        shifts = random.sample(range(_N), _N)
        squares.append(
            [tuple(arrangement[(place + shift) % _N] + 1 for place in base) for shift in shifts]
        )
    return squares
