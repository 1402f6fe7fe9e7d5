import gzip
import re

import pytest
from surface_consistency_build.wikimedia.construction.dump_files import DumpFiles
from surface_consistency_build.wikimedia.construction.staging import END_MARKED, stage
from surface_consistency_build.wikimedia.wikis import WikiConfig, load_wiki

from surface_consistency.errors import DataError
from tests.surface_consistency_build.wikimedia import mini_ja

pq = pytest.importorskip("pyarrow.parquet")


def rows(staged, table):
    return [row for file in staged.files[table] for row in pq.read_table(file).to_pylist()]


def lost(staged, step):
    counts = [count for count in staged.counts if count.step == step and count.unit != END_MARKED]
    return {count.reason: count.removed for count in counts}


def wiki_of(name, **fields):
    given = {"name": name, "wiki": name, "language": "en", "project": "de.wikipedia"}
    return WikiConfig(**(given | {"uncategorised": True} | fields))


def test_real_sql_tables_keep_articles_and_redirects(data_files, tmp_path):
    folder = data_files / "wikimedia"
    names = ("page", "redirect", "page_props")
    tables = {name: folder / f"rmwiki-20240301-{name}.sql.gz" for name in names}
    dumps = DumpFiles(wikidata=None, **tables)

    staged = stage(dumps, tmp_path, wiki_of("rmwiki"))

    pages, redirects = rows(staged, "pages"), rows(staged, "redirects")
    assert pages
    assert all("_" not in page["surface"] for page in pages)
    assert any(page["is_redirect"] for page in pages)
    assert any(redirect["is_interwiki"] for redirect in redirects)
    assert all(
        props["entity"] is not None or props["is_disambiguation"]
        for props in rows(staged, "page_props")
    )
    for count in staged.counts:
        lines = [other for other in staged.counts if other.step == count.step]
        assert count.rows_in - count.rows_out == sum(line.removed for line in lines)


def test_real_redirects_have_the_categories_of_their_templates(data_files, tmp_path):
    path = data_files / "wikimedia" / "enwiki-slice-pages-articles.xml.bz2"

    staged = stage(DumpFiles(wikidata=None, pages_articles=(path,)), tmp_path, load_wiki("enwiki"))

    # 100 redirects, one of them outside the articles
    assert len(rows(staged, "redirects")) == len(rows(staged, "pages")) == 99
    labels = [row["label"] for row in rows(staged, "categories")]
    # bzcat ... | grep -ic '{{ *R from other capitalisation': 6; acronym, plural, modification: 1
    assert labels.count("Redirects_from_other_capitalisations") >= 6
    for label in ("acronyms", "plurals", "modifications"):
        assert f"Redirects_from_{label}" in labels


def test_categories_are_found_by_title_or_by_number(tmp_path):
    """Dumps between the two schemas have both columns; each row counts once."""
    create = """CREATE TABLE `categorylinks` (
  `cl_from` int(8) unsigned NOT NULL,
  `cl_to` varbinary(255) NOT NULL,
  `cl_target_id` bigint(20) unsigned DEFAULT NULL
) ENGINE=InnoDB;
INSERT INTO `categorylinks` VALUES (1,'Short',NULL),(2,'',7),(3,'Short',7),(4,'Other',8);
"""
    targets = mini_ja.sql_dump("linktarget", [(7, 14, "Short"), (8, 0, "Short"), (9, 14, "Shorts")])
    (tmp_path / "x-categorylinks.sql").write_text(create)
    (tmp_path / "x-linktarget.sql").write_bytes(targets)
    config = wiki_of("xx", categories={"Short": "from short names"}, uncategorised=False)
    tables = {name: tmp_path / f"x-{name}.sql" for name in ("categorylinks", "linktarget")}
    dumps = DumpFiles(wikidata=None, **tables)

    staged = stage(dumps, tmp_path / "work", config)

    label = "Redirects_from_short_names"
    assert rows(staged, "categories") == [{"page_id": page, "label": label} for page in (1, 2, 3)]
    assert lost(staged, "read categorylinks") == {"no wanted category": 1}
    assert lost(staged, "read linktarget") == {"no wanted category": 2}


@pytest.mark.parametrize("column", ["page_id", "page_namespace", "page_is_redirect"])
def test_text_ids_in_an_sql_dump_are_rejected(data_files, tmp_path, column):
    folder = data_files / "wikimedia"
    content = gzip.decompress((folder / "rmwiki-20240301-page.sql.gz").read_bytes()).decode()
    page = tmp_path / "rmwiki-20240301-page.sql"
    number = rf"`{column}` (tiny)?int\(\d+\)( unsigned)?"
    page.write_text(re.sub(number, f"`{column}` varbinary(9)", content))
    others = {
        name: folder / f"rmwiki-20240301-{name}.sql.gz" for name in ("redirect", "page_props")
    }

    with pytest.raises(DataError, match=rf"column {column} has the type binary, which"):
        stage(DumpFiles(wikidata=None, page=page, **others), tmp_path / "w", wiki_of("rmwiki"))
