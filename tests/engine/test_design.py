"""Citations of the designs of studies."""

import re
from pathlib import Path

import pytest

from surface_consistency.engine.design import Design, bibtex
from surface_consistency.engine.study import find_study

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["redirectqa", "slaq", "audit", "lexical", "linking"])
def test_citation_of_each_study_is_an_entry_of_the_bibliography(name):
    citation = find_study(name).design.citation

    assert citation.startswith("@")
    assert f"{citation}\n" in (ROOT / "docs" / "paper" / "paper.bib").read_text("utf-8")


@pytest.mark.parametrize("name", ["redirectqa", "slaq", "audit", "lexical"])
def test_title_cited_by_each_study_is_in_the_citation_file(name):
    title = re.search(r"title +?= \{(.+)\}", bibtex(f"surface_consistency.studies.{name}"))[1]

    assert title in (ROOT / "CITATION.cff").read_text("utf-8")


@pytest.mark.parametrize("place", range(4))
def test_default_cells_name_the_correct_condition(place):
    words = ("both correct", "only the first correct", "only the second correct", "both incorrect")

    assert Design(title="Made").cells[place] == words[place]
