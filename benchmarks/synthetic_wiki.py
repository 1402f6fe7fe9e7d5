"""A synthetic English Wikipedia at a tenth of its size, as the dump files that a build reads.

At scale 1 there are 1.8 million pages, 1 million of them redirects, 20 million category links, 1
million Wikidata entities with lines as long as real ones, and a year of pageviews. The files have
the formats of 2025 and later (`cl_target_id`, no `cl_to`) and what a build has to sort out: chains,
loops, interwiki and section redirects, shared labels, quotes and `),(` in titles, binary sort keys.

    python benchmarks/synthetic_wiki.py FOLDER --scale 1
"""

import argparse
import bz2
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
from isal import igzip

from surface_consistency.taxonomy import CATEGORIES, RELATIONS

DATE = "20260101"
MONTHS = tuple(f"2024{month:02}" for month in range(1, 13))
ROWS_A_STATEMENT = 8_000
POPULAR = 4_000
VOWELS = ("a", "e", "i", "o", "u", "an", "el", "ör")
SYLLABLES = [first + second for first in "bdfghjklmnprstvwz" for second in VOWELS]
COLUMNS = {
    "page": """
        page_id int(8) unsigned NOT NULL AUTO_INCREMENT
        page_namespace int(11) NOT NULL DEFAULT 0
        page_title varbinary(255) NOT NULL DEFAULT ''
        page_is_redirect tinyint(1) unsigned NOT NULL DEFAULT 0
        page_is_new tinyint(1) unsigned NOT NULL DEFAULT 0
        page_random double unsigned NOT NULL DEFAULT 0
        page_touched binary(14) NOT NULL
        page_links_updated varbinary(14) DEFAULT NULL
        page_latest int(8) unsigned NOT NULL DEFAULT 0
        page_len int(8) unsigned NOT NULL DEFAULT 0
        page_content_model varbinary(32) DEFAULT NULL
        page_lang varbinary(35) DEFAULT NULL""",
    "page_props": """
        pp_page int(11) NOT NULL
        pp_propname varbinary(60) NOT NULL
        pp_value blob NOT NULL
        pp_sortkey float DEFAULT NULL""",
    "redirect": """
        rd_from int(8) unsigned NOT NULL DEFAULT 0
        rd_namespace int(11) NOT NULL DEFAULT 0
        rd_title varbinary(255) NOT NULL DEFAULT ''
        rd_interwiki varbinary(32) DEFAULT NULL
        rd_fragment varbinary(255) DEFAULT NULL""",
    "linktarget": """
        lt_id bigint(20) unsigned NOT NULL AUTO_INCREMENT
        lt_namespace int(11) NOT NULL
        lt_title varbinary(255) NOT NULL""",
    "categorylinks": """
        cl_from int(8) unsigned NOT NULL DEFAULT 0
        cl_sortkey varbinary(230) NOT NULL DEFAULT ''
        cl_timestamp timestamp NOT NULL DEFAULT current_timestamp()
        cl_sortkey_prefix varbinary(255) NOT NULL DEFAULT ''
        cl_type enum('page','subcat','file') NOT NULL DEFAULT 'page'
        cl_collation_id smallint(5) unsigned NOT NULL DEFAULT 0
        cl_target_id bigint(20) unsigned NOT NULL""",
}


class Wiki:
    """Names and numbers of everything, the same for a scale in every process.

    Args:
        scale: 1 for a tenth of the English Wikipedia.
    """

    def __init__(self, scale: float) -> None:
        self.n_articles = int(700_000 * scale)
        self.n_redirects = int(1_000_000 * scale)
        self.n_others = int(100_000 * scale)
        self.n_entities = int(1_000_000 * scale)
        self.n_category_links = int(20_000_000 * scale)
        self.n_link_targets = int(3_000_000 * scale)
        self.n_other_props = int(2_000_000 * scale)

    @property
    def first_redirect(self) -> int:
        """Page number of the first redirect."""
        return self.n_articles + 1

    @cached_property
    def titles(self) -> list[str]:
        """Titles of the articles; some have parentheses, quotes, or look like SQL."""
        return [_article_title(number) for number in range(self.n_articles)]

    @cached_property
    def redirect_titles(self) -> list[str]:
        """Titles of the redirects; one in fifty is the label of an entity without an article."""
        n_bare = self.n_entities - self.n_articles
        names = [
            name_of(self.n_articles + number // 50)
            if number % 50 == 0 and number // 50 < n_bare
            else f"{name_of(10_000_000 + number)} {number % 9}"
            for number in range(self.n_redirects)
        ]
        return [f"{name} (song)" if place % 30 == 1 else name for place, name in enumerate(names)]

    def label(self, number: int) -> str:
        """Label of an entity: one in fifty has that of another."""
        return name_of(number - 7 if number % 50 == 7 else number)


def name_of(number: int) -> str:
    """Spell a number as two capitalised words; different numbers give different names."""
    digits = []
    number += len(SYLLABLES) ** 3
    while number:
        number, digit = divmod(number, len(SYLLABLES))
        digits.append(SYLLABLES[digit])
    half = len(digits) // 2
    return f"{''.join(digits[:half]).capitalize()} {''.join(digits[half:]).capitalize()}"


def _article_title(number: int) -> str:
    """Title of an article."""
    name = name_of(number)
    if number % 20 == 0:
        return f"{name} (film)"
    if number % 501 == 0:
        return f'{name}\'s "Song"'
    return f"{name} (1),(2) and 3" if number % 1_003 == 0 else name


def _sql(title: str) -> bytes:
    """Write a title as mysqldump does."""
    raw = title.replace(" ", "_").encode("utf-8")
    return raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'").replace(b'"', b'\\"')


def _write_table(folder: Path, name: str, rows: Iterable[bytes]) -> None:
    """Write a table as mysqldump does: its definition, then INSERTs of many rows."""
    lines = (line.split(maxsplit=1) for line in COLUMNS[name].strip().splitlines())
    columns = ",\n".join(f"  `{column}` {kind}" for column, kind in lines)
    with igzip.open(folder / f"enwiki-{DATE}-{name}.sql.gz", "wb", compresslevel=1) as file:
        file.write(f"-- MariaDB dump\n\nDROP TABLE IF EXISTS `{name}`;\n".encode())
        file.write(f"CREATE TABLE `{name}` (\n{columns}\n) ENGINE=InnoDB;\n\n".encode())
        source = iter(rows)
        while part := list(itertools.islice(source, ROWS_A_STATEMENT)):
            file.write(f"INSERT INTO `{name}` VALUES ".encode() + b",".join(part) + b";\n")
        file.write(b"\n-- Dump completed\n")


def write_page(folder: Path, wiki: Wiki) -> None:
    row = b"(%d,%d,'%b',%d,0,0.%08d,'20251230101010','20251230101011',%d,4000,'wikitext',NULL)"
    others = (name_of(20_000_000 + number) for number in range(wiki.n_others))
    kinds = itertools.chain(
        ((0, 0, title) for title in wiki.titles),
        ((0, 1, title) for title in wiki.redirect_titles),
        (((4, 10, 14)[place % 3], 0, title) for place, title in enumerate(others)),
    )
    _write_table(
        folder,
        "page",
        (
            row % (page, namespace, _sql(title), is_redirect, page, 1_200_000_000 + page)
            for page, (namespace, is_redirect, title) in enumerate(kinds, start=1)
        ),
    )


def write_page_props(folder: Path, wiki: Wiki) -> None:
    """Every article has its item, but one in a hundred; one in forty is a disambiguation page."""
    rng = np.random.default_rng(1)
    others = rng.integers(1, wiki.n_articles + 1, wiki.n_other_props).tolist()
    rows = itertools.chain(
        (
            b"(%d,'wikibase_item','Q%d',NULL)" % (page, page)
            for page in range(1, wiki.n_articles + 1)
            if page % 100
        ),
        (b"(%d,'disambiguation','',NULL)" % page for page in range(40, wiki.n_articles + 1, 40)),
        (b"(%d,'page_image_free','Some_image_of_%d.jpg',NULL)" % (page, page) for page in others),
    )
    _write_table(folder, "page_props", rows)


def write_redirect(folder: Path, wiki: Wiki) -> None:
    """Of a thousand redirects 10 lead to redirects, 2 in circles, 5 away, 20 to sections."""
    rng = np.random.default_rng(2)
    targets = rng.integers(0, wiki.n_articles, wiki.n_redirects).tolist()
    titles = wiki.redirect_titles

    def rows() -> Iterator[bytes]:
        for number, target in enumerate(targets):
            page, kind = wiki.first_redirect + number, number % 1_000
            title = wiki.titles[target]
            if kind < 10 and number:
                title = titles[number - 1]
            elif kind in {20, 21}:
                title = titles[min(number + 1, len(titles) - 1) if kind == 20 else number - 1]
            wiki_name = b"'fr'" if 30 <= kind < 35 else b"''"
            section = b"'History'" if 40 <= kind < 60 else b"''"
            yield b"(%d,0,'%b',%b,%b)" % (page, _sql(title), wiki_name, section)

    _write_table(folder, "redirect", rows())


def _target_numbers(wiki: Wiki) -> dict[str, int]:
    """Numbers of the redirect categories among the link targets."""
    step = max(wiki.n_link_targets // len(CATEGORIES), 1)
    return {label: 1 + place * step for place, label in enumerate(CATEGORIES)}


def write_linktarget(folder: Path, wiki: Wiki) -> None:
    numbers = {number: label for label, number in _target_numbers(wiki).items()}
    last = max(wiki.n_link_targets, *numbers)
    _write_table(
        folder,
        "linktarget",
        (
            b"(%d,14,'%b')" % (number, _sql(numbers[number]))
            if number in numbers
            else b"(%d,%d,'%b')" % (number, (0, 10, 14)[number % 3], _sql(name_of(number * 3)))
            for number in range(1, last + 1)
        ),
    )


def write_categorylinks(folder: Path, wiki: Wiki) -> None:
    """Two redirects in five are in one to three of the 33; the common ones hold most."""
    rng = np.random.default_rng(3)
    keys = [
        rng.bytes(24).replace(b"\\", b"\\\\").replace(b"'", b"\\'").replace(b"\n", b"\\n")
        for _ in range(4_096)
    ]
    wanted = list(_target_numbers(wiki).values())
    weights = 1 / np.arange(1, len(wanted) + 1)
    n_ours = int(wiki.n_redirects * 0.5)
    ours = np.sort(rng.integers(0, int(wiki.n_redirects * 0.4), n_ours)) + wiki.first_redirect
    kinds = rng.choice(wanted, n_ours, p=weights / weights.sum())
    n_others = wiki.n_category_links - n_ours
    pages = np.sort(rng.integers(1, wiki.n_articles + 1, n_others))
    targets = rng.integers(1, max(wiki.n_link_targets, 2), n_others)
    targets += np.isin(targets, wanted)
    row = b"(%d,'%b','2025-03-01 10:11:12','','page',2,%d)"

    def rows() -> Iterator[bytes]:
        some_keys = itertools.cycle(keys)
        for start in range(0, n_others, 1_000_000):
            part = slice(start, start + 1_000_000)
            yield from map(
                row.__mod__,
                zip(pages[part].tolist(), some_keys, targets[part].tolist(), strict=False),
            )
        yield from map(row.__mod__, zip(ours.tolist(), some_keys, kinds.tolist(), strict=False))

    _write_table(folder, "categorylinks", rows())


def _json_filler(rng: np.random.Generator) -> tuple[bytes, bytes, bytes]:
    """Labels, descriptions and claims that no build wants: most of a real line."""
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
    """Write the entities: those of the articles come first, and one to three facts about each."""
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
    """Write the lines of a month: two pages in three, two kinds of access, and another wiki."""
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
    """Pack the lines once, and put the packed pieces of each month in another order."""
    lines = _view_lines(wiki)
    size = max(len(lines) // 48, 1)
    pieces = [
        bz2.compress(b"".join(lines[start : start + size]), 9)
        for start in range(0, len(lines), size)
    ]
    for month, name in enumerate(MONTHS):
        with (folder / f"pageviews-{name}-user.bz2").open("wb") as file:
            file.writelines(pieces[month:] + pieces[:month])


WRITERS: tuple[Callable[[Path, Wiki], None], ...] = (
    write_categorylinks,
    write_wikidata,
    write_pageviews,
    write_page,
    write_redirect,
    write_page_props,
    write_linktarget,
)


def write_wiki(folder: Path, scale: float, *, processes: int = 2) -> None:
    """Write all dumps of a synthetic wiki.

    Args:
        folder: Where they go; made if need be.
        scale: 1 for a tenth of the English Wikipedia.
        processes: How many files are written at a time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes) as pool:
        for done in [pool.submit(_write, writer, folder, scale) for writer in WRITERS]:
            done.result()


def _write(writer: Callable[[Path, Wiki], None], folder: Path, scale: float) -> None:
    """Write one dump."""
    writer(folder, Wiki(scale))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    start = time.perf_counter()
    write_wiki(arguments.folder, arguments.scale, processes=arguments.processes)
    for path in sorted(arguments.folder.iterdir()):
        print(f"{path.stat().st_size / 1e6:10,.1f} MB  {path.name}")
    print(f"{time.perf_counter() - start:,.0f} s")


if __name__ == "__main__":
    main()
