"""Mention tables of a dump, and expected mentions."""

import json

import numpy as np
import pandas as pd
import pytest
from surface_consistency_build.counting import SurfaceTable
from surface_consistency_build.linking import MentionTable, expected_mentions, mention_build
from surface_consistency_build.linking.mention_build import MentionSettings, build_mentions

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RunError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
)

PLANET, ELEMENT, UNLINKED = 12, 4, 8
ROW = {
    "surface": "Paris",
    "entity_id": "Q90",
    "title": "Paris",
    "n_links": 8,
    "is_title": True,
    "is_redirect": False,
    "n_link_documents": 9,
    "n_surface_documents": 19,
}


def rows_of(folder, surface):
    frame = pd.read_parquet(folder / "mentions.parquet")
    return frame[frame["surface"] == surface].set_index("entity_id").drop(columns=["surface"])


def test_links_are_counted_by_name_and_entity_through_redirects(built):
    rows = rows_of(built.folder, "Mercury")

    assert rows["n_links"].to_dict() == {"Q308": PLANET, "Q925": ELEMENT}
    assert (rows["n_link_documents"] == PLANET + ELEMENT).all()
    # The disambiguation page and that of the Solar System hold the word too.
    assert (rows["n_surface_documents"] == PLANET + ELEMENT + UNLINKED + 2).all()
    element = rows_of(built.folder, "element").loc["Q925"]
    assert (element["n_links"], element["n_link_documents"]) == (1, 1)
    # Chemistry, the page without links, and the disambiguation page by its "(element)".
    assert element["n_surface_documents"] == ELEMENT + UNLINKED + 3


def test_titles_and_redirects_are_names_without_links(built):
    redirect = rows_of(built.folder, "Liquid silver").loc["Q925"]

    assert (redirect["n_links"], redirect["is_redirect"], redirect["is_title"]) == (0, True, False)
    assert rows_of(built.folder, "Orphan").index.tolist() == ["name:Orphan"]
    assert rows_of(built.folder, "Unwritten").empty


def test_disambiguation_pages_are_no_entities_where_they_are_known(built, titled):
    assert "name:Mercury" not in rows_of(built.folder, "Mercury").index
    assert "name:Mercury" in rows_of(titled.folder, "Mercury").index
    assert built.counted["n_links_to_no_article"] == ELEMENT


def test_without_page_props_the_build_says_what_that_means(wiki, tmp_path):
    with pytest.warns(SurfaceConsistencyWarning, match="disambiguation pages count as entities"):
        build_mentions([wiki / "pages.xml"], tmp_path / "out", MentionSettings(workers=1))


def test_a_part_of_a_dump_keeps_pages_that_it_lacks(wiki, tmp_path):
    props = wiki / "page_props.sql.gz"
    settings = MentionSettings(page_props=props, partial=True, keep_texts=True, workers=1)

    built = build_mentions([wiki / "pages.xml"], tmp_path / "out", settings)

    assert rows_of(built.folder, "Unwritten").index.tolist() == ["name:Unwritten"]
    assert [item.name for item in (built.folder / "reading").iterdir()] == ["texts"]
    (texts,) = (pd.read_parquet(part) for part in (built.folder / "reading" / "texts").iterdir())
    assert "Mercury of the Solar System ." in texts["text"].tolist()


def test_a_killed_build_goes_on_and_gives_the_same_table(wiki, built, tmp_path, monkeypatch):
    settings = MentionSettings(page_props=wiki / "page_props.sql.gz", workers=1)
    join, read = mention_build._join, mention_build._read_dumps

    def killed(*_):
        raise KeyboardInterrupt("stopped by hand")

    monkeypatch.setattr(mention_build, "_join", killed)
    with pytest.raises(KeyboardInterrupt, match="stopped by hand"):
        build_mentions([wiki / "pages.xml"], tmp_path / "out", settings)
    monkeypatch.setattr(mention_build, "_join", join)
    monkeypatch.setattr(mention_build, "_read_dumps", killed)
    again = build_mentions([wiki / "pages.xml"], tmp_path / "out", settings)
    monkeypatch.setattr(mention_build, "_read_dumps", read)

    assert again.counted == built.counted
    pd.testing.assert_frame_equal(
        pd.read_parquet(again.folder / "mentions.parquet"),
        pd.read_parquet(built.folder / "mentions.parquet"),
    )
    with pytest.raises(RunError, match="another plan: min_links was 1, now 2"):
        build_mentions(
            [wiki / "pages.xml"], tmp_path / "out", settings.model_copy(update={"min_links": 2})
        )


def test_what_is_no_dump_or_folder_is_refused(tmp_path, wiki):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    empty = tmp_path / "empty.xml"
    empty.write_text('<mediawiki version="0.11"><siteinfo></siteinfo></mediawiki>\n')

    with pytest.raises(
        DataError, match=r"holds other things than a mention table, such as thesis\.tex"
    ):
        build_mentions([wiki / "pages.xml"], tmp_path / "other")
    with pytest.raises(SourceNotFoundError, match="there is no file"):
        build_mentions([tmp_path / "none.xml"], tmp_path / "out")
    with pytest.raises(DataError, match="holds no article with a link"):
        build_mentions([empty], tmp_path / "out2")
    with pytest.raises(DataError, match="give at least one dump"):
        build_mentions([], tmp_path / "out3")


def test_commonness_and_link_probability_are_by_links_and_pages(built):
    table = MentionTable.read(built.folder)
    rows = table.rows_of(["Mercury", "Quicksilver", "none"])

    assert set(rows) == {"Mercury", "Quicksilver"}
    assert table.commonness[rows["Mercury"]].tolist() == [PLANET / 16, ELEMENT / 16]
    assert table.commonness[rows["Quicksilver"]].tolist() == [1.0]
    name = list(table.names).index("Mercury")
    assert table.link_probability[name] == pytest.approx(16.5 / 27)


def test_entities_take_the_ids_of_a_data_set_by_title_or_redirect(titled):
    table = MentionTable.read(titled.folder)

    named = table.named({"Q925": "Quicksilver", "Q308": "Mercury (planet)", "Q0": "Nothing"})

    ids = dict(zip(named.titles, named.entities, strict=True))
    assert (ids["Mercury (element)"], ids["Mercury (planet)"]) == ("Q925", "Q308")
    assert "Q0" not in ids.values()
    assert table.named({}) is table
    assert named.digest != table.digest


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([{"surface": "a"}], ColumnNotFoundError, "has no column entity_id, title"),
        ([ROW, ROW], DataError, "a name and entity twice"),
        ([{**ROW, "n_links": None}], DataError, "column n_links .* no empty cells"),
        ([{**ROW, "n_links": -1}], DataError, "counts from 0"),
    ],
)
def test_tables_that_are_none_are_refused(rows, error, message):
    with pytest.raises(error, match=message):
        MentionTable.from_rows(rows)


def test_files_that_are_no_table_are_named(tmp_path):
    (tmp_path / "mentions.parquet").write_bytes(b"x")
    pd.DataFrame({"surface": ["a"]}).to_parquet(tmp_path / "other.parquet")

    with pytest.raises(DataError, match="cannot be read as Parquet"):
        MentionTable.read(tmp_path)
    with pytest.raises(ColumnNotFoundError, match=r"other\.parquet: the mention table has no"):
        MentionTable.read(tmp_path / "other.parquet")
    with pytest.raises(SourceNotFoundError, match=r"no mention table .* build mentions"):
        MentionTable.read(tmp_path / "none")


def test_expected_mentions_are_those_of_drawing_from_the_posterior():
    # Second implementation: q = l p drawn from its Beta distributions, mentions from the binomial.
    other = {**ROW, "entity_id": "Q167646", "title": "Paris (mythology)", "n_links": 3}
    mentions = MentionTable.from_rows([ROW, {**other, "is_title": False}])
    table = SurfaceTable.from_records([("Q90", "Paris"), ("Q90", "Lutetia"), ("Q1", "Paris")])

    found = expected_mentions(table, np.array([200, 5]), mentions)

    rng = np.random.default_rng(0)
    q = rng.beta(9.5, 10.5, 400_000) * rng.beta(9.5, 3.5, 400_000)
    drawn = rng.binomial(200, q)
    assert found.mean[0] == pytest.approx(drawn.mean(), rel=0.005)
    assert found.sd[0] == pytest.approx(drawn.std(), rel=0.01)
    assert (found.p_entity[0], found.p_link[0]) == (0.75, 0.475)
    # A name that the links do not know has none; one that means others alone has 0.
    assert np.isnan(found.mean[1])
    assert (found.mean[2], found.p_entity[2], found.sd[2]) == (0.0, 0.0, 0.0)


def test_the_manifest_tells_the_plan_and_what_was_found(built):
    told = json.loads((built.folder / "manifest.json").read_text())

    assert told["result"] == dict(built.counted)
    assert told["plan"]["dump 1"]["n_bytes"] > 0
    assert not (built.folder / "reading").exists()
