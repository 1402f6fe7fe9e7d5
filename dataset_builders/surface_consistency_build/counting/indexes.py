"""Look up counts of n-grams in indexes of tokens: infini-gram and infini-gram mini.

Lexical Popularity (section 4) uses the counts of 7-grams from the web service of infini-gram, which
has indexes of the Pile and Dolma. Such an index counts sequences of token ids, or substrings.
"""

import os
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import DataError, SourceNotFoundError, SurfaceConsistencyWarning
from surface_consistency.web import Request, WebClient, in_order

TokenDtype = Literal["u8", "u16", "u32"]

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCount:
    """Answer of an index to one query."""

    count: int | None
    """Number of occurrences; None if the query could not be counted."""

    is_approximate: bool = False
    """Whether the count is an estimate according to the index."""

    problem: str | None = None
    """Reason for a missing count."""


class InfiniGramAPI:
    """The web service of infini-gram.

    Args:
        index: One of its indexes, such as "v4_piletrain_llama".
        url: Its address.
        cache: File in which answers are stored; None to store no answers.
        options: Options of `WebClient`, such as concurrency, timeout and max_retries.
    """

    service: ClassVar[str] = "infini-gram"
    """Its name."""

    address: ClassVar[str] = "https://api.infini-gram.io/"
    """Its address."""

    takes_ids = True
    """Whether queries are token ids; otherwise they are texts."""

    def __init__(
        self,
        index: str,
        *,
        url: str | None = None,
        cache: Path | None = None,
        **options: Any,  # noqa: ANN401 - options of WebClient
    ) -> None:
        self.index = index
        """Name of the index."""
        url = self.address if url is None else url
        self.web = WebClient(url=url, name=self.service, cache=cache, **options)
        """Client that sends the requests."""

    def count(self, queries: Sequence[str | Sequence[int]]) -> Iterator[IndexCount]:
        """Count each query.

        Args:
            queries: Token ids, or texts; see `takes_ids`.

        Yields:
            The counts, in order; None for a query that cannot be counted.

        Raises:
            RunnerError: If a service cannot be reached or its answer cannot be read.
        """
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
        cache: File in which answers are stored; None to store no answers.
        options: Options of `WebClient`.
    """

    service = "infini-gram mini"
    address = "https://api.infini-gram-mini.io/"
    takes_ids = False


def _read_count(place: int, answer: dict[str, Any]) -> IndexCount:
    """Read an answer of either service; raise ValueError if it is not valid."""
    if "error" in answer:
        return IndexCount(count=None, problem=f"error of the index: {answer['error']}")
    n = answer.get("count")
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ValueError(f"`count` must be a number of at least 0; got {n!r}")
    return IndexCount(count=n, is_approximate=bool(answer.get("approx", False)))


class LocalIndex:
    """A local index of infini-gram, read without its package.

    For each shard its folder contains `tokenized.N` (the documents' tokens, each document after a
    token with all bits set) and `table.N` (the positions of all tokens, sorted by the bytes that
    follow). Both remain on the disk; a count needs two binary searches.

    Args:
        folder: The folder.
        token_dtype: Width of its tokens; the default of infini-gram is "u16".

    Raises:
        SourceNotFoundError: If the folder does not contain an index.
        DataError: If a file is cut off or does not match the other.
        ValueError: If `token_dtype` is not one of its choices.
    """

    takes_ids = True

    def __init__(self, folder: str | os.PathLike[str], *, token_dtype: TokenDtype = "u16") -> None:
        if token_dtype not in get_args(TokenDtype):
            raise ValueError(f"token_dtype must be one of u8, u16, u32, got {token_dtype!r}")
        self._dtype = np.dtype(f"<u{int(token_dtype[1:]) // 8}")
        place = Path(folder)
        texts = sorted(place.glob("tokenized.*"), key=lambda path: path.name)
        if not texts:
            raise SourceNotFoundError(
                f"{place} is not an index of infini-gram: tokenized.0 not found"
            )
        self._shards = [self._open(path) for path in texts]

    def _open(self, path: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], int]:
        """Open a shard: its tokens, its table, and the number of bytes of a position."""
        table = path.with_name(path.name.replace("tokenized", "table"))
        if not table.is_file():
            raise SourceNotFoundError(f"{path}: {table.name} not found; index the corpus again")
        n_bytes, width = path.stat().st_size, self._dtype.itemsize
        n_tokens = n_bytes // width
        pointer = table.stat().st_size // n_tokens if n_tokens else 0
        sound = n_tokens and n_bytes == n_tokens * width
        if not sound or table.stat().st_size != pointer * n_tokens or not 1 <= pointer <= 8:
            raise DataError(
                f"{path} ({n_bytes:,} bytes) and {table.name} ({table.stat().st_size:,}) are not "
                f"an index of {width}-byte tokens; one may be cut off, or token_dtype is incorrect"
            )
        return np.memmap(path, np.uint8, "r"), np.memmap(table, np.uint8, "r"), pointer

    def count(self, queries: Sequence[str | Sequence[int]]) -> Iterator[IndexCount]:
        """Count each query; see `InfiniGramAPI.count`."""
        largest = np.iinfo(self._dtype).max
        for query in queries:
            if not query or not all(
                isinstance(token, int) and 0 <= token < largest for token in query
            ):
                problem = f"a query must be one or more token ids from 0 to {largest - 1:,}"
                yield IndexCount(count=None, problem=problem)
                continue
            wanted = np.array(query, dtype=self._dtype).tobytes()
            yield IndexCount(count=sum(self._count(*shard, wanted) for shard in self._shards))

    def _count(
        self, texts: npt.NDArray[np.uint8], table: npt.NDArray[np.uint8], width: int, wanted: bytes
    ) -> int:
        """Count positions whose following bytes begin with the wanted bytes."""
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


LookupIndex = InfiniGramAPI | LocalIndex
"""An index that counts occurrences in a corpus."""


def open_index(name: str, *, cache: Path | None = None, url: str | None = None) -> LookupIndex:
    """Open an index by its name on the command line.

    Args:
        name: "infini-gram:INDEX", "infini-gram-mini:INDEX", or "local:FOLDER"
            (infini-gram's; "local-u8:" and "local-u32:" for other widths).
        cache: File in which answers of a service are stored.
        url: Address of the service; by default the public one.

    Returns:
        The index.

    Raises:
        ValueError: If the name has another form.
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


def lookup_counts(
    ngrams: Sequence[Sequence[Hashable]], index: LookupIndex
) -> npt.NDArray[np.int64]:
    """Look up n-grams in an index.

    Args:
        ngrams: Tokens of each n-gram, such as those of `NgramCounter.ngrams`: ids of the tokenizer
            of the index, or words, which are joined by spaces, for an index of texts.
        index: The index.

    Returns:
        Number of occurrences of each n-gram, shape `(len(ngrams),)`.

    Raises:
        ValueError: If the index counts token ids, and the tokens are words.
        DataError: If the index cannot count an n-gram; the message contains it.
        RunnerError: If a service cannot be reached.

    Warns:
        SurfaceConsistencyWarning: If counts are estimates of the index.
    """
    if index.takes_ids and any(isinstance(token, str) for gram in ngrams[:1] for token in gram):
        raise ValueError(
            "`tokenizer` is required: the tokenizer of the index, which counts token ids"
        )
    queries: list[Any] = [
        tuple(gram) if index.takes_ids else " ".join(map(str, gram)) for gram in ngrams
    ]
    found = list(index.count(queries))
    lost = [query for query, one in zip(queries, found, strict=True) if one.count is None]
    if lost:
        problem = next(one.problem for one in found if one.count is None)
        shown = ", ".join(map(repr, lost[:_SHOWN]))
        raise DataError(f"{len(lost)} n-grams have no count, such as {shown}: {problem}")
    if n := sum(one.is_approximate for one in found):
        warnings.warn(
            f"{n} counts are estimates of the index", SurfaceConsistencyWarning, stacklevel=2
        )
    return np.array([one.count for one in found], dtype=np.int64)
