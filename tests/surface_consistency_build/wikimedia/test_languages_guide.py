"""The commands of docs/guides/languages.md, run unchanged on a Japanese wiki of 51 pages."""

import re
from pathlib import Path

import pandas as pd
import pytest
from surface_consistency_build import build_dataset
from surface_consistency_build.wikimedia import load_wiki
from surface_consistency_build.wikimedia.wikis import WIKIS

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.run import run_study
from surface_consistency.models import FakeRunner
from surface_consistency.schemas import Prompt, read_jsonl
from surface_consistency.studies.redirectqa.study import RedirectQASettings, RedirectQAStudy
from tests.surface_consistency_build.wikimedia import mini_ja

duckdb = pytest.importorskip("duckdb")

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "languages.md"


def block(language, place=0):
    """Return the code of one fenced block of the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[place]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the dumps, the mapping of the guide, and its Parquet files."""
    home = tmp_path_factory.mktemp("ja")
    mini_ja.write(home / "dumps")
    (home / "mapping.toml").write_text(block("toml"), encoding="utf-8")
    (home / "kinds.sql").write_text(block("sql"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        exec(block("python"), {})
    return home


def counted(home, monkeypatch, mapped):
    """Run the query of the guide."""
    monkeypatch.chdir(home)
    return duckdb.execute(block("sql"), {"mapped": mapped}).df().set_index("category")


def test_query_of_the_guide_gives_its_table(home, monkeypatch):
    counts = counted(home, monkeypatch, [])

    rows = counts.reset_index().fillna("").astype(str).to_numpy().tolist()
    lines = re.findall(r"^\|(.*転送 \|.*)\|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    printed = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert rows == printed
    assert len(rows) == 8


def test_mapping_of_the_guide_is_read_by_the_build(home, tmp_path):
    mapping = home / "mapping.toml"
    config = load_wiki(mapping)

    built = build_dataset("redirectqa", home / "dumps", tmp_path / "out", wiki=str(mapping))

    assert config.questions == WIKIS["jawiki"].questions
    rows = pd.concat(map(pd.read_parquet, Path(built.folder).rglob("*.parquet")))
    assert len(rows) == 76
    redirects = rows[rows["subject_redirect_wiki_title"].notna()]
    labels = redirects["subject_surface_category"].str[0].str.removeprefix("Redirects_from_")
    named = redirects.groupby(labels)["subject_redirect_wiki_title"].agg(set).to_dict()
    expected = {
        "long_names": "日本国 フランス共和国 音羽山清水寺",
        "alternative_spellings": "にほん イタリヤ 芥川竜之介 7人の侍 きょうとふ おおさかふ",
        "short_names": "東京 漱石",
        "alternative_names": "仏国 巴里 羅馬 日本電波塔",
        "birth_names": "夏目金之助",
        "misspellings": "黒沢明 我輩は猫である",
    }
    assert named == {label: set(names.split()) for label, names in expected.items()}
    assert "仏国の首都はどこですか?" in set(rows["question"])
    # The data set is evaluated in its own language, including the demonstrations.
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
