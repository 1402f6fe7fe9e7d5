"""Counts of names looked up in indexes of tokens: infini-gram and infini-gram mini.

A last resort where the corpus itself cannot be read. Such an index counts token n-grams, or
substrings, not words: "X" at the start of a word and " X" within a sentence are other tokens, and
the tokens of a name that ends in punctuation merge with what follows. Never put such counts into
one column with counts of `SurfaceCounter`.
"""

import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency.errors import (
    DataError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
)
from surface_consistency.runs.web import Request, WebClient, in_order
from surface_consistency_build.counting.surfaces import SurfaceTable

TokenDtype = Literal["u8", "u16", "u32"]

_OPERATOR: Final = re.compile(r"\s(?:AND|OR)\s")
_VARIANTS: Final = ("plain", "spaced")
_SHOWN: Final = 3
_LOOKUPS: Final = pa.schema(
    {
        "key_id": pa.int64(),
        "surface": pa.string(),
        "variant": pa.string(),
        "token_ids": pa.list_(pa.int64()),
        "count": pa.int64(),
        "is_approximate": pa.bool_(),
        "is_summed": pa.bool_(),
        "problem": pa.string(),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCount:
    """What an index says of one query."""

    count: int | None
    """Occurrences; None where the query could not be counted."""

    token_ids: tuple[int, ...] | None = None
    """Tokens that were counted; None where the index does not tell."""

    is_approximate: bool = False
    """Whether the index says that the count is an estimate."""

    problem: str | None = None
    """Why there is no count."""


class LookupIndex(Protocol):
    """Counts occurrences in a corpus that was indexed."""

    takes_text: bool
    """Whether it takes texts; all but substring indexes take token ids."""

    takes_ids: bool
    """Whether it takes token ids."""

    has_operators: bool
    """Whether AND and OR in a text are read as operators."""

    def count(self, queries: Sequence[str | Sequence[int]]) -> Iterator[IndexCount]:
        """Count each query.

        Args:
            queries: Texts, or token ids, as far as the index takes them.

        Yields:
            The counts, in order; None for a query that cannot be counted.

        Raises:
            TypeError: If a query is a text and the index takes token ids alone.
            RunnerError: If a service cannot be reached or answers nothing that can be read.
        """
        ...


class InfiniGramAPI:
    """The web service of infini-gram.

    Args:
        index: One of its indexes, such as "v4_piletrain_llama".
        url: Its address.
        cache: File in which answers are kept; None for none.
        options: Options of `WebClient`: concurrency, timeout, max_retries and so on.
    """

    service: ClassVar[str] = "infini-gram"
    """Its name."""

    address: ClassVar[str] = "https://api.infini-gram.io/"
    """Where it is."""

    takes_text = True
    takes_ids = True
    has_operators = True

    def __init__(
        self,
        index: str,
        *,
        url: str | None = None,
        cache: Path | None = None,
        **options: Any,  # noqa: ANN401 - those of WebClient
    ) -> None:
        self.index = index
        """Name of the index."""
        url = self.address if url is None else url
        self.web = WebClient(url=url, name=self.service, cache=cache, **options)
        """What sends the requests."""

    def count(self, queries: Sequence[str | Sequence[int]]) -> Iterator[IndexCount]:
        """Count each query; see `LookupIndex.count`."""
        requests = [
            Request(
                {"index": self.index, "query_type": "count", "query": query}
                if isinstance(query, str)
                else {"index": self.index, "query_type": "count", "query_ids": list(query)}
            )
            for query in queries
        ]
        for reply in in_order(self.web.ask(requests, _read_count)):
            if reply.value is None:
                yield IndexCount(count=None, problem=reply.refusal)
            else:
                yield reply.value


class InfiniGramMiniAPI(InfiniGramAPI):
    """The web service of infini-gram mini, which counts substrings of bytes: "mate" in "material".

    Args:
        index: One of its indexes, such as "v2_piletrain".
        url: Its address.
        cache: File in which answers are kept; None for none.
        options: Options of `WebClient`.
    """

    service = "infini-gram mini"
    address = "https://api.infini-gram-mini.io/"
    takes_ids = False
    has_operators = False


def _read_count(place: int, answer: dict[str, Any]) -> IndexCount:
    """Read an answer of either service; a ValueError means that it is none."""
    if "error" in answer:
        return IndexCount(count=None, problem=f"the index says: {answer['error']}")
    n = answer.get("count")
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ValueError(f"`count` is no number from 0: {n!r}")
    ids = answer.get("token_ids")
    return IndexCount(
        count=n,
        token_ids=tuple(map(int, ids)) if isinstance(ids, list) else None,
        is_approximate=bool(answer.get("approx", False)),
    )


class LocalIndex:
    """A local index of infini-gram, read without its package.

    Its folder holds, for each shard, `tokenized.N` (the documents' tokens, each document after one
    of all bits) and `table.N` (the places of all tokens, sorted by the bytes that follow). Both
    stay on the disk; a count is two binary searches.

    Args:
        folder: The folder.
        token_dtype: Width of its tokens; infini-gram's own default is "u16".

    Raises:
        SourceNotFoundError: If the folder holds no index.
        DataError: If a file is cut off or does not go with the other.
        ValueError: If `token_dtype` is none of its choices.
    """

    takes_text = False
    takes_ids = True
    has_operators = False

    def __init__(self, folder: str | os.PathLike[str], *, token_dtype: TokenDtype = "u16") -> None:
        if token_dtype not in get_args(TokenDtype):
            raise ValueError(f"token_dtype must be one of u8, u16, u32, got {token_dtype!r}")
        self._dtype = np.dtype(f"<u{int(token_dtype[1:]) // 8}")
        place = Path(folder)
        texts = sorted(place.glob("tokenized.*"), key=lambda path: path.name)
        if not texts:
            raise SourceNotFoundError(
                f"{place} holds no index of infini-gram: there is no tokenized.0"
            )
        self._shards = [self._open(path) for path in texts]

    def _open(self, path: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], int]:
        """Open a shard: its tokens, its table, and the bytes of a place."""
        table = path.with_name(path.name.replace("tokenized", "table"))
        if not table.is_file():
            raise SourceNotFoundError(f"{path} has no {table.name} beside it; index it again")
        n_bytes, width = path.stat().st_size, self._dtype.itemsize
        n_tokens = n_bytes // width
        pointer = table.stat().st_size // n_tokens if n_tokens else 0
        sound = n_tokens and n_bytes == n_tokens * width
        if not sound or table.stat().st_size != pointer * n_tokens or not 1 <= pointer <= 8:
            raise DataError(
                f"{path} ({n_bytes:,} bytes) and {table.name} ({table.stat().st_size:,}) are no "
                f"index of {width}-byte tokens; one may be cut off, or token_dtype another"
            )
        return np.memmap(path, np.uint8, "r"), np.memmap(table, np.uint8, "r"), pointer

    def count(self, queries: Sequence[str | Sequence[int]]) -> Iterator[IndexCount]:
        """Count each query; see `LookupIndex.count`."""
        largest = np.iinfo(self._dtype).max
        for query in queries:
            ids = _ids(query)
            if not ids or not all(0 <= token < largest for token in ids):
                problem = f"token ids must be from 0 to {largest - 1:,}, at least one"
                yield IndexCount(count=None, token_ids=ids, problem=problem)
                continue
            wanted = np.array(ids, dtype=self._dtype).tobytes()
            n = sum(self._count(*shard, wanted) for shard in self._shards)
            yield IndexCount(count=n, token_ids=ids)

    def _count(
        self,
        texts: npt.NDArray[np.uint8],
        table: npt.NDArray[np.uint8],
        width: int,
        wanted: bytes,
    ) -> int:
        """Count places whose following bytes begin with the wanted ones."""
        n = table.size // width

        def edge(*, after: bool) -> int:
            low, high = 0, n
            while low < high:
                middle = (low + high) // 2
                place = int.from_bytes(table[middle * width : (middle + 1) * width], "little")
                here = texts[place : place + len(wanted)].tobytes()
                if here < wanted or (after and here == wanted):
                    low = middle + 1
                else:
                    high = middle
            return low

        return edge(after=True) - edge(after=False)


def _ids(query: str | Sequence[int]) -> tuple[int, ...]:
    """Take token ids, and no text."""
    if isinstance(query, str):
        raise TypeError("this index counts token ids; tokenize the text first")
    return tuple(query)


def open_index(name: str, *, cache: Path | None = None, url: str | None = None) -> LookupIndex:
    """Open an index by a name of the command line.

    Args:
        name: "infini-gram:INDEX", "infini-gram-mini:INDEX", or "local:FOLDER"
            (infini-gram's; "local-u8:" and "local-u32:" for other widths).
        cache: File in which answers of a service are kept.
        url: Address of the service; its own by default.

    Returns:
        The index.

    Raises:
        ValueError: If the name is none of these.
    """
    kind, _, rest = name.partition(":")
    if rest and kind in ("infini-gram", "infini-gram-mini"):
        made = InfiniGramAPI if kind == "infini-gram" else InfiniGramMiniAPI
        return made(rest, cache=cache, url=url)
    if rest and kind in ("local", "local-u8", "local-u32"):
        dtype: Any = kind.partition("-")[2] or "u16"
        return LocalIndex(rest, token_dtype=dtype)
    raise ValueError(
        f"index must be infini-gram:INDEX, infini-gram-mini:INDEX or local:FOLDER, got {name!r}"
    )


def lookup_table(
    table: SurfaceTable,
    index: LookupIndex,
    *,
    tokenize: Callable[[str], Sequence[int]] | None = None,
) -> pa.Table:
    """Look the names of a table up, as they stand and after a space.

    Args:
        table: The names.
        index: The index.
        tokenize: Tokenizer of the index; without it texts are sent as they are, where the index
            takes texts. A name with AND or OR in it, which the service would read as an operator,
            is then not looked up.

    Returns:
        One row a name and variant ("plain", and for indexes of tokens "spaced"): key_id, surface,
        variant, token_ids, count (null where it was not counted), is_approximate, is_summed and
        problem. A variant whose tokens hold those of the other is not summed: what it counts is
        counted there already.

    Raises:
        ValueError: If the index needs a tokenizer.
        RunnerError: If a service cannot be reached.

    Warns:
        SurfaceConsistencyWarning: If names could not be looked up, or counts are estimates.
    """
    if tokenize is None and not index.takes_text:
        raise ValueError("this index counts token ids: give `tokenizer`, that of the index")
    by_ids = tokenize is not None and index.takes_ids
    variants = _VARIANTS if index.takes_ids else _VARIANTS[:1]
    names = list(table.keys)
    asked: list[str | Sequence[int]] = []
    places: list[tuple[int, str]] = []
    refused: dict[tuple[int, str], IndexCount] = {}
    for key, name in enumerate(names):
        for variant in variants:
            text = f" {name}" if variant == "spaced" else name
            if tokenize is not None and by_ids:
                asked.append(tuple(tokenize(text)))
            elif index.has_operators and _OPERATOR.search(f" {name} "):
                problem = "AND or OR in the name is an operator there; give --tokenizer"
                refused[key, variant] = IndexCount(count=None, problem=problem)
                continue
            else:
                asked.append(text)
            places.append((key, variant))
    found = refused | dict(zip(places, index.count(asked), strict=True))
    rows = []
    for key, name in enumerate(names):
        counted = {variant: found[key, variant] for variant in variants}
        summed = _summed(counted)
        for variant, one in counted.items():
            place = {"key_id": key, "surface": name, "variant": variant}
            rows.append({**place, **asdict(one), "is_summed": variant in summed})
    _warn(rows)
    return pa.Table.from_pylist(rows, schema=_LOOKUPS)


def _summed(counted: dict[str, IndexCount]) -> set[str]:
    """Tell which variants are added: none whose occurrences another one counts too."""
    kept: list[str] = []
    by_length = sorted(counted, key=lambda variant: len(counted[variant].token_ids or ()))
    for variant in by_length:
        ids = counted[variant].token_ids
        if counted[variant].count is None:
            continue
        others = [counted[name].token_ids for name in kept]
        if ids is None or not any(other and _holds(ids, other) for other in others):
            kept.append(variant)
    return set(kept)


def _holds(whole: Sequence[int], part: Sequence[int]) -> bool:
    """Tell whether tokens stand together within others."""
    n = len(part)
    return any(tuple(whole[k : k + n]) == tuple(part) for k in range(len(whole) - n + 1))


def _warn(rows: Sequence[dict[str, Any]]) -> None:
    """Say what was not counted, and what is an estimate."""
    lost = [row for row in rows if row["count"] is None]
    if lost:
        named = ", ".join(repr(row["surface"]) for row in lost[:_SHOWN])
        warnings.warn(
            f"{len(lost)} look-ups have no count, such as {named}: {lost[0]['problem']}",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )
    if n := sum(row["is_approximate"] for row in rows):
        warnings.warn(
            f"{n} counts are estimates of the index; see is_approximate",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )
