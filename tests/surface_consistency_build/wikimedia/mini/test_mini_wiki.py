"""Test the construction on a wiki with manually derived rows; see README.md."""

import csv
import dataclasses
import hashlib
import shutil
from pathlib import Path

import pytest
from surface_consistency_build.wikimedia.construction import build_redirectqa, find_dumps
from surface_consistency_build.wikimedia.wikis import load_wiki

from surface_consistency.taxonomy import CATEGORIES, RELATIONS

pytest.importorskip("duckdb")

FOLDER = Path(__file__).resolve().parent
SEPARATOR = " | "
LISTS = ("subject_surface_category", "subject_aliases", "object_aliases")
NUMBERS = ("triplet_id", "subject_pageviews", "object_pageviews", "redirect_pageviews", "n_objects")


def table(name):
    with (FOLDER / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def expected_rows(templates=("original", "paraphrase"), relations=tuple(RELATIONS)):
    """The expected rows, with typed cells: each instance in each wording."""
    for line in table("expected_rows.tsv"):
        for name in LISTS:
            line[name] = tuple(line[name].split(SEPARATOR))
        for name in NUMBERS:
            line[name] = int(line[name]) if line[name] else None
        line["subject_redirect_wiki_title"] = line["subject_redirect_wiki_title"] or None
        questions = {name: line.pop(f"question_{name}") for name in ("original", "paraphrase")}
        if line["relation"] in relations:
            yield from (
                {**line, "template": name, "question": questions[name]} for name in templates
            )


def shown(row):
    """A built row with the columns that the expected ones have."""
    names = set(next(expected_rows()))
    return {name: value for name, value in row.model_dump().items() if name in names}


@pytest.fixture(scope="module")
def sql_build(tmp_path_factory):
    """The default build, from the SQL tables."""
    plan = find_dumps(FOLDER, "enwiki", route="sql")
    return build_redirectqa(plan.files, tmp_path_factory.mktemp("sql"), config=plan.config)


@pytest.fixture
def build(tmp_path):
    """Builds with other files or settings."""

    def run(route="sql", config="enwiki", folder="work", dumps=None, **options):
        files = find_dumps(FOLDER, "enwiki", route=route).files
        files = dataclasses.replace(files, **(dumps or {}))
        return build_redirectqa(files, tmp_path / folder, config=load_wiki(config), **options)

    return run


def digest(result):
    return hashlib.sha256(result.path.read_bytes()).hexdigest()


def removed(result, step):
    return {count.reason: count.removed for count in result.attrition if count.step == step}


def test_build_equals_the_manually_derived_rows(sql_build):
    """They cover all 33 categories and all 16 relations."""
    built, expected = [shown(row) for row in sql_build.rows()], list(expected_rows())

    for got, wanted in zip(built, expected, strict=False):
        assert got == wanted
    assert len(built) == len(expected) == 286
    assert {row["relation"] for row in built} == set(RELATIONS)
    labels = {label for row in built for label in row["subject_surface_category"]}
    assert labels == {"__MAIN__", *CATEGORIES}
    assert (sql_build.n_triples, sql_build.n_redirect_instances) == (49, 94)
    assert (sql_build.n_instances, sql_build.n_rows) == (143, 286)


def test_attrition_equals_the_manually_derived_counts(sql_build):
    got = [count.model_dump() for count in sql_build.attrition]
    numbers = ("rows_in", "rows_out", "removed")
    wanted = [
        line | {name: int(line[name]) for name in numbers} | {"reason": line["reason"] or None}
        for line in table("expected_attrition.tsv")
    ]

    def key(count):
        return count["step"], count["unit"], count["reason"] or ""

    assert sorted(got, key=key) == sorted(wanted, key=key)


def test_older_category_schema_gives_the_same_bytes(sql_build, build):
    """`cl_to` of the dumps before 2025, without `linktarget`."""
    older = FOLDER / "older" / "enwiki-20240101-categorylinks.sql.gz"
    result = build(dumps={"categorylinks": older, "linktarget": None})

    assert digest(result) == digest(sql_build)
    assert removed(result, "read categorylinks") == {"no wanted category": 4}


def test_text_route_gives_the_same_bytes(sql_build, build):
    """Redirects and categories from the text of pages, with the `page` table for the articles."""
    result = build(route="xml")

    assert digest(result) == digest(sql_build)
    for step in ("resolve", "candidates", "surfaces", "instances"):
        assert removed(result, step) == removed(sql_build, step)


def test_uncategorised_route_keeps_redirects_without_categories(sql_build, build):
    """Without categories the redirects of Q40 and Q41 are kept, and all have one label."""
    config = load_wiki("enwiki").model_copy(
        update={"categories": {}, "templates": {}, "uncategorised": True}
    )
    files = find_dumps(FOLDER, config, route="uncategorised").files
    rows = list(build_redirectqa(files, sql_build.path.parent / "plain", config=config).rows())
    surfaces = {row.subject_surface for row in rows}

    assert {"R. Selje", "Pryce, Iwan", "Iwan P."} <= surfaces
    assert surfaces >= {row.subject_surface for row in sql_build.rows()}
    assert {row.subject_surface_category for row in rows} == {
        ("__MAIN__",),
        ("Redirects_uncategorised",),
    }


def test_release_v0_1_0_has_no_religion_and_one_wording(sql_build, build):
    result = build(config="enwiki-v0.1.0")
    relations = tuple(name for name in RELATIONS if name != "religion")
    wanted = list(expected_rows(("original",), relations))
    got = [shown(row) for row in result.rows()]

    for row in (*wanted, *got):
        del row["triplet_id"]
    assert got == wanted
    assert removed(result, "claims") == {"another relation, or a repeated claim": 3}


@pytest.mark.parametrize("threads", [1, 3])
def test_build_is_deterministic(sql_build, tmp_path, threads):
    """The same dumps and seed give the same bytes in any folder, with any threads and memory."""
    other = tmp_path / "elsewhere"
    shutil.copytree(FOLDER, other, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    plan = find_dumps(other, "enwiki", route="sql")
    options = {"config": plan.config, "threads": threads, "memory_limit": "300MB"}
    again = build_redirectqa(plan.files, tmp_path / "work", **options)

    assert digest(again) == digest(sql_build)
    assert again.attrition == sql_build.attrition


def test_unambiguous_objects_exclude_shared_names(sql_build, build):
    """Q24's second occupation has the name of another item: not a fact, but a correct answer."""
    result = build(unambiguous="both")
    reason = "the object's canonical surface is shared by several entities"

    assert removed(result, "candidates") == {**removed(sql_build, "candidates"), reason: 1}
    assert removed(result, "sample") == {
        "another correct object of the question is the gold one": 1
    }
    got, wanted = [shown(row) for row in result.rows()], list(expected_rows())
    for row in (*got, *wanted):
        del row["triplet_id"]
    assert got == wanted
