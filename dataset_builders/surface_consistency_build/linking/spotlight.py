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
    """Position of its first character, in the text in NFC."""

    stop: int
    """Position after its last character."""

    surface: str
    """The text of the span, in NFC."""

    entity_id: str
    """Id of the entity."""

    score: float
    """Similarity score of the service, in [0, 1]."""


class SpotlightClient:
    """Client of a server of DBpedia Spotlight, which returns the mentions in texts.

    Spotlight runs in Docker (dbpedia-spotlight/spotlight-docker); Kandpal et al. used confidence
    0.4 and support 20. Each span of an answer is compared with the text, in the UTF-16 units of
    Java. A text fails if its answer names words that are not in the text, or if the server rejects
    it (if it is too long, for example). Offsets count characters of the text in NFC.

    Args:
        base_url: Base URL of its methods, such as "http://localhost:2222/rest".
        confidence: Minimum confidence, in [0, 1].
        support: Minimum number of links to an entity in Wikipedia.
        entities: Entity id by DBpedia URI or title, such as from `dbpedia_uris`; mentions of other
            entities have the id "name:TITLE".
        cache: File in which answers are stored; None to store no answers.
        options: Options of `WebClient`, such as concurrency, timeout and max_retries.

    Raises:
        ValueError: If confidence or support is out of range, or `base_url` is not a URL.
    """

    def __init__(
        self,
        base_url: str,
        *,
        confidence: float = 0.4,
        support: int = 20,
        entities: Mapping[str, str] | None = None,
        cache: Path | None = None,
        **options: Any,  # noqa: ANN401 - options of WebClient
    ) -> None:
        if not 0.0 <= confidence <= 1.0:
            raise ValueError(f"confidence must be from 0 to 1, got {confidence!r}")
        if support < 0:
            raise ValueError(f"support must be at least 0, got {support!r}")
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(
                f"base_url must be a URL such as http://localhost:2222/rest, got {base_url!r}"
            )
        url = base_url.rstrip("/").removesuffix(f"/{_ANNOTATE}")
        self.web = WebClient(
            url=f"{url}/{_ANNOTATE}", name="DBpedia Spotlight", as_form=True, cache=cache, **options
        )
        """Client that sends the requests."""
        self._asked = {"confidence": f"{confidence:g}", "support": str(support)}
        self._ids = {
            comparable(resource_title(name)): entity for name, entity in (entities or {}).items()
        }

    def link(self, texts: Iterable[str | bytes] | PackedTexts) -> Iterator[list[Mention] | None]:
        """Find the mentions in each text; blank texts are not sent.

        Args:
            texts: The texts, as for `SurfaceCounter.feed`.

        Yields:
            The mentions in each text, in order; None for a text that the server rejects, or whose
            answer names words that are not in the text.

        Raises:
            RunnerError: If the server cannot be reached or its answer cannot be read.
            DataError: If answers cannot be stored.
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
        """Read the mentions of a text; None if a mention is not in the text."""
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
    """Find the start of a span whose offset counts UTF-16 units, or else characters."""
    if offset < 0 or not surface:
        return None
    start = offset
    if not text.isascii():
        # Java counts a character above U+FFFF as two.
        before = text.encode("utf-16-le", "surrogatepass")[: 2 * offset]
        start = len(before.decode("utf-16-le", "replace"))
    for place in (start, offset):
        if text[place : place + len(surface)] == surface:
            return place
    return None


def _resources(place: int, answer: dict[str, Any]) -> list[Mapping[str, Any]]:
    """Read an answer; raise ValueError if it is not valid."""
    # The service omits the list if it found nothing, and returns a single item as an object.
    given = answer.get("Resources", [])
    given = [given] if isinstance(given, dict) else given
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise ValueError("Resources is not a list of objects")
    return given
