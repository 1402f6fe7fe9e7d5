import shutil

import pytest

from surface_consistency.errors import ContaminationWarning, DataError, SourceNotFoundError
from surface_consistency.studies.audit import cell_label, find_cells


def test_find_cells_pairs_every_database_with_its_prompts(databases):
    cells = find_cells(databases)

    assert [(cell.label.database, cell.label.style, len(cell.prompts)) for cell in cells] == [
        ("lands/base", "direct_questions", 12),
        ("lands/base", "cloze", 12),
        ("lands/noise", "direct_questions", 14),
        ("lands/noise", "cloze", 14),
    ]
    assert cells[0].database is cells[1].database
    assert cells[0].prompt_file == "lands/prompts/base/prompts_direct_questions.jsonl"
    assert cells[2].database_file == "lands/noise.json"


def test_find_cells_reads_a_database_with_prompts_of_its_own(databases, tmp_path):
    """The layout of the released database; both layouts stand in one folder."""
    single = databases / "released_database"
    shutil.copytree(databases / "lands" / "prompts" / "base", single / "prompts")
    shutil.copy(databases / "lands" / "base.json", single / "lmlm_database.json")

    together, alone = find_cells(databases), find_cells(single / "lmlm_database.json")

    assert {cell.label.database for cell in together} == {"lands/base", "lands/noise", "released"}
    assert [cell.label.database for cell in alone] == ["released", "released"]
    assert alone[0].prompt_file == "prompts/prompts_direct_questions.jsonl"


def test_find_cells_reads_the_published_grid(shared_dir):
    """Thirteen databases, six styles, 12,228 prompts (arXiv 2607.00605, section 5)."""
    cells = find_cells(shared_dir / "data" / "lmlm_audit" / "data")

    assert len(cells) == 78
    assert len({cell.label.database for cell in cells}) == 13
    assert sum(len(cell.prompts) for cell in cells) == 12_228
    assert all(not cell.fit.missing for cell in cells)


def test_find_cells_takes_what_is_asked_for(databases):
    cells = find_cells(databases, variants=["noise"], styles=["cloze"], limit=3)

    assert [(cell.label.database, len(cell.prompts)) for cell in cells] == [("lands/noise", 3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"styles": ["haiku"]}, "no style haiku; there are cloze, direct_questions"),
        ({"domains": ["seas"]}, "no domain seas; there are lands"),
        ({"variants": ["alias"]}, "no variant alias; there are base, noise"),
    ],
)
def test_find_cells_rejects_names_that_are_not_there(databases, options, message):
    with pytest.raises(DataError, match=message):
        find_cells(databases, **options)


def test_find_cells_rejects_prompts_of_another_database(databases):
    file = databases / "lands" / "base.json"
    file.write_text(file.read_text().replace("ia", "ya").replace("Beldova", "Beldavo"))

    with pytest.raises(DataError, match=r"prompts_direct_questions\.jsonl: .*another database"):
        find_cells(databases)


def test_find_cells_warns_of_some_prompts_that_do_not_fit(databases):
    """Two of fourteen facts are the decoys, which the base database lacks."""
    shutil.copy(databases / "lands" / "base.json", databases / "lands" / "noise.json")

    with pytest.warns(ContaminationWarning, match="2 of 14 prompts ask for facts"):
        cells = find_cells(databases, variants=["noise"], styles=["cloze"])

    assert cells[0].fit.missing == (12, 13)


def test_find_cells_rejects_what_holds_no_databases(tmp_path, databases):
    with pytest.raises(SourceNotFoundError, match="no database file or folder"):
        find_cells(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceNotFoundError, match="no database with prompts"):
        find_cells(tmp_path / "empty")
    with pytest.raises(ValueError, match="limit counts prompts"):
        find_cells(databases, limit=0)


def test_find_cells_rejects_two_databases_of_one_name(databases):
    shutil.copytree(databases / "lands", databases / "copy" / "lands")

    with pytest.raises(DataError, match="both the database lands/base"):
        find_cells(databases)


@pytest.mark.parametrize("path", ["prompts_cloze.jsonl", "a/b/cloze.jsonl", "a/prompts_.jsonl"])
def test_cell_label_rejects_other_paths(path):
    with pytest.raises(DataError, match="is not a prompt file of an audit"):
        cell_label(path)
