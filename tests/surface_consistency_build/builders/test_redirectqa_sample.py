"""The bundled sample: required content, and agreement of its files with its tables."""

import json
from collections import Counter, defaultdict

import datasets
import pytest

from scripts.redirectqa_sample.build_sample import SAMPLE_FOLDER, TABLES_FOLDER, main
from scripts.redirectqa_sample.tables import check_tables, find_faults, read_tables
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.matching import RULES, match
from surface_consistency.taxonomy import CATEGORIES, RELATIONS


@pytest.fixture(scope="module")
def rows():
    """Rows of the committed file."""
    lines = (SAMPLE_FOLDER / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_files_of_the_sample_equal_those_of_the_tables(tmp_path):
    """The generated files are not edited manually."""
    main(["--out", str(tmp_path)])

    made = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file())
    assert len(made) >= 2
    for name in made:
        assert (SAMPLE_FOLDER / name).read_bytes() == (tmp_path / name).read_bytes()
    (tmp_path / "test.jsonl").write_text("{}", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"test\.jsonl is not what the tables give"):
        main(["--check", "--out", str(tmp_path)])


def test_tables_of_the_sample_are_valid():
    """Facts and redirects satisfy every rule of the builder."""
    assert list(find_faults(read_tables(TABLES_FOLDER))) == []


def test_check_tables_rejects_an_invalid_copy(tmp_path):
    """A redirect of a subject without facts is reported."""
    for file in TABLES_FOLDER.glob("*.tsv"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    redirects = tmp_path / "redirects.tsv"
    lines = redirects.read_text(encoding="utf-8").splitlines()
    cells = lines[1].split("\t")
    cells[0] = "Q0"
    redirects.write_text("\n".join([lines[0], "\t".join(cells), *lines[2:]]) + "\n", "utf-8")

    with pytest.raises(ValueError, match="Q0"):
        check_tables(read_tables(tmp_path))


def test_sample_covers_relations_and_categories(rows):
    """At least 60 facts over 16 relations, with redirects in all 33 categories, 1 to 4 per fact."""
    facts = defaultdict(lambda: defaultdict(set))
    for row in rows:
        facts[row["triplet_id"]][row["template"]].add(
            (row["subject_surface"], tuple(row["subject_surface_category"]))
        )

    assert len(facts) >= 60
    assert {row["relation"] for row in rows} == set(RELATIONS)
    labels = {label for row in rows for label in row["subject_surface_category"]}
    assert labels == {"__MAIN__", *CATEGORIES}
    for by_template in facts.values():
        assert set(by_template) == {"original", "paraphrase"}
        assert by_template["original"] == by_template["paraphrase"]
        counted = Counter("__MAIN__" in kinds for _, kinds in by_template["original"])
        assert counted[True] == 1
        assert 1 <= counted[False] <= 4


def test_questions_of_the_sample_have_the_wording_of_the_taxonomy(rows):
    """Relations, properties and templates are those of the package."""
    for row in rows:
        relation = RELATIONS[row["relation"]]
        assert row["relation_id"] == relation.property_id
        assert row["question"] == relation.question(
            row["subject_surface"], template=row["template"]
        )


@pytest.mark.parametrize("rule", RULES)
def test_every_answer_matches_itself_and_questions_do_not_match(rows, rule):
    """Each rule matches each accepted answer, but not a repeated question."""
    for row in rows:
        for answer in row["object_aliases"]:
            assert match(answer, row["object_aliases"], rule=rule).is_match
        assert not match(row["question"], row["object_aliases"], rule=rule).is_match


def test_sample_is_loaded_like_a_hub_repository(rows, tmp_path):
    """`load_dataset(folder)` gives the rows with the declared features, pageviews as integers."""
    loaded = datasets.load_dataset(str(SAMPLE_FOLDER), split="test", cache_dir=str(tmp_path))

    assert loaded.to_list() == rows
    assert loaded.features["subject_pageviews"] == datasets.Value("int64")
    assert len(load_redirectqa(loaded).pairs) == sum(
        row["subject_redirect_wiki_title"] is not None for row in rows
    )
