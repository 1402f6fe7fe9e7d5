"""A client of the web service of DBpedia Spotlight, which links mentions to DBpedia."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from surface_consistency.rows.cells import count_of
from surface_consistency.web import Request, WebClient, in_order
from surface_consistency_build.counting.texts import PackedTexts, comparable
from surface_consistency_build.linking.dbpedia import resource_title

_ANNOTATE: Final = "annotate"

_SCORE: Final = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,40})?(?:[eE]-?[0-9]{1,2})?")


class Mention(NamedTuple):
    """A span of a text that is linked to an entity."""

    start: int
    """First character, in the text in NFC."""

    stop: int
    """Character after the last."""

    surface: str
    """The text of the span, in NFC."""

    entity_id: str
    """The entity."""

    score: float
    """Similarity score of the service, in [0, 1]."""


class SpotlightClient:
    """Asks a server of DBpedia Spotlight for the mentions of texts.

    Spotlight runs in Docker (dbpedia-spotlight/spotlight-docker); Kandpal et al. used confidence
    0.4 and support 20. Every span of an answer is held against the text, in the UTF-16 units that
    Java counts in; a text whose answer names other words than it holds has failed, and so has one
    that the server refuses (too long, for example). Offsets count characters of the text in NFC.

    Args:
        base_url: Where its methods are, such as "http://localhost:2222/rest".
        confidence: Least confidence, in [0, 1].
        support: Least number of links to an entity in Wikipedia.
        entities: Entity id by DBpedia URI or title, such as from `dbpedia_uris`; mentions of other
            entities have the id "name:TITLE".
        cache: File in which answers are kept; None for none.
        options: Options of `WebClient`: concurrency, timeout, max_retries and so on.

    Raises:
        ValueError: If confidence or support is out of range, or the address is none.
    """

    def __init__(
        self,
        base_url: str,
        *,
        confidence: float = 0.4,
        support: int = 20,
        entities: Mapping[str, str] | None = None,
        cache: Path | None = None,
        **options: Any,  # noqa: ANN401 - those of WebClient
    ) -> None:
        if not 0.0 <= confidence <= 1.0:
            raise ValueError(f"confidence must be from 0 to 1, got {confidence!r}")
        if support < 0:
            raise ValueError(f"support must be at least 0, got {support!r}")
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(
                f"base_url must be an address such as http://localhost:2222/rest, got {base_url!r}"
            )
        url = base_url.rstrip("/").removesuffix(f"/{_ANNOTATE}")
        self.web = WebClient(
            url=f"{url}/{_ANNOTATE}", name="DBpedia Spotlight", as_form=True, cache=cache, **options
        )
        """What sends the requests."""
        self._asked = {"confidence": f"{confidence:g}", "support": str(support)}
        self._ids = {
            comparable(resource_title(name)): entity for name, entity in (entities or {}).items()
        }

    def link(self, texts: Iterable[str | bytes] | PackedTexts) -> Iterator[list[Mention] | None]:
        """Find the mentions of each text; blank ones are not sent.

        Args:
            texts: The texts, as `SurfaceCounter.feed` takes them.

        Yields:
            The mentions of each text, in order; None for a text that the server refuses, or whose
            answer names other words than its own.

        Raises:
            RunnerError: If the server cannot be reached or answers nothing that can be read.
            DataError: If answers cannot be kept.
        """
        packed = texts if isinstance(texts, PackedTexts) else PackedTexts.pack(texts)
        whole = [comparable(text) for text in packed]
        sent = [text for text in whole if text.strip()]
        requests = [Request({"text": text, **self._asked}) for text in sent]
        replies = in_order(self.web.ask(requests, _resources))
        for text in whole:
            if not text.strip():
                yield []
                continue
            value = next(replies).value
            yield None if value is None else self._mentions(text, value)

    def _mentions(self, text: str, resources: list[Mapping[str, Any]]) -> list[Mention] | None:
        """Read the mentions of a text; None where one is not in it."""
        mentions = []
        for resource in resources:
            try:
                uri, surface = str(resource["@URI"]), str(resource["@surfaceForm"])
                offset = count_of(resource["@offset"])
                score = str(resource.get("@similarityScore", 1.0))
            except (KeyError, ValueError):
                return None
            if offset is None or not _SCORE.fullmatch(score):
                return None
            start = _place(text, surface, offset)
            if start is None:
                return None
            title = comparable(resource_title(uri))
            entity = self._ids.get(title, f"name:{title}")
            mentions.append(Mention(start, start + len(surface), surface, entity, float(score)))
        return sorted(mentions)


def _place(text: str, surface: str, offset: int) -> int | None:
    """Find where a span begins whose offset counts UTF-16 units, or characters where that fails."""
    if offset < 0 or not surface:
        return None
    start = offset
    if not text.isascii():
        # Java counts a character beyond U+FFFF twice.
        before = text.encode("utf-16-le", "surrogatepass")[: 2 * offset]
        start = len(before.decode("utf-16-le", "replace"))
    for place in (start, offset):
        if text[place : place + len(surface)] == surface:
            return place
    return None


def _resources(place: int, answer: dict[str, Any]) -> list[Mapping[str, Any]]:
    """Read an answer; a ValueError means that it is none."""
    # The service leaves the list out where it found nothing, and gives a lone one as an object.
    given = answer.get("Resources", [])
    given = [given] if isinstance(given, dict) else given
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise ValueError("Resources is no list of objects")
    return given
