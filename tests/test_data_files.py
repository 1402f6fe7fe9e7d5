"""Third-party files of the tests are small and have their licences."""

import re

import pytest

FOLDERS = (
    *("forms", "golden", "lmlm", "lmlm_audit", "papers", "redirectqa", "unlearning"),
    *("wikidata", "wikimedia"),
)


@pytest.mark.parametrize("name", FOLDERS)
def test_every_folder_states_its_licence(data_files, name):
    licence = (data_files / name / "LICENSE").read_text(encoding="utf-8")

    assert re.search(r"facts|quotations|MIT|CC0|CC BY-SA", licence)


def test_readme_lists_every_folder_and_table(data_files):
    readme = (data_files / "README.md").read_text(encoding="utf-8")

    assert sorted(path.name for path in data_files.iterdir()) == ["README.md", *FOLDERS]
    assert re.findall(r"^\| `(\w+)` \|", readme, re.M) == list(FOLDERS)
    for path in (data_files / "golden").glob("*.csv"):
        assert f"`{path.name}`" in readme


def test_files_are_small(data_files):
    sizes = [path.stat().st_size for path in data_files.rglob("*") if path.is_file()]

    assert sum(sizes) < 6_500_000
    assert max(sizes) < 400_000
