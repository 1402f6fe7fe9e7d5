"""Read the titles of DBpedia URIs, and resolve the URIs to Wikidata items."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from surface_consistency.errors import DataError
from surface_consistency.web import Request, WebClient, in_order

ENDPOINT: Final = "https://dbpedia.org/sparql"
"""The official SPARQL endpoint of DBpedia."""

_RESOURCE: Final = "dbpedia.org/resource/"
_ITEM: Final = "http://www.wikidata.org/entity/"
_AT_ONCE: Final = 20
_MAX_ROWS: Final = 10_000
_QUERY: Final = """
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX dbo: <http://dbpedia.org/ontology/>
SELECT DISTINCT ?uri ?item WHERE {
  VALUES ?item { %s }
  { ?uri owl:sameAs ?item } UNION { ?uri dbo:wikiPageRedirects/owl:sameAs ?item }
  FILTER(STRSTARTS(STR(?uri), "http://dbpedia.org/resource/"))
}"""


def resource_title(key: str) -> str:
    """Return the title in a DBpedia URI.

    Args:
        key: The URI, or a title with spaces or underscores.

    Returns:
        The title with spaces.

    Examples:
        >>> resource_title("http://dbpedia.org/resource/%C3%89dith_Piaf")
        'Édith Piaf'
    """
    _, is_uri, rest = key.partition(_RESOURCE)
    # A percent sign in a title is a literal character.
    return (unquote(rest) if is_uri else key).replace("_", " ").strip()


def dbpedia_uris(
    items: Iterable[str],
    *,
    endpoint: str = ENDPOINT,
    cache: Path | None = None,
    **options: Any,  # noqa: ANN401 - options of WebClient
) -> dict[str, str]:
    """Resolve DBpedia URIs to Wikidata items with a SPARQL endpoint.

    RedirectQA (footnote 7) resolves the URIs that Spotlight returns with the official endpoint. A
    count needs only the entities of the questions, so the query runs in the other direction: it
    returns every URI that is `owl:sameAs` a given item, and the URIs that redirect to one of these.
    Older releases of DBpedia, and linkers trained on them, use such URIs.

    Args:
        items: Wikidata ids such as "Q90"; each is looked up once.
        endpoint: Address of the endpoint.
        cache: File in which replies are stored; None to store no replies.
        options: Options of `WebClient`, such as concurrency, timeout and max_retries.

    Returns:
        Wikidata id by URI. Items without a page in the English Wikipedia have no URI.

    Raises:
        ValueError: If an item is not a Wikidata id.
        DataError: If the endpoint rejects a query, or truncates a result.
        RunnerError: If the endpoint cannot be reached.
    """
    wanted = list(dict.fromkeys(items))
    for item in wanted:
        if item[:1] != "Q" or not (item.isascii() and item[1:].isdigit()):
            raise ValueError(f"items must be Wikidata ids such as Q90, got {item!r}")
    queries = [
        _QUERY % " ".join(f"<{_ITEM}{item}>" for item in wanted[start : start + _AT_ONCE])
        for start in range(0, len(wanted), _AT_ONCE)
    ]
    form = {"format": "application/sparql-results+json"}
    web = WebClient(url=endpoint, name="the SPARQL endpoint", as_form=True, cache=cache, **options)
    found: dict[str, str] = {}
    for reply in in_order(web.ask([Request({"query": q, **form}) for q in queries], _bindings)):
        if reply.value is None or len(reply.value) >= _MAX_ROWS:
            problem = reply.refusal or f"its result reaches the limit of {_MAX_ROWS:,} rows"
            raise DataError(f"{endpoint} cannot resolve DBpedia URIs: {problem}; use another")
        found |= reply.value
    return found


def _bindings(place: int, answer: dict[str, Any]) -> Mapping[str, str]:
    """Read a result; raise ValueError if it is damaged."""
    try:
        rows = answer["results"]["bindings"]
        return {row["uri"]["value"]: row["item"]["value"].removeprefix(_ITEM) for row in rows}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a SPARQL result in JSON: {error!r}") from error
