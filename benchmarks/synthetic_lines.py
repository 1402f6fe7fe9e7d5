"""The line-based dumps of a synthetic wiki: Wikidata and pageviews."""

import bz2
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from isal import igzip
from synthetic_names import DATE, MONTHS, Wiki, name_of

from surface_consistency.taxonomy import RELATIONS

POPULAR = 4_000


def _json_filler(rng: np.random.Generator) -> tuple[bytes, bytes, bytes]:
    """Return labels, descriptions and claims that builds do not use; they are most of a line."""
    languages = [first + second for first in "abcdfghijk" for second in "aostv"]
    words = [name_of(int(number)) for number in rng.integers(0, 10**7, 200)]
    labels = ",".join(
        f'"{code}":{{"language":"{code}","value":"{words[place]}"}}'
        for place, code in enumerate(languages)
    )
    descriptions = ",".join(
        f'"{code}":{{"language":"{code}","value":"{words[place]} of {words[-place]}"}}'
        for place, code in enumerate(languages)
    )
    claims = ",".join(
        f'"P{9_000 + place}":[{{"mainsnak":{{"snaktype":"value","property":"P{9_000 + place}",'
        f'"datavalue":{{"value":"{words[place]}","type":"string"}},"datatype":"external-id"}},'
        f'"type":"statement","id":"Q1$A-{place}","rank":"normal","references":[{{"hash":"{place:040}",'
        f'"snaks":{{"P248":[{{"snaktype":"value","property":"P248","datavalue":{{"value":'
        f'{{"entity-type":"item","numeric-id":{place},"id":"Q{place}"}},"type":"wikibase-entityid"}},'
        f'"datatype":"wikibase-item"}}]}},"snaks-order":["P248"]}}]}}]'
        for place in range(14)
    )
    return labels.encode(), descriptions.encode(), claims.encode()


def _claim(name: bytes, item: int) -> bytes:
    """Write a property with one statement."""
    return (
        b'"%b":[{"mainsnak":{"snaktype":"value","property":"%b","datavalue":{"value":{"entity-type":'
        b'"item","numeric-id":%d,"id":"Q%d"},"type":"wikibase-entityid"},"datatype":"wikibase-item"},'
        b'"type":"statement","id":"Q0$1","rank":"normal"}]' % (name, name, item, item)
    )


def _entity_lines(wiki: Wiki) -> Iterator[bytes]:
    """Yield the entities, first those of the articles, with one to three facts about each."""
    rng = np.random.default_rng(4)
    fillers = [_json_filler(rng) for _ in range(16)]
    properties = [relation.property_id.encode() for relation in RELATIONS.values()]
    first = rng.integers(0, len(properties), wiki.n_entities).tolist()
    counts = rng.integers(1, 4, wiki.n_entities).tolist()
    popular = max(min(POPULAR, wiki.n_articles // 2), 1)
    objects = rng.integers(1, popular + 1, (wiki.n_entities, 3)).tolist()
    titles = [title.replace('"', '\\"').encode() for title in wiki.titles]
    line = (
        b'{"type":"item","id":"Q%d","labels":{"en":{"language":"en","value":"%b"},%b},'
        b'"descriptions":{%b},"aliases":{"en":[{"language":"en","value":"%b Jr"}]},'
        b'"claims":{%b%b},"sitelinks":{%b},"lastrevid":1}'
    )
    for number in range(wiki.n_entities):
        labels, descriptions, claims = fillers[number % len(fillers)]
        label = wiki.label(number).encode()
        facts = b"".join(
            _claim(properties[(first[number] + place) % len(properties)], objects[number][place])
            + b","
            for place in range(counts[number])
        )
        link = (
            b'"enwiki":{"site":"enwiki","title":"%b","badges":[]}' % titles[number]
            if number < wiki.n_articles
            else b""
        )
        yield line % (number + 1, label, labels, descriptions, label, facts, claims, link)


def write_wikidata(folder: Path, wiki: Wiki) -> None:
    path = folder / f"wikidata-{DATE}-all.json.gz"
    with igzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"[\n")
        lines = _entity_lines(wiki)
        separator = b""
        while part := list(itertools.islice(lines, 500)):
            file.write(separator + b",\n".join(part))
            separator = b",\n"
        file.write(b"\n]\n")


def _view_lines(wiki: Wiki) -> list[bytes]:
    """Return the lines of a month: two thirds of the pages, two access types, and another wiki."""
    rng = np.random.default_rng(5)
    titles = [*wiki.titles, *wiki.redirect_titles]
    counts = (rng.pareto(1.1, (len(titles), 2)) * 3 + 1).astype(np.int64).tolist()
    days = [
        "".join(
            f"{chr(65 + day)}{rng.integers(1, 40)}" for day in sorted(rng.integers(0, 31, size))
        )
        for size in rng.integers(1, 9, 4_096)
    ]
    by_day = [text.encode() for text in days]
    lines = []
    for place, (title, views) in enumerate(zip(titles, counts, strict=True)):
        if place % 3 == 2:
            continue
        name = title.replace(" ", "_").encode()
        page = b"null" if place % 11 == 0 else b"%d" % (place + 1)
        for number, access in enumerate((b"desktop", b"mobile-web")):
            text = by_day[(place * 7 + number) % len(by_day)]
            line = b" %b %b %b %d %b\n" % (name, page, access, views[number], text)
            lines.append(b"en.wikipedia" + line)
            if place % 2:
                lines.append(b"fr.wikipedia" + line)
    return sorted(lines, reverse=True)


def write_pageviews(folder: Path, wiki: Wiki) -> None:
    """Compress the lines once, and write the compressed parts in a different order per month."""
    lines = _view_lines(wiki)
    size = max(len(lines) // 48, 1)
    pieces = [
        bz2.compress(b"".join(lines[start : start + size]), 9)
        for start in range(0, len(lines), size)
    ]
    for month, name in enumerate(MONTHS):
        with (folder / f"pageviews-{name}-user.bz2").open("wb") as file:
            file.writelines(pieces[month:] + pieces[:month])
