import gzip
from dataclasses import replace

import numpy as np
import pytest
from surface_consistency_build.wikimedia.construction import find_dumps
from surface_consistency_build.wikimedia.wikis import WikiConfig, load_wiki

from surface_consistency.errors import SourceNotFoundError

OLD = """CREATE TABLE `categorylinks` (
  `cl_from` int(8) unsigned NOT NULL DEFAULT 0,
  `cl_to` varbinary(255) NOT NULL DEFAULT ''
) ENGINE=InnoDB;
"""
NEW = OLD.replace("`cl_to` varbinary(255) NOT NULL DEFAULT ''", "`cl_target_id` bigint(20)")
TABLES = ("page", "page_props", "redirect", "linktarget")


def fill(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)


def tables(date, wiki="enwiki", names=TABLES):
    return [f"{wiki}-{date}-{name}.sql.gz" for name in names]


@pytest.fixture
def folder(tmp_path):
    fill(tmp_path, *tables("20260101"), "wikidata-20260105-all.json.bz2")
    (tmp_path / "enwiki-20260101-categorylinks.sql").write_text(NEW)
    fill(tmp_path, *(f"2024/pageviews-2024{month:02}-user.bz2" for month in range(1, 13)))
    return tmp_path


def test_all_files_are_missing_in_an_empty_folder_and_have_urls(tmp_path):
    plan = find_dumps(tmp_path, "enwiki")

    roles = [dump.role for dump in plan.missing[:4]]
    assert roles == ["page", "redirect", "linktarget", "categorylinks"]
    assert len(plan.missing) == 4 + 12 + 1
    assert all(dump.url.startswith("https://dumps.wikimedia.org/") for dump in plan.missing)
    assert all(dump.about_bytes for dump in plan.missing)
    assert plan.missing[4].name == "pageviews-202401-user.bz2"
    assert plan.missing[4].url.endswith("/other/pageview_complete/monthly/2024/2024-01/")
    with pytest.raises(SourceNotFoundError, match="lacks 17 dump files of enwiki: enwiki-YYYYMMDD"):
        _ = plan.files


def test_no_files_are_missing_in_a_complete_folder(folder):
    """The upper one of two files with the same name is used, and the newest of several dates."""
    fill(folder, *(f"a/{name}" for name in tables("20260101")))
    fill(folder, *tables("20260201", names=("redirect", "page_props")), *tables("20251201"))
    fill(folder, "wikidata-20260112-all.json.gz", "latest-all.json.bz2", "20141201.json.gz")
    plan = find_dumps(folder, load_wiki("enwiki"))

    assert (plan.missing, plan.route) == ((), "sql")
    assert len(plan.files.pageviews) == 12
    assert plan.files.categorylinks.name == "enwiki-20260101-categorylinks.sql"
    assert plan.files.wikidata.name == "wikidata-20260112-all.json.gz"
    assert plan.total_bytes == sum(path.stat().st_size for path in plan.files.paths)
    for path in (plan.files.page, plan.files.redirect, plan.files.page_props):
        assert (path.name[:15], path.parent) == ("enwiki-20260101", folder)


@pytest.mark.parametrize(
    ("wiki", "options", "missing"),
    [
        ("simplewiki", {}, {"page", "redirect", "linktarget", "categorylinks"}),
        ("enwiki", {"months": ["202312", "202401"]}, {"pageviews"}),
        ("jawiki", {"needs_views": False, "months": ["202312"]}, {"page", "redirect"}),
    ],
)
def test_missing_required_files_are_listed(folder, wiki, options, missing):
    assert {dump.role for dump in find_dumps(folder, wiki, **options).missing} == missing


def test_linktarget_is_not_required_if_categories_have_titles(folder):
    (folder / "enwiki-20260101-categorylinks.sql").write_text(OLD)
    (folder / "enwiki-20260101-linktarget.sql.gz").unlink()

    plan = find_dumps(folder, "enwiki")

    assert (plan.missing, plan.files.linktarget) == ((), None)


@pytest.mark.parametrize(
    ("wiki", "names", "route"),
    [
        ("jawiki", tables("20260101", "jawiki"), "uncategorised"),
        ("zhwiki", tables("20260101", "zhwiki"), "xml"),
        ("enwiki", ["enwiki-20260101-pages-articles.xml.bz2"], "xml"),
        ("enwiki", [*tables("20260101"), "enwiki-20260101-pages-articles.xml.bz2"], "xml"),
        ("enwiki", tables("20260101"), "sql"),
    ],
)
def test_route_depends_on_the_configuration_and_the_existing_files(wiki, names, route, tmp_path):
    fill(tmp_path, *names)

    assert find_dumps(tmp_path, wiki).route == route


def test_one_of_several_exports_of_the_same_pages_is_selected(tmp_path):
    """A complete export is preferred to its parts, and the default kind to the others."""
    names = ("1.xml-p1p41242", "1.xml-p41243p99999", "2.xml-p100000p151573")
    parts = [f"enwiki-20260101-pages-articles{name}.bz2" for name in names]
    others = [
        f"enwiki-20260101-pages-{kind}.xml.bz2" for kind in ("articles-multistream", "meta-current")
    ]
    fill(tmp_path, *parts, *others, "wikidata-20260105-all.json.bz2", "pageviews-202401-user.bz2")

    def chosen():
        files = find_dumps(tmp_path, "enwiki").files
        assert files.page is None
        return [path.name for path in files.pages_articles]

    assert chosen() == parts
    whole = "enwiki-20260101-pages-articles.xml"
    fill(tmp_path, f"{whole}.bz2", whole)
    assert chosen() == [f"{whole}.bz2"]


def test_page_views_of_a_period_are_counted_once(folder):
    """A day of an existing month, a repeated month, and two files of one month."""
    fill(folder, "pageviews-20240115-user.bz2", "pageviews-20250101-user.bz2")

    files = find_dumps(folder, "enwiki").files

    assert len(files.pageviews) == 13
    assert files.pageviews[-1].name == "pageviews-20250101-user.bz2"
    twice = find_dumps(folder, "enwiki", months=["202401", "202401"])
    assert [path.name for path in twice.files.pageviews] == ["pageviews-202401-user.bz2"]
    fill(folder, "pageviews-202401-user")
    both = replace(files, pageviews=(*files.pageviews, folder / "pageviews-202401-user"))
    with pytest.raises(ValueError, match="two dumps have the name pageviews-202401-user"):
        both.check_paths()


def test_missing_table_lists_existing_files_of_another_date(folder):
    (folder / "enwiki-20260101-redirect.sql.gz").unlink()
    fill(folder, "enwiki-20251201-redirect.sql.gz")

    [missing] = find_dumps(folder, "enwiki").missing

    assert missing.name == "enwiki-20260101-redirect.sql.gz"
    assert missing.other_dates == ("enwiki-20251201-redirect.sql.gz",)
    other = r"1 dump file of .*enwiki-20251201-redirect\.sql\.gz has another"
    with pytest.raises(SourceNotFoundError, match=other):
        _ = find_dumps(folder, "enwiki").files


def test_notes_report_the_consequences_of_missing_files(folder):
    assert find_dumps(folder, "enwiki").notes == ()
    (folder / "enwiki-20260101-page_props.sql.gz").unlink()
    (folder / "2024" / "pageviews-202403-user.bz2").unlink()

    lost, months = find_dumps(folder, "enwiki").notes

    assert lost.startswith("without page_props")
    assert months.startswith("page views of 11 files")


def test_categorylinks_truncated_after_its_definition_can_be_planned(folder):
    """The truncation is detected when the rows are read."""
    (folder / "enwiki-20260101-categorylinks.sql").unlink()
    noise = "".join(map(str, np.random.default_rng(0).integers(0, 9, 5_000)))
    packed = gzip.compress(f"{NEW}INSERT INTO `categorylinks` VALUES ({noise});".encode())
    (folder / "enwiki-20260101-categorylinks.sql.gz").write_bytes(packed[:-500])

    assert find_dumps(folder, "enwiki").missing == ()


def test_a_note_reports_english_questions_about_another_language(tmp_path):
    fields = {"name": "frwiki", "wiki": "frwiki", "language": "fr", "project": "fr.wikipedia"}
    config = WikiConfig(**fields, uncategorised=True)

    notes = find_dumps(tmp_path, config).notes
    assert any("the questions are English, about names in 'fr'" in note for note in notes)
    assert not any("English" in note for note in find_dumps(tmp_path, "jawiki").notes)


@pytest.mark.parametrize(
    ("place", "wiki", "options", "error", "message"),
    [
        ("none", "enwiki", {}, SourceNotFoundError, "give the folder of the dumps"),
        ("", "jawiki", {"route": "sql"}, ValueError, "'jawiki' maps no categories, so the route"),
        *(
            ("", "enwiki", {"months": [month]}, ValueError, f"be like '202401'.*got '{month}'")
            for month in ("2024-01", "202413", "2024", "20240132")
        ),
    ],
)
def test_find_dumps_rejects_invalid_paths_and_options(folder, place, wiki, options, error, message):
    with pytest.raises(error, match=message):
        find_dumps(folder / place, wiki, **options)
