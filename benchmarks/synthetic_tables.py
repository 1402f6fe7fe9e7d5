"""SQL dumps of a synthetic wiki, in the schema of 2025 and later."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from isal import igzip
from synthetic_names import DATE, Wiki, name_of

from surface_consistency.taxonomy import CATEGORIES

ROWS_A_STATEMENT = 8_000
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


def _sql(title: str) -> bytes:
    """Write a title in the format of mysqldump."""
    raw = title.replace(" ", "_").encode("utf-8")
    return raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'").replace(b'"', b'\\"')


def _write_table(folder: Path, name: str, rows: Iterable[bytes]) -> None:
    """Write a table in the format of mysqldump: its definition, then INSERTs of many rows."""
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
    """Write page properties: 1 % of articles have no item, 1 in 40 is a disambiguation page."""
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
    """Write redirects; of 1,000, 10 lead to redirects, 2 are in loops, 5 lead to other wikis.

    20 lead to sections.
    """
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
    """Return the numbers of the redirect categories in the link targets."""
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
    """Write categories: 40 % of redirects are in one to three of the 33, mostly in common ones."""
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
