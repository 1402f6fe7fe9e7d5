"""Commands replace files of earlier commands, but not files of the user."""

import shutil

import pytest

from surface_consistency.cli.main import main
from tests.faults import crashes

pytestmark = pytest.mark.filterwarnings("ignore")
FILES = {
    "count names": "inputs shards surfaces.parquet",
    "count linked, rows": "entities.parquet surfaces.parquet instances.parquet linked.json",
    "count linked, an entity map": "linked_entities.parquet linked_pairs.parquet coverage.json",
    "build slaq": "README.md",
    "build audit": "README.md countries/base.json countries/prompts/base/prompts_cloze.jsonl",
    "build articles": "articles.jsonl",
    "build topics": "README.md review.csv all/test-00000-of-00001.parquet",
    "build paraphrases": "README.md review.csv",
}


@pytest.mark.parametrize("name", FILES)
def test_commands_replace_only_files_of_an_earlier_command(name, tmp_path, monkeypatch, capsys):
    words = list(crashes.COMMANDS[name].words)
    crashes._prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / ("counted" if words[0] == "count" else "built")
    for own in map(out.joinpath, FILES[name].split()):
        own.parent.mkdir(parents=True)
        own.write_text("written by its user\n")

        assert main(words) == 2

        assert own.relative_to(out).parts[0] in capsys.readouterr().err
        assert own.read_text() == "written by its user\n"
        shutil.rmtree(out)
    assert main(words) == main(words) == 0
