"""Counts of n-grams looked up in indexes of tokens: infini-gram and infini-gram mini.

Lexical Popularity (section 4) takes the counts of its 7-grams from the web service of infini-gram,
which has indexes of the Pile and Dolma. Such an index counts sequences of token ids, or substrings.
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
    """What an index says of one query."""

    count: int | None
    """Occurrences; None where the query could not be counted."""

    is_approximate: bool = False
    """Whether the index says that the count is an estimate."""

    problem: str | None = None
    """Why there is no count."""


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

    takes_ids = True
    """Whether queries are token ids; otherwise they are texts."""

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
        """Count each query.

        Args:
            queries: Token ids, or texts; see `takes_ids`.

        Yields:
            The counts, in order; None for a query that cannot be counted.

        Raises:
            RunnerError: If a service cannot be reached or answers nothing that can be read.
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
        cache: File in which answers are kept; None for none.
        options: Options of `WebClient`.
    """

    service = "infini-gram mini"
    address = "https://api.infini-gram-mini.io/"
    takes_ids = False


def _read_count(place: int, answer: dict[str, Any]) -> IndexCount:
    """Read an answer of either service; a ValueError means that it is none."""
    if "error" in answer:
        return IndexCount(count=None, problem=f"the index says: {answer['error']}")
    n = answer.get("count")
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ValueError(f"`count` is no number from 0: {n!r}")
    return IndexCount(count=n, is_approximate=bool(answer.get("approx", False)))


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

    takes_ids = True

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
        """Count each query; see `InfiniGramAPI.count`."""
        largest = np.iinfo(self._dtype).max
        for query in queries:
            if not query or not all(
                isinstance(token, int) and 0 <= token < largest for token in query
            ):
                problem = f"token ids must be from 0 to {largest - 1:,}, at least one"
                yield IndexCount(count=None, problem=problem)
                continue
            wanted = np.array(query, dtype=self._dtype).tobytes()
            yield IndexCount(count=sum(self._count(*shard, wanted) for shard in self._shards))

    def _count(
        self, texts: npt.NDArray[np.uint8], table: npt.NDArray[np.uint8], width: int, wanted: bytes
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


LookupIndex = InfiniGramAPI | LocalIndex
"""Counts occurrences in a corpus that was indexed."""


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


def lookup_counts(
    ngrams: Sequence[Sequence[Hashable]], index: LookupIndex
) -> npt.NDArray[np.int64]:
    """Look n-grams up in an index.

    Args:
        ngrams: Tokens of each n-gram, such as those of `NgramCounter.ngrams`: ids of the tokenizer
            of the index, or words, which are joined by spaces, for an index that takes texts.
        index: The index.

    Returns:
        Occurrences of each n-gram, shape `(len(ngrams),)`.

    Raises:
        ValueError: If the index counts token ids, and the tokens are words.
        DataError: If the index cannot count an n-gram; names it.
        RunnerError: If a service cannot be reached.

    Warns:
        SurfaceConsistencyWarning: If counts are estimates of the index.
    """
    if index.takes_ids and any(isinstance(token, str) for gram in ngrams[:1] for token in gram):
        raise ValueError(
            "`tokenizer` is needed: the tokenizer of the index, which counts token ids"
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
