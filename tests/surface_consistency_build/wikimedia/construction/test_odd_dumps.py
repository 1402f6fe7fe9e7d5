"""Test irregularities of real dumps, each on a wiki of three pages."""

import bz2
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from surface_consistency_build.wikimedia.construction import build_redirectqa, find_dumps
from surface_consistency_build.wikimedia.construction.dump_files import DumpFiles
from surface_consistency_build.wikimedia.construction.staging import END_MARKED, stage
from surface_consistency_build.wikimedia.wikis import load_wiki

from surface_consistency.errors import DataError, DataWarning, RunError, SurfaceConsistencyError
from tests.surface_consistency_build.wikimedia.made_exports import export_xml, page_xml

pq = pytest.importorskip("pyarrow.parquet")

QUESTIONS = [("Ann Lee", ("Lyon",)), ("AL", ("Lyon",))]


@pytest.mark.parametrize("twice", [0, 1], ids=["subject", "object"])
def test_entity_that_occurs_twice_in_a_dump_counts_once(tiny, twice):
    assert tiny.surfaces(entities=(*tiny.entities, tiny.entities[twice])) == QUESTIONS


def test_entity_with_two_labels_has_both_names(tiny):
    other = tiny.entity(20, "Lugdunum", "Lyon")

    assert tiny.surfaces(entities=(*tiny.entities, other)) == [
        ("Ann Lee", ("Lugdunum", "Lyon")),
        ("AL", ("Lugdunum", "Lyon")),
    ]


def test_item_that_was_merged_is_found_by_the_link_to_the_page(tiny):
    assert tiny.surfaces(page_props=[(1, "wikibase_item", "Q999")]) == QUESTIONS


def test_item_of_the_page_is_preferred_to_a_link(tiny):
    moved = tiny.entity(11, "Ann Li", "Ann Lee", (20,))
    links = (tiny.entity(10, "Ann Lee", None, (20,)), tiny.entities[1], moved)

    tiny.write(entities=links, page_props=[(1, "wikibase_item", "Q10")])

    assert {row.subject_id for row in tiny.build().rows()} == {"Q10"}


def test_page_that_is_no_longer_a_redirect_is_an_article(tiny):
    """The redirect table may still have its row."""
    pages = (*tiny.pages, (4, 0, "Al_Lee", 0), (5, 0, "ALee", 1))
    redirects = (*tiny.redirects, (4, 0, "Lyon", None, ""), (5, 0, "Al_Lee", None, ""))
    entities = (*tiny.entities, tiny.entity(11, "Al Lee", "Al Lee", (20,)))

    found = tiny.surfaces(
        pages=pages, redirects=redirects, entities=entities, links=((3, 1), (4, 1), (5, 1))
    )

    assert found == [*QUESTIONS, ("Al Lee", ("Lyon",)), ("ALee", ("Lyon",))]


def test_redirects_through_another_namespace_are_excluded(tiny):
    pages = (*tiny.pages, (8, 4, "Hop", 1), (9, 0, "A._L.", 1))
    redirects = (*tiny.redirects, (9, 4, "Hop", None, ""), (8, 0, "Ann_Lee", None, ""))

    assert tiny.surfaces(pages=pages, redirects=redirects, links=((3, 1), (9, 1))) == QUESTIONS


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"links": ()}, "step 'categories' kept none: in none of the categories"),
        ({"redirects": ()}, "step 'instances' kept none: the subject has no redirect surface"),
        ({"redirects": ((3, 0, "Ann_Lee", "fr", ""),)}, "'resolve' kept none: leads to another"),
    ],
)
def test_error_for_an_empty_build_contains_the_last_exclusion(tiny, parts, message):
    """Steps that may give no rows, such as that of shared names, are not in the message."""
    tiny.write(**parts)

    with pytest.raises(DataError, match=message):
        tiny.build()


def test_all_parts_of_an_export_are_read(tiny):
    """Parts of the English Wikipedia's export share a number and differ in their pages."""
    tiny.write()
    for number, title, pages in ((3, "AL", "p1p5"), (6, "ALee", "p6p9")):
        name = f"enwiki-20260101-pages-articles11.xml-{pages}.bz2"
        text = "#REDIRECT [[Ann Lee]] {{R from short name}}"
        page = page_xml(title, text, page_id=number, redirect="Ann Lee")
        (tiny.folder / name).write_bytes(bz2.compress(export_xml(page, wiki="enwiki").encode()))
    files = find_dumps(tiny.folder, "enwiki", route="xml").files
    files = replace(files, page=None, page_props=None)
    config = find_dumps(tiny.folder, "enwiki").config

    result = build_redirectqa(files, tiny.folder.with_name("work"), config=config)

    surfaces = [row.subject_surface for row in result.rows() if row.template == "original"]
    assert surfaces == ["Ann Lee", "AL", "ALee"]


def test_categories_of_chinese_redirects_are_read_from_their_templates(tmp_path):
    """With the names of namespaces, magic words and templates of the wiki."""
    text = "#重定向 [[李安]]\n{{Redirect category shell|\n{{本名重定向}}\n{{簡繁重定向}}\n}}"
    page = page_xml("李安導演", text, page_id=3, redirect="李安")
    path = tmp_path / "zhwiki-20260101-pages-articles.xml"
    path.write_text(export_xml(page, wiki="zhwiki"), encoding="utf-8")

    staged = stage(
        DumpFiles(wikidata=None, pages_articles=(path,)), tmp_path / "work", load_wiki("zhwiki")
    )

    [rows] = [pq.read_table(file).to_pylist() for file in staged.files["categories"]]
    assert rows == [{"page_id": 3, "label": "Redirects_from_birth_names"}]


def test_compressed_dumps_give_the_same_rows(tiny):
    tiny.write()
    plain = tiny.build().path.read_bytes()
    for name in ("page.sql", "wikidata-20260101-all.json", "pageviews-202401-user"):
        [path] = tiny.folder.glob(f"*{name}")
        path.with_name(f"{path.name}.bz2").write_bytes(bz2.compress(path.read_bytes()))
        path.unlink()

    again = tiny.build()

    assert again.path.read_bytes() == plain


@pytest.fixture
def cut(tiny):
    """The wiki, with a Wikidata dump that ends within a line after the required ones."""
    tiny.write()
    path = tiny.folder / "wikidata-20260101-all.json"
    path.write_text(path.read_text("utf-8").replace("\n]\n", ',\n{"type": "it'), "utf-8")
    return tiny


def read_stamps(work):
    return {path.name: path.stat().st_mtime_ns for path in (work / "staged").glob("*.done.json")}


def test_only_a_truncated_dump_is_read_again(cut):
    """Results of a run without the option are reused; a resumed run gives the same warning."""
    with pytest.raises(DataError, match=r"line 4 is not a Wikidata entity .* after 2 items"):
        cut.build()
    work = cut.folder.with_name("work")
    before = read_stamps(work)

    with pytest.warns(DataWarning, match="the data before it is kept"):
        first = cut.build(allow_truncated=True)
    after = read_stamps(work)
    with pytest.warns(DataWarning, match="an earlier start read it"):
        second = cut.build(allow_truncated=True)

    assert before
    assert after.items() > before.items()
    assert read_stamps(work) == after
    lines = [count for count in first.attrition if count.step == "read wikidata"]
    assert [(line.unit, line.rows_in, line.rows_out) for line in lines] == [
        ("entities", 2, 2),
        ("dumps read to their end", 1, 0),
    ]
    where = (
        r"wikidata\S* is cut off or damaged near byte [\d,]+ of [\d,]+; the data before it is kept"
    )
    assert re.fullmatch(where, lines[1].reason)
    assert second.attrition == first.attrition
    with pytest.raises(DataError, match="line 4 is not a Wikidata entity"):
        cut.build()


def test_uncompressed_dumps_without_an_end_marker_are_counted_or_rejected(tiny):
    """The tables are compact dumps; the entities are in an array, whose end is checked."""
    tiny.write()
    plan = find_dumps(tiny.folder, "enwiki")

    counts = tiny.build().attrition

    reasons = {count.step: count.reason for count in counts if count.unit == END_MARKED}
    tables = ("page", "redirect", "page_props", "linktarget", "categorylinks")
    steps = {f"read {name}" for name in (*tables, "pageviews-202401-user")}
    assert reasons.keys() == steps & {count.step for count in counts}
    assert re.search(r"page.sql is not compressed and has no end marker", reasons["read page"])
    assert any("1 pageview files are not compressed" in note for note in plan.notes)
    with pytest.raises(DataError, match=r"page\.sql: .*--require-end-mark"):
        tiny.build(require_end_mark=True)


def test_changed_middle_of_an_uncompressed_dump_is_detected(tiny):
    """Size, start and end are the same."""
    tiny.write()
    path = tiny.folder / "wikidata-20260101-all.json"
    filler = b"\n" * (1 << 20)
    head, body, tail = path.read_bytes().partition(b'"value": "Lyon"')
    path.write_bytes(head.replace(b"[\n", b"[" + filler, 1) + body + tail + filler)
    first = {row.object_surface for row in tiny.build().rows()}

    path.write_bytes(path.read_bytes().replace(body, b'"value": "Leon"'))

    assert (first, {row.object_surface for row in tiny.build().rows()}) == ({"Lyon"}, {"Leon"})


def test_error_for_too_little_memory_contains_the_limit(tiny):
    tiny.write()

    with pytest.raises(SurfaceConsistencyError, match=r"DuckDB.s 1MB of .*larger memory_limit"):
        tiny.build(memory_limit="1MB")


def test_work_folder_is_for_one_build_at_a_time(tiny):
    tiny.write()
    errors = []

    def build_another(progress):
        if not errors:
            with pytest.raises(RunError, match=r"\(this process\) uses the work") as e:
                tiny.build()
            errors.append(e.value)

    tiny.build(progress=build_another)

    assert errors
    assert tiny.build().n_triples == 1


KILLED = """
import os, signal, sys
from surface_consistency_build.wikimedia.construction import build_redirectqa, find_dumps
from surface_consistency_build.wikimedia.construction.staging import END_MARKED

def kill(progress):
    if progress.stage == "read wikidata":
        os.kill(os.getpid(), signal.SIGKILL)

plan = find_dumps(sys.argv[1], "enwiki")
build_redirectqa(plan.files, sys.argv[2], config=plan.config, threads=1, progress=kill)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no signals to kill with")
def test_killed_build_resumes_and_its_lock_is_released(tiny):
    tiny.write()
    work = tiny.folder.with_name("work")
    command = [sys.executable, "-c", KILLED, str(tiny.folder), str(work)]
    assert subprocess.run(command, check=False).returncode == -9
    (work / "staged" / ".wikidata.claims.parquet.part").write_bytes(b"half")
    done = {path: path.stat().st_mtime_ns for path in work.rglob("*.done.json")}

    assert tiny.build().n_redirect_instances == 1

    assert done
    assert all(path.stat().st_mtime_ns == time for path, time in done.items())
    assert not list(work.rglob("*.part"))
