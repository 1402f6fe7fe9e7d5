"""Fixtures of the tests of the matching rules."""

import json
from pathlib import Path

import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.matching.bulk import answer_sets


@pytest.fixture(autouse=True)
def clear_answer_sets():
    """Clear the answer sets that an earlier test cached."""
    answer_sets.cache_clear()


@pytest.fixture(autouse=True)
def skip_without_icu(request: pytest.FixtureRequest):
    """Skip tests of the rule `segmented` without icu4py, which it needs for some scripts."""
    named = getattr(getattr(request.node, "callspec", None), "params", {}).get("rule")
    if "segmented" in (named, getattr(named, "name", None)) and not (
        hasattr(named, "segmenter") and named.segmenter != "icu"
    ):
        pytest.importorskip("icu4py")


@pytest.fixture(scope="session", params=["bundled sample", "outside files"])
def gold_answers(request: pytest.FixtureRequest) -> list[str]:
    """Return every answer, alias and surface form of the data."""
    if request.param == "bundled sample":
        triples = [question.triple for question in load_redirectqa("sample").questions]
        return list(dict.fromkeys(answer for triple in triples for answer in triple.answers))
    return _golds_of_files(request.getfixturevalue("data_files"))


def _golds_of_files(data_files: Path) -> list[str]:
    """Collect answers, aliases, surface forms and the values of databases."""
    golds: dict[str, None] = {}
    for path in sorted(data_files.glob("lmlm_audit/data/**/*.jsonl")):
        for row in _rows(path):
            golds.update(dict.fromkeys([row["gold_object"], *row.get("object_aliases", [])]))
    for row in _rows(data_files / "redirectqa" / "v1_pairs_sample.jsonl"):
        golds.update(dict.fromkeys([row["subject_surface"], *row["subject_aliases"]]))
    for path in sorted(data_files.glob("**/*database.json")):
        database = json.loads(path.read_text(encoding="utf-8"))
        golds.update(dict.fromkeys(value for _, _, value in database["triplets"]))
    return list(golds)


def _rows(path: Path) -> list[dict]:
    """Read a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
