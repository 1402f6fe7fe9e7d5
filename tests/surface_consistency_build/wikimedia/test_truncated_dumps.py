"""Real files that are truncated at many bytes, damaged or endless are rejected or reported."""

import bz2
import gzip
import re
import subprocess
import sys

import pytest
from surface_consistency_build.wikimedia import _export_parser, _sql_rows, _sql_statements, streams
from surface_consistency_build.wikimedia.pages_xml import read_pages
from surface_consistency_build.wikimedia.pageviews import read_pageviews
from surface_consistency_build.wikimedia.sql import read_sql
from surface_consistency_build.wikimedia.streams import ReadProgress
from surface_consistency_build.wikimedia.wikidata import read_entity_batches

from surface_consistency.errors import DataError, DataWarning

PACK = {"plain": bytes, "gz": gzip.compress, "bz2": bz2.compress}


def plain_of(path):
    """Decompress a file with the standard library."""
    module = gzip if path.suffix == ".gz" else bz2
    return module.decompress(path.read_bytes())


def views(path, **options):
    batches = read_pageviews(path, project="de.wikipedia", threads=1, **options)
    return [row for batch in batches for row in batch.to_pylist()]


def properties(path, **options):
    batches = read_sql(path, ["pp_page", "pp_propname"], threads=1, **options)
    return [row for batch in batches for row in batch.to_pylist()]


def titles(path, **options):
    return [page.title for page in read_pages(path, namespaces=None, threads=1, **options)]


def items(path, **options):
    pytest.importorskip("msgspec")
    wanted = {"properties": ["P31"], "language": "en", "wiki": "enwiki", "batch_size": 1}
    batches = read_entity_batches(path, threads=1, **wanted, **options)
    return [f"Q{batch.entities['id'][0].as_py()}" for batch in batches]


# The reader, the real file, the distance of the cuts, and the marker after which it is complete.
KINDS = {
    "pageviews": (views, "wikimedia/pageviews-20230320-user.bz2", 1, None),
    "sql": (properties, "wikimedia/rmwiki-20240301-page_props.sql.gz", 7, b"-- Dump completed"),
    "xml": (titles, "wikimedia/enwiki-sample-pages-articles.xml.bz2", 1009, b"</mediawiki>"),
    "wikidata": (items, "wikidata/twenty_entities.json.bz2", 9973, b"\n]"),
}


def outcome(read, path):
    """Read a file: its rows, or None if it is rejected, and whether its end is unmarked."""
    seen: list[ReadProgress] = []
    try:
        rows = read(path, progress=seen.append)
    except DataError:
        return None, False
    return rows, any(state.is_end_unmarked for state in seen)


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("kind", KINDS)
def test_truncated_dump_is_not_read_as_a_complete_one(tmp_path, data_files, kind, packing):
    """Truncated before compression, at many bytes, and at each byte near the end."""
    read, name, step, mark = KINDS[kind]
    data = plain_of(data_files / name)
    path = tmp_path / "dump"
    path.write_bytes(PACK[packing](data))
    expected, is_unmarked = outcome(read, path)
    assert expected
    assert is_unmarked == (mark is None and packing == "plain")
    ends = [found.end() for found in re.finditer(rb"[\n;>]", data)][:: max(1, step // 7)]
    places = {*range(1, len(data), step), *ends, *range(len(data) - 30, len(data))}
    silent, reported = [], []

    for place in sorted(places):
        if mark is not None and mark in data[:place][-60:]:
            continue
        path.write_bytes(PACK[packing](data[:place]))
        rows, is_unmarked = outcome(read, path)
        if rows is not None and place < len(data):
            (reported if is_unmarked else silent).append(place)

    at_line_ends = {place for place in places if data[place - 1 : place] == b"\n"} - {len(data)}
    if mark is not None:
        assert (silent, reported) == ([], [])
    elif packing == "plain":
        assert silent == []
        assert set(reported) == at_line_ends
    else:
        # Compressing half a file gives a complete file.
        assert set(silent) == at_line_ends


@pytest.mark.parametrize("kind", KINDS)
def test_data_before_a_truncation_is_kept_if_allowed(tmp_path, data_files, kind):
    read, name, _, _ = KINDS[kind]
    data = plain_of(data_files / name)
    path = tmp_path / "dump"
    path.write_bytes(data)
    expected = read(path)
    place = data.rindex(b"),(") if kind == "sql" else len(data) * 2 // 3
    path.write_bytes(data[: place + 5])

    with pytest.warns(DataWarning, match=r"dump: .*; the data before it is kept") as caught:
        rows = read(path, allow_truncated=True)

    assert len(caught) == 1
    assert rows == expected[: len(rows)]
    assert len(rows) > len(expected) // 4


def test_error_for_an_incomplete_line_of_views_contains_its_byte(tmp_path, data_files):
    path = tmp_path / "pageviews"
    data = plain_of(data_files / KINDS["pageviews"][1])
    path.write_bytes(data[:-4])

    message = r"last line has no line feed, so it is incomplete: .* at plain byte"
    with pytest.raises(DataError, match=message):
        views(path)


COMPACT = b"CREATE TABLE `t` (`a` int(8));\n" + b"INSERT INTO `t` VALUES (1),(2);\n" * 3
SETTINGS = b"/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;\n"
RESTORED = b"/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;\n\n"


def test_a_dump_without_comments_ends_with_its_settings(tmp_path):
    """mysqldump --skip-comments."""
    path = tmp_path / "t.sql"
    path.write_bytes(SETTINGS + COMPACT + RESTORED)
    assert sum(len(batch) for batch in read_sql(path, ["a"])) == 6

    path.write_bytes(SETTINGS + COMPACT)

    with pytest.raises(DataError, match=r"lacks the end that mysqldump writes .* after 6 rows"):
        list(read_sql(path, ["a"]))


def test_truncated_compact_dump_is_reported_or_rejected(tmp_path):
    """mysqldump --compact does not write an end marker, so half a file looks complete."""
    path = tmp_path / "t.sql"
    path.write_bytes(COMPACT[: COMPACT.index(b";\n", 40) + 2])
    seen: list[ReadProgress] = []

    n_rows = sum(len(batch) for batch in read_sql(path, ["a"], progress=seen.append))

    assert n_rows == 2
    assert seen[-1].is_end_unmarked
    unmarked = r"no '-- Dump completed' as an end marker.*--require-end-mark"
    with pytest.raises(DataError, match=unmarked):
        list(read_sql(path, ["a"], require_end_mark=True))
    packed = tmp_path / "t.sql.gz"
    packed.write_bytes(gzip.compress(COMPACT))
    assert sum(len(batch) for batch in read_sql(packed, ["a"], require_end_mark=True)) == 6


def test_entities_and_views_without_a_required_end_marker_are_rejected(tmp_path, data_files):
    data = plain_of(data_files / KINDS["wikidata"][1])
    lines = tmp_path / "lines.json"
    lines.write_bytes(data.strip(b"[]\n").replace(b"},\n", b"}\n") + b"\n")
    path = tmp_path / "pageviews"
    path.write_bytes(plain_of(data_files / KINDS["pageviews"][1]))

    assert len(items(lines)) == 20
    with pytest.raises(DataError, match=r"outside an array have no end marker.*--require-end-mark"):
        items(lines, require_end_mark=True)
    with pytest.raises(DataError, match=r"pageview files have no end marker.*--require-end-mark"):
        views(path, require_end_mark=True)
    array = tmp_path / "array.json"
    array.write_bytes(data)
    assert len(items(array, require_end_mark=True)) == 20


@pytest.fixture
def small_limits(monkeypatch):
    """Limit lines, texts and statements to 200 kB."""
    for module, name in (
        (streams, "MAX_LINE_BYTES"),
        (_export_parser, "MAX_TEXT_BYTES"),
        (_sql_statements, "MAX_STATEMENT_BYTES"),
        (_sql_rows, "MAX_STATEMENT_BYTES"),
    ):
        monkeypatch.setattr(module, name, 200_000)


PAGE = "<page><title>A</title><ns>0</ns><id>1</id><revision><text>"
MUCH = b"x" * 9_000_000
TABLE = b"CREATE TABLE `t` (`pp_page` int, `pp_propname` blob);\n"
ROWS, SET = TABLE + b"INSERT INTO `t` VALUES (1,'", TABLE + b"SET x='"
ENDLESS = {
    "wikidata": (items, b'[\n{"id":"Q1","x":"' + MUCH, "line 2 is longer than 200,000 bytes"),
    "text": (titles, b"<mediawiki>" + PAGE.encode() + MUCH, "a text is longer than 200"),
    "tag": (titles, b"<mediawiki><page a='" + MUCH, "a tag is longer than 200,000 bytes"),
    "depth": (titles, b"<mediawiki>" + b"<a>" * 100_000, "elements are nested more than 100 deep"),
    "row": (properties, ROWS + MUCH, "a row is longer than 200,000 bytes"),
    "statement": (properties, SET + MUCH, "a statement is longer than 200,000 bytes"),
}


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("case", ENDLESS)
@pytest.mark.parametrize("packing", PACK)
def test_error_for_endless_input_contains_the_byte(tmp_path, case, packing):
    read, content, message = ENDLESS[case]
    path = tmp_path / "dump"
    path.write_bytes(PACK[packing](content))

    with pytest.raises(DataError, match=rf"dump: .*{message}.* at plain byte [\d,]+"):
        read(path)


@pytest.mark.parametrize(("n_bytes", "is_read"), [(2_200_000, True), (5_000_000, False)])
def test_elements_of_several_chunks_are_read_to_the_limit(tmp_path, monkeypatch, n_bytes, is_read):
    """The chunk in which a line or a tag ends does not count towards the limit."""
    monkeypatch.setattr(_export_parser, "MAX_TEXT_BYTES", 3_000_000)
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 3_000_000)
    path, much = tmp_path / "dump", "x" * n_bytes
    lines = ",\n".join(f'{{"type":"item","id":"Q{n}","x":"{much}"}}' for n in (1, 2))
    page = PAGE.replace("<page>", f"<page a='{much}'>") + "</text></revision></page>"
    for read, content, found, named in (
        (items, f"[\n{lines}\n]\n", ["Q1", "Q2"], "line 2"),
        (titles, f"<mediawiki>{page}</mediawiki>", ["A"], "a tag"),
    ):
        path.write_text(content)
        if is_read:
            assert read(path) == found
        else:
            with pytest.raises(DataError, match=f"{named} is longer than 3,000,000 bytes"):
                read(path)


def test_a_document_type_is_rejected(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text('<!DOCTYPE m [<!ENTITY a "aaaa">]><mediawiki>&a;</mediawiki>', "utf-8")

    with pytest.raises(DataError, match=r"not a MediaWiki export, it has a document type"):
        titles(path)


def test_errors_report_long_ids_and_deep_nesting_of_an_entity(tmp_path):
    path = tmp_path / "dump.json"
    for digits in (19, 5_000):
        path.write_text('[\n{"id":"Q1"},\n{"id":"Q%s","labels":{}}\n]\n' % ("9" * digits))
        long = rf"dump\.json: the id Q9+\.\.\. of {digits + 1:,}"
        with pytest.raises(DataError, match=long):
            items(path)
    deep = b"[" * 100_000 + b"]" * 100_000
    path.write_bytes(b'[\n{"id":"Q1","labels":{},"x":1},\n{"id":"Q2","x":%b}\n]\n' % deep)

    named = r"line 3 is not a Wikidata entity .* at plain byte 33, after 1 "
    with pytest.raises(DataError, match=named):
        items(path)
    with pytest.warns(DataWarning, match="line 3 is not a Wikidata entity"):
        assert items(path, allow_truncated=True) == ["Q1"]


BOMB = """
import gzip, resource, sys, warnings
from pathlib import Path
from surface_consistency.errors import DataError
from surface_consistency_build.wikimedia import _export_parser, streams
from tests.surface_consistency_build.wikimedia.test_truncated_dumps import KINDS
streams.MAX_LINE_BYTES = _export_parser.MAX_TEXT_BYTES = 1 << 22
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    KINDS[sys.argv[2]][0](Path(sys.argv[1]))
except DataError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [b"", b"<mediawiki><page><title>"], ids=["zeros", "after a tag"])
def test_endless_zeros_are_read_with_little_memory(tmp_path, kind, head):
    """gzip compresses 400 MB to 400 kB; the maximum memory of a process is measured."""
    pytest.importorskip("resource")
    path = tmp_path / "bomb"
    with gzip.open(path, "wb", 1) as file:
        file.write(head)
        for _ in range(400):
            file.write(bytes(1_000_000))

    command = [sys.executable, "-c", BOMB, str(path), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 0, done.stderr
    assert 0 <= int(done.stdout) < 120_000, "kilobytes"
