"""The inventory of a wiki's redirects, held against counts that pandas makes of the same tables."""

import gzip
import re
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from surface_consistency_build.inventory.counts import take_inventory
from surface_consistency_build.inventory.plan import plan_inventory
from surface_consistency_build.wikimedia.pages_xml import read_redirects
from surface_consistency_build.wikimedia.sql import read_create_table, read_sql
from surface_consistency_build.wikimedia.wikis import unmapped_wiki

from surface_consistency.errors import (
    DataError,
    DataWarning,
    SourceNotFoundError,
)
from surface_consistency.taxonomy import parse_category
from tests.surface_consistency_build.wikimedia import mini_ja

pytest.importorskip("duckdb")

MINI = Path(__file__).parents[1] / "wikimedia" / "mini"


@pytest.fixture
def japan(tmp_path):
    """Dumps of the small Japanese wiki."""
    mini_ja.write(tmp_path / "dumps", more_than_tables=False)
    return tmp_path / "dumps"


def inventory_of(folder, wiki=None, **options):
    return take_inventory(plan_inventory(folder, wiki), **options)


def dump(folder, table):
    return next(Path(folder).glob(f"*-{table}.sql.gz"))


def rewrite(folder, table, rows, *, columns=None):
    """Replace a table by other rows."""
    dump(folder, table).write_bytes(gzip.compress(mini_ja.sql_dump(columns or table, rows)))


def frame(path):
    """Read a whole table into pandas; texts are decoded where they are UTF-8."""
    names = read_create_table(path).names
    rows = [row for batch in read_sql(path, names) for row in batch.to_pylist()]
    return pd.DataFrame(
        [
            {
                name: v.decode("utf-8", "replace") if isinstance(v, bytes) else v
                for name, v in r.items()
            }
            for r in rows
        ],
        columns=names,
    )


def by_pandas(folder, *, categorylinks=None):
    """Count the categories of redirects with pandas, from the tables as they are."""
    page, redirect = frame(dump(folder, "page")), frame(dump(folder, "redirect"))
    ours = page[(page["page_namespace"] == 0) & (page["page_is_redirect"] == 1)]
    ours = ours.merge(redirect, left_on="page_id", right_on="rd_from", how="left")
    ours["usable"] = (
        (ours["rd_namespace"] == 0)
        & (ours["rd_interwiki"].fillna("") == "")
        & (ours["rd_fragment"].fillna("") == "")
    )
    links = frame(categorylinks or dump(folder, "categorylinks"))
    if "cl_to" not in links:
        targets = frame(dump(folder, "linktarget"))
        links = links.merge(targets, left_on="cl_target_id", right_on="lt_id")
        links = links[links["lt_namespace"] == 14].rename(columns={"lt_title": "cl_to"})
    carried = ours.merge(links, left_on="page_id", right_on="cl_from")
    carried["mapped"] = [parse_category(name) is not None for name in carried["cl_to"]]
    has_mapped = set(carried[carried["mapped"]]["page_id"])
    counts = carried.groupby("cl_to").agg(
        n_redirects=("page_id", "nunique"), n_usable=("usable", "sum")
    )
    free = carried[carried["usable"] & ~carried["page_id"].isin(has_mapped)]
    counts["n_gained"] = free.groupby("cl_to")["page_id"].nunique()
    sums = {
        "n_redirects": len(ours),
        "n_usable": int(ours["usable"].sum()),
        "n_carrying": carried[carried["usable"]]["page_id"].nunique(),
        "n_mapped": carried[carried["usable"] & carried["mapped"]]["page_id"].nunique(),
    }
    return counts.fillna(0).astype(int), sums


@pytest.mark.parametrize("layout", ["numbers", "titles"])
def test_the_counts_of_categories_agree_with_pandas(tmp_path, layout):
    """The mini wiki by both layouts of categorylinks; of the older one linktarget is not needed."""
    for path in MINI.glob("*.sql.gz"):
        shutil.copy(path, tmp_path)
    if layout == "titles":
        older = next((MINI / "older").glob("*categorylinks*"))
        shutil.copy(older, dump(tmp_path, "categorylinks"))
        dump(tmp_path, "linktarget").unlink()

    found = inventory_of(tmp_path)

    expected, sums = by_pandas(tmp_path)
    names = found.names[found.names["kind"] == "category"].set_index("name")
    columns = ["n_redirects", "n_usable", "n_gained"]
    pd.testing.assert_frame_equal(
        names[columns].sort_index().rename(index=str),
        expected[columns].sort_index().rename(index=str),
        check_names=False,
        check_index_type=False,
    )
    [row] = found.kinds.to_dict("records")
    assert (found.n_redirects, found.n_usable) == (sums["n_redirects"], sums["n_usable"])
    assert (row["n_carrying"], row["n_mapped"]) == (sums["n_carrying"], sums["n_mapped"])
    assert row["n_mapped"] + row["n_unmapped"] + row["n_untagged"] == found.n_usable
    assert list(found.plan.sources) == ["category"]
    assert any("no template is counted" in note for note in found.notes)


def test_a_real_export_is_counted_by_its_text(tmp_path, data_files):
    """A slice of the English Wikipedia: every template of every redirect, as the reader has it."""
    source = data_files / "wikimedia" / "enwiki-slice-pages-articles.xml.bz2"
    shutil.copy(source, tmp_path / "enwiki-20240101-pages-articles.xml.bz2")
    redirects = list(read_redirects(source))
    expected = Counter(name.replace(" ", "_") for page in redirects for name in set(page.templates))

    found = inventory_of(tmp_path)

    names = found.names.set_index("name")
    assert found.n_redirects == len(redirects) > 90
    assert names["n_redirects"].to_dict() == dict(expected)
    assert names.loc["R_from_other_capitalisation", "type"] == "spelling_variants"
    assert names.loc["R_from_CamelCase", "label"] is None
    assert names.loc["Redr", "is_shell"]
    assert not names.loc["R_from_CamelCase", "is_shell"]
    assert any("name in their own text" in note for note in found.notes)


def test_text_stands_in_for_the_table_of_redirects(tmp_path):
    """The mini wiki's text says of its redirects what its tables say."""
    for path in MINI.glob("enwiki-*"):
        shutil.copy(path, tmp_path)
    by_tables = inventory_of(tmp_path)
    dump(tmp_path, "redirect").unlink()

    by_text = inventory_of(tmp_path)

    assert "page" not in by_text.plan.tables
    assert any("without page no number of page_props" in note for note in by_text.notes)
    assert by_text.n_redirects == by_tables.n_redirects
    columns = ["kind", "name", "n_redirects", "n_usable", "n_gained"]
    pd.testing.assert_frame_equal(by_text.names[columns], by_tables.names[columns])


def test_a_real_export_of_another_wiki_goes_with_its_table_of_categories(tmp_path, data_files):
    """The aawiki has no linktarget here: its categorylinks cannot be named, and that is said."""
    for name in ("categorylinks.sql.gz", "pages-meta-current.xml.bz2"):
        shutil.copy(data_files / "wikimedia" / f"aawiki-20260101-{name}", tmp_path)
    redirects = list(read_redirects(tmp_path / "aawiki-20260101-pages-meta-current.xml.bz2"))

    found = inventory_of(tmp_path)

    assert found.plan.config.language == "aa"
    assert found.n_redirects == len(redirects) > 0
    assert any("names its targets by numbers" in note for note in found.notes)


@pytest.mark.parametrize("is_older", [False, True])
def test_a_new_language_is_counted_by_hand(tmp_path, is_older):
    mini_ja.write(tmp_path, is_older=is_older, more_than_tables=False)

    found = inventory_of(tmp_path)

    assert (found.n_redirects, found.n_usable) == (23, 21)
    rows = {(row["kind"], row["name"]): row for row in found.names.to_dict("records")}
    assert len(rows) == 16
    short = rows["category", "略称からの転送"]
    assert (short["n_redirects"], short["n_usable"], short["n_gained"]) == (4, 4, 4)
    assert short["label"] is None
    assert short["mapped_by"] is None
    assert set(short["examples"]) < {
        ("東京", "東京都"),
        ("京都", "京都市"),
        ("大阪", "大阪市"),
        ("漱石", "夏目漱石"),
    }
    assert len(short["examples"]) == 3
    assert rows["category", "節への転送"]["n_usable"] == 0
    # Hidden: protected and section redirects; of templates it means nothing.
    hidden = {name for (kind, name), row in rows.items() if kind == "category" and row["is_hidden"]}
    assert hidden == {"節への転送", "保護された転送"}
    assert rows["template", "Pp"]["is_hidden"] is None
    # By the link to the English wiki.
    error = rows["category", "誤記からの転送"]
    assert error["label"] == "Redirects_from_misspellings"
    assert error["type"] == "typical_errors"
    assert error["mapped_by"] == "interlanguage link"
    assert rows["template", "別名転送"]["label"] == "Redirects_from_alternative_names"
    assert rows["template", "誤記転送"]["label"] is None
    # The module of that name is no template.
    assert ("template", "転送") not in rows
    sums = found.kinds.set_index("kind")
    columns = ["n_names", "n_carrying", "n_mapped", "n_unmapped", "n_untagged"]
    assert sums.loc["category", columns].tolist() == [8, 20, 6, 14, 1]
    assert sums.loc["template", columns].tolist() == [8, 20, 4, 16, 1]


def test_the_same_dumps_give_the_same_inventory(japan):
    once, again = inventory_of(japan, threads=1), inventory_of(japan, threads=2)

    pd.testing.assert_frame_equal(once.names, again.names)
    pd.testing.assert_frame_equal(once.labels, again.labels)


def test_a_configuration_says_what_is_mapped(japan, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'base = "jawiki"\nuncategorised = false\n'
        '[categories]\n"略称からの転送" = "from short names"\n'
        '[templates]\n"略称転送" = "from short names"\n',
        encoding="utf-8",
    )

    found = inventory_of(japan, str(file))

    row = found.names.set_index("name").loc["略称からの転送"]
    assert (row["label"], row["mapped_by"], row["n_gained"]) == (
        "Redirects_from_short_names",
        "configuration",
        0,
    )


def test_a_folder_of_several_wikis_asks_which(japan):
    shutil.copy(dump(japan, "page"), japan / "frwiki-20260101-page.sql.gz")

    with pytest.raises(SourceNotFoundError, match="holds dumps of frwiki, jawiki; name one with"):
        plan_inventory(japan)
    with pytest.raises(SourceNotFoundError, match="lacks frwiki-20260101-redirect"):
        plan_inventory(japan, "frwiki")
    with pytest.raises(SourceNotFoundError, match="no dump of dewiki, but of frwiki, jawiki"):
        plan_inventory(japan, "dewiki")
    with pytest.raises(ValueError, match="'Klingon' is no database name of a wiki"):
        plan_inventory(japan, "Klingon")


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (("redirect",), "lacks jawiki-20260101-redirect.sql.gz"),
        (("page", "redirect"), "jawiki-20260101-page.sql.gz and jawiki-20260101-redirect"),
        (("categorylinks", "templatelinks"), "tells of no category and no template of jawiki"),
        (("linktarget",), "tells of no category and no template of jawiki"),
    ],
)
def test_tables_that_it_cannot_do_without_are_named(japan, missing, message):
    for table in missing:
        dump(japan, table).unlink()

    with pytest.raises(SourceNotFoundError, match=message):
        plan_inventory(japan)


def test_what_is_lost_without_a_table_is_said(japan):
    for table in ("langlinks", "page_props", "templatelinks"):
        dump(japan, table).unlink()

    found = inventory_of(japan)

    notes = " ".join(found.notes)
    assert "without langlinks no category" in notes
    assert "without page_props which categories are hidden is not known" in notes
    assert "no template is counted" in notes
    assert set(found.names["is_hidden"]) == {None}
    assert not found.names["label"].notna().any()


def test_a_table_of_another_date_is_not_read_and_is_named(japan):
    dump(japan, "langlinks").rename(japan / "jawiki-20250601-langlinks.sql.gz")

    found = inventory_of(japan)

    assert any("jawiki-20250601-langlinks.sql.gz is of another date" in n for n in found.notes)
    assert not found.names["label"].notna().any()


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        # Pages that this wiki does not have.
        ("categorylinks", [(9_000 + n, "page", 1000) for n in range(9)], "does not belong to"),
        ("redirect", [(9_000 + n, 0, "A", "", "") for n in range(9)], "does not belong to"),
        # Pages that are something else in this wiki: articles that redirect, members that are
        # categories.
        ("redirect", [(100 + n, 0, "A", "", "") for n in range(9)], "does not belong to"),
        ("categorylinks", [(200 + n, "subcat", 1000) for n in range(9)], "does not belong to"),
        ("templatelinks", [(200 + n, 14, 1009) for n in range(9)], "does not belong to"),
        # Numbers of other things.
        ("linktarget", [(1_000 + n, 0, "A") for n in range(99)], "of different wikis or dates"),
    ],
)
def test_tables_of_different_wikis_are_refused(japan, table, rows, message):
    rewrite(japan, table, rows)

    with pytest.raises(DataError, match=message):
        inventory_of(japan)


def test_a_wiki_without_redirects_is_refused(japan):
    rewrite(japan, "page", [row for row in mini_ja.tables()["page"] if not row[3]])
    rewrite(japan, "redirect", [])

    with pytest.raises(DataError, match="holds no redirect of the article namespace"):
        inventory_of(japan)


def test_redirects_that_carry_nothing_are_counted(japan):
    rewrite(japan, "categorylinks", [])
    rewrite(japan, "templatelinks", [])

    found = inventory_of(japan)

    assert found.names.empty
    assert found.kinds["n_untagged"].tolist() == [21, 21]


def test_a_dump_that_ends_early_is_refused_or_counted_as_far_as_it_goes(japan):
    path = dump(japan, "categorylinks")
    plain = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(plain[: plain.index(b"(205,")]))

    with pytest.raises(DataError, match=r"categorylinks\.sql\.gz"):
        inventory_of(japan)
    with pytest.warns(DataWarning, match="what came before is kept"):
        found = inventory_of(japan, allow_truncated=True)

    assert 0 < found.kinds.set_index("kind").loc["category", "n_carrying"] < 20
    assert any("categorylinks.sql.gz is cut off or damaged" in note for note in found.notes)


def test_a_plain_dump_of_which_nothing_tells_the_end_is_said_or_refused(japan):
    path = dump(japan, "redirect")
    plain = gzip.decompress(path.read_bytes())
    bare = b"".join(line for line in plain.splitlines(keepends=True) if not line.startswith(b"--"))
    path.unlink()
    path.with_suffix("").write_bytes(bare)

    found = inventory_of(japan)

    assert any("redirect.sql is not packed and has no mark" in note for note in found.notes)
    with pytest.raises(DataError, match="--require-end-mark"):
        inventory_of(japan, require_end_mark=True)


def test_other_tables_under_these_names_are_refused(japan):
    shutil.copy(dump(japan, "langlinks"), dump(japan, "categorylinks"))

    with pytest.raises(DataError, match="neither cl_to nor cl_target_id"):
        inventory_of(japan)


def test_titles_that_are_no_text_are_left_out_and_counted(japan):
    rows = mini_ja.tables()["page"]
    rewrite(japan, "page", [*rows, (290, 0, b"\xff\xfe", 1)])

    found = inventory_of(japan)

    assert found.n_redirects == 23
    assert "1 rows are left out: title is no UTF-8" in found.notes


def test_a_page_number_beyond_any_wiki_is_damage(japan):
    rewrite(japan, "page", [*mini_ja.tables()["page"], (1 << 40, 0, "A", 1)])

    with pytest.raises(DataError, match="page number 1,099,511,627,776 is none that a wiki has"):
        inventory_of(japan)


def test_repeated_rows_count_once(japan):
    rows = mini_ja.tables()
    rewrite(japan, "categorylinks", rows["categorylinks"] * 2)
    rewrite(japan, "redirect", rows["redirect"] * 2)

    found = inventory_of(japan)

    assert (found.n_redirects, found.n_usable) == (23, 21)
    assert found.names.set_index("name").loc["略称からの転送", "n_redirects"] == 4


def test_a_redirect_of_which_no_row_tells_the_target_is_not_usable(japan):
    """The page table marks it, and the build could not take it."""
    usable, unknown = inventory_of(japan), mini_ja.tables()["redirect"]
    rewrite(japan, "redirect", unknown[1:])

    found = inventory_of(japan)

    assert found.n_redirects == usable.n_redirects
    assert found.n_usable == usable.n_usable - 1


@pytest.mark.parametrize(
    ("name", "language", "project"),
    [
        ("frwiki", "fr", "fr.wikipedia"),
        ("be_x_oldwiki", "be-x-old", "be-x-old.wikipedia"),
        ("itwikibooks", "it", "it.wikibooks"),
    ],
)
def test_a_wiki_of_any_language_is_described_by_its_name(name, language, project):
    config = unmapped_wiki(name)

    assert (config.language, config.project) == (language, project)
    assert config.uncategorised
    assert re.fullmatch(r"[a-z-]+\.[a-z]+", config.project)
