"""From dumps to a data set of a new language: the inventory, its draft, the build that reads it."""

import csv
import json
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from surface_consistency_build.cards.dataset_build import BuildSettings, write_redirectqa
from surface_consistency_build.inventory.tables import (
    InventorySettings,
    _wrapped,
    inventory_tables,
    write_inventory,
)
from surface_consistency_build.wikimedia.wikis import WIKIS, load_wiki

from surface_consistency import FakeRunner
from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.run import run_study
from surface_consistency.errors import RecordError
from surface_consistency.schemas import Prompt, read_jsonl
from surface_consistency.studies.redirectqa.study import RedirectQASettings, RedirectQAStudy
from tests.surface_consistency_build.wikimedia import mini_ja

pytest.importorskip("duckdb")

MINI = Path(__file__).parents[1] / "wikimedia" / "mini"
KINDS = {
    "別表記からの転送": "from alternative spellings",
    "略称からの転送": "from short names",
    "正式名称からの転送": "from long names",
    "本名からの転送": "from birth names",
}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ja") / "dumps"
    mini_ja.write(folder)
    return folder


def filled(draft, kinds):
    """Fill a draft in as a person does: what a name is, and the comment away."""
    for name, kind in kinds.items():
        line = f'#? "{name}" = ""'
        assert draft.count(line) == 1
        draft = draft.replace(line, f'"{name}" = "{kind}"')
    return draft


def test_the_draft_of_a_new_language_is_what_the_build_reads(dumps, tmp_path):
    written = write_inventory(dumps, tmp_path / "inventory", InventorySettings(least=1))
    mapping = written.folder / "mapping.toml"
    draft = mapping.read_text("utf-8")
    as_drafted = load_wiki(mapping)
    mapping.write_text(filled(draft, KINDS), encoding="utf-8")

    built = write_redirectqa(dumps, tmp_path / "out", builds=[BuildSettings(wiki=str(mapping))])

    # What the English wiki calls by name was mapped already.
    assert as_drafted.categories == {
        "別名からの転送": "Redirects_from_alternative_names",
        "誤記からの転送": "Redirects_from_misspellings",
    }
    assert as_drafted.questions == WIKIS["jawiki"].questions
    assert not as_drafted.uncategorised
    rows = pd.concat(map(pd.read_parquet, Path(built.folder).rglob("*.parquet")))
    redirects = rows[rows["subject_redirect_wiki_title"].notna()]
    kinds = {
        title: labels[0]
        for title, labels in redirects[
            ["subject_redirect_wiki_title", "subject_surface_category"]
        ].itertuples(index=False)
    }
    assert kinds == {
        "日本国": "Redirects_from_long_names",
        "にほん": "Redirects_from_alternative_spellings",
        "東京": "Redirects_from_short_names",
        "フランス共和国": "Redirects_from_long_names",
        "仏国": "Redirects_from_alternative_names",
        "巴里": "Redirects_from_alternative_names",
        "イタリヤ": "Redirects_from_alternative_spellings",
        "羅馬": "Redirects_from_alternative_names",
        "夏目金之助": "Redirects_from_birth_names",
        "漱石": "Redirects_from_short_names",
        "芥川竜之介": "Redirects_from_alternative_spellings",
        "黒沢明": "Redirects_from_misspellings",
        "我輩は猫である": "Redirects_from_misspellings",
        "7人の侍": "Redirects_from_alternative_spellings",
        "日本電波塔": "Redirects_from_alternative_names",
        "音羽山清水寺": "Redirects_from_long_names",
        "きょうとふ": "Redirects_from_alternative_spellings",
        "おおさかふ": "Redirects_from_alternative_spellings",
    }
    assert "仏国の首都はどこですか?" in set(rows["question"])
    # What was built is asked in its language, to the last demonstration.
    data = load_redirectqa(tmp_path / "out")
    folder = run_study(
        RedirectQAStudy(),
        data,
        FakeRunner(lambda prompt: " 東京都"),
        tmp_path / "run",
        model="m",
        settings=RedirectQASettings(repeat=0),
        progress=False,
    )
    assert (data.language, data.card_language) == ("ja", "ja")
    assert folder.read_manifest().settings["frame"] == "ja"
    prompts = [prompt.text for prompt in read_jsonl(folder.prompts, Prompt)]
    assert "質問: 仏国の首都はどこですか? 回答:" in {text.split("\n\n")[-1] for text in prompts}
    assert all(text.count("質問:") == text.count("か? 回答:") == 7 for text in prompts)


def test_the_draft_of_the_english_wiki_builds_the_same_rows(tmp_path):
    """What is known already is drafted as it is known."""
    written = write_inventory(MINI, tmp_path / "inventory", InventorySettings(least=1))
    mapping = str(written.folder / "mapping.toml")

    built = write_redirectqa(MINI, tmp_path / "a", builds=[BuildSettings(wiki=mapping)])

    rows = pd.concat(map(pd.read_parquet, Path(built.folder).rglob("*.parquet")))
    with (MINI / "expected_rows.tsv").open(encoding="utf-8", newline="") as lines:
        expected = {
            (line["subject_surface"], line["subject_surface_category"])
            for line in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        }
    assert len(rows) == 286
    assert {
        (surface, " | ".join(labels))
        for surface, labels in rows[["subject_surface", "subject_surface_category"]].to_numpy()
    } == expected


def test_a_wiki_of_which_nothing_is_known_has_a_draft_that_builds(dumps, tmp_path):
    """The tables under the name of a wiki without a configuration, and without langlinks."""
    other = tmp_path / "dumps"
    other.mkdir()
    for path in dumps.iterdir():
        if "langlinks" not in path.name:
            (other / path.name.replace("jawiki", "ainwiki")).symlink_to(path)

    written = write_inventory(other, tmp_path / "inventory", InventorySettings(least=1))

    draft = (written.folder / "mapping.toml").read_text("utf-8")
    config = load_wiki(written.folder / "mapping.toml")
    assert (config.wiki, config.language, config.project) == ("ainwiki", "ain", "ain.wikipedia")
    assert config.uncategorised
    assert not config.categories
    assert 'language = "ain"  # guessed from the wiki\'s name' in draft
    assert "# Questions are English until all of them are given in 'ain':" in draft
    given = re.sub(r"(?m)^# (?=\[questions\]|\w+ = \{)", "", draft)
    assert set(tomllib.loads(given)["questions"]) == set(config.relations)


def test_a_second_inventory_shows_what_is_left(dumps, tmp_path):
    """With the mapping that the first one drafted; its questions stay."""
    first = write_inventory(dumps, tmp_path / "first", InventorySettings(least=1))
    mapping = first.folder / "mapping.toml"
    mapping.write_text(filled(mapping.read_text("utf-8"), KINDS), encoding="utf-8")

    second = write_inventory(
        dumps, tmp_path / "second", InventorySettings(least=1, wiki=str(mapping))
    )

    assert first.inventory.kinds["n_mapped"].tolist() == [6, 4]
    assert second.inventory.kinds["n_mapped"].tolist() == [20, 4]
    names = second.inventory.names.set_index("name")
    assert names.loc["保護された転送", "n_gained"] == 0
    once, again = load_wiki(mapping), load_wiki(second.folder / "mapping.toml")
    assert again.model_dump(exclude={"notes"}) == once.model_dump(exclude={"notes"})


def test_a_kind_that_is_none_is_refused_by_its_name(dumps, tmp_path):
    written = write_inventory(dumps, tmp_path / "inventory", InventorySettings(least=1))
    mapping = written.folder / "mapping.toml"
    draft = mapping.read_text("utf-8").replace('#? "略称からの転送" = ""', '"略称からの転送" = ""')
    mapping.write_text(draft, encoding="utf-8")

    with pytest.raises(
        RecordError, match="'略称からの転送' is mapped to '', which is none of the 33"
    ):
        load_wiki(mapping)


def test_rare_names_are_counted_and_not_drafted(dumps, tmp_path):
    written = write_inventory(dumps, tmp_path / "inventory", InventorySettings(least=4))

    draft = (written.folder / "mapping.toml").read_text("utf-8")
    assert "略称からの転送" in draft
    assert "本名からの転送" not in draft
    assert "# 4 more are in inventory.csv." in draft
    # What is mapped stands there however rare it is.
    assert '"誤記からの転送" = "from misspellings"' in draft
    assert len(pd.read_csv(written.folder / "inventory.csv")) == 16
    assert [len(table.frame) for table in inventory_tables(written.inventory, least=4)] == [2, 3, 3]


def test_a_comment_of_a_draft_may_be_as_long_as_its_width():
    word = "a" * 92

    assert list(_wrapped(word)) == [f"#   {word}"]
    assert list(_wrapped(f"{word} b")) == [f"#   {word}", "#    b"]


def test_the_command_prints_twenty_names_of_a_kind_where_it_is_not_told(capsys):
    assert main(["build", "inventory", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())

    assert "Names of each kind that are printed. [default: 20]" in words.replace("│ ", "")


def test_the_command_prints_the_counts_and_keeps_what_was_filled_in(dumps, tmp_path, capsys):
    out = tmp_path / "inventory"
    arguments = ["build", "inventory", "--dumps", str(dumps), "--out", str(out), "--least", "1"]

    assert main([*arguments, "--show", "0"]) == 2
    assert "--show counts names and must be 1 or more, got 0" in capsys.readouterr().err
    assert main([*arguments, "--show", "1"]) == 0
    assert "7 more are in inventory.csv." in capsys.readouterr().out
    assert main([*arguments, "--show", "2", "--overwrite"]) == 0
    said = capsys.readouterr().out
    assert "23 redirects of jawiki (20260101) in the article namespace; 21 lead to" in said
    assert "6 more are in inventory.csv." in said
    assert f"draft:  {out / 'mapping.toml'}" in said
    (out / "mapping.toml").write_text("# mine\n", encoding="utf-8")

    assert main(arguments) == 2
    assert "may hold your own lines" in capsys.readouterr().err
    assert (out / "mapping.toml").read_text("utf-8") == "# mine\n"
    assert main([*arguments, "--overwrite", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["n_usable"] == 21
    assert [row["n_mapped"] for row in told["kinds"]] == [6, 4]
    assert sorted(path.name for path in out.iterdir()) == [
        "inventory.csv",
        "inventory.json",
        "mapping.toml",
    ]


def test_titles_that_would_leave_their_comment_stay_in_it(tmp_path):
    """A title with a line feed or a control character, and a name with quotes."""
    rows = mini_ja.tables()
    rows["page"] = [
        (number, space, f"{title}\n[questions]\x00" if number == 200 else title, is_redirect)
        for number, space, title, is_redirect in rows["page"]
    ]
    rows["linktarget"] = [
        (number, space, f'{name}"\\\n' if number == 1_003 else name)
        for number, space, name in rows["linktarget"]
    ]
    folder = tmp_path / "dumps"
    folder.mkdir()
    for table, content in rows.items():
        path = folder / f"jawiki-{mini_ja.DATE}-{table}.sql"
        path.write_bytes(mini_ja.sql_dump(table, content))

    written = write_inventory(folder, tmp_path / "inventory", InventorySettings(least=1))

    config = load_wiki(written.folder / "mapping.toml")
    assert len(config.categories) == 2
    uncommented = (written.folder / "mapping.toml").read_text("utf-8").replace("#? ", "")
    assert any('"\\\n' in name for name in tomllib.loads(uncommented)["categories"])
