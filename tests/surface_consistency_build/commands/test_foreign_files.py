"""No maker replaces a file that no earlier command wrote, and each replaces its own."""

import shutil

import pytest

from surface_consistency.cli.main import main
from tests.faults import crashes
from tests.faults.crashes import COMMANDS

pytestmark = pytest.mark.filterwarnings("ignore")
CARDS = ("README.md",)
LINKED = ("entities.parquet", "surfaces.parquet", "instances.parquet", "linked.json")
MAKERS = {
    "count names": ("counted", ("inputs", "shards", "surfaces.parquet")),
    "count linked, rows": ("counted", LINKED),
    "count linked, an entity map": (
        "counted", ("linked_entities.parquet", "linked_pairs.parquet", "coverage.json")
    ),
    "build slaq": ("built", CARDS),
    "build audit": (
        "built",
        (*CARDS, "countries/base.json", "countries/prompts/base/prompts_cloze.jsonl", "prompts"),
    ),
    "build articles": ("built", ("articles.jsonl",)),
    "build topics": ("built", (*CARDS, "review.csv", "all/test-00000-of-00001.parquet")),
    "build paraphrases": ("built", (*CARDS, "review.csv")),
}  # fmt: skip
OWN = "written by its user\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    home = tmp_path_factory.mktemp("made")
    crashes._prepare(home)
    return home


@pytest.mark.parametrize("name", MAKERS)
def test_a_maker_replaces_what_it_wrote_and_nothing_else(name, made, tmp_path, monkeypatch, capsys):
    home, words = tmp_path / "home", list(COMMANDS[name].words)
    shutil.copytree(made, home)
    monkeypatch.chdir(home)
    out, names = MAKERS[name]
    for own in names:
        path = home / out / own
        path.parent.mkdir(parents=True)
        path.write_text(OWN)

        assert main(words) == 2

        said = capsys.readouterr().err
        assert path.relative_to(home / out).parts[0] in said
        assert "not written by an earlier command" in said or "holds" in said, said
        assert path.read_text() == OWN
        shutil.rmtree(home / out)
    assert main(words) == 0
    first = contents(home / out)
    assert main(words) == 0
    assert contents(home / out) == first


def contents(folder):
    """Read all files but those that tell when or where they were made."""
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
        if path.is_file() and path.suffix not in (".lock", ".sqlite")
    }  # fmt: skip
