import re
import sys
from html.parser import HTMLParser

import pandas as pd
import pytest

from surface_consistency.cli import main
from surface_consistency.report.audit import fact_story, load_audit_runs, write_audit_report

EVIL = "<script>alert('1')</script>\x1b\u202e"

READER = (
    "from surface_consistency.schemas import Generation\n"
    "class Reader:\n"
    "    name = 'reader'\n"
    "    def __init__(self, model=None):\n"
    "        self.model = model\n"
    "    def fingerprint(self):\n"
    "        return {'runner': 'reader'}\n"
    "    def generate(self, prompts, params):\n"
    "        for prompt in prompts:\n"
    "            lines = prompt.text.splitlines()\n"
    "            told = lines[1].split(' | ')[-1] if lines[0] == 'Facts:' else 'unknown'\n"
    "            yield Generation(prompt_id=prompt.id, text=told)\n"
)


class Reader(HTMLParser):
    """Collects text, and checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in {"img", "meta", "wbr"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    """Return the page's text with white space evened out, and its tags."""
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    assert not reader.open
    return re.sub(r"\s+", " ", "".join(reader.text)), reader.tags


@pytest.fixture
def no_figures(monkeypatch):
    """Pages without pictures, which take longest to make; they say what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def checks():
    """Checks of a run whose every guard has something to say."""
    return {
        "contamination": pd.DataFrame(
            [
                {"database": "sports/base", "n": 6, "n_cells": 6, "n_near_zero": 6, "n_equal": 5}
                | {"full_accuracy": 0.008, "del_on_accuracy": 0.008, "is_contaminated": True},
                {"database": "released", "n": 6, "n_cells": 6, "n_near_zero": 0, "n_equal": 0}
                | {"full_accuracy": 0.46, "del_on_accuracy": 0.1, "is_contaminated": False},
            ]
        ),
        "databases": pd.DataFrame(
            {
                "database": ["countries/base", "sports/base"],
                "content": ["a" * 64, "a" * 64],
                "retriever_content": ["a" * 64, "b" * 64],
                "same_content_as": ["sports/base", "countries/base"],
            }
        ),
        "fit": pd.DataFrame(
            {"database": ["released"], "style": ["cloze"], "n_prompts": [100], "n_missing": [3]}
        ),
        "closure": pd.DataFrame(
            {
                "database": ["countries/base"],
                "n_facts": [20],
                "n_absent": [1],
                "n_shared_surface": [19],
                "n_shared_by_punctuation": [18],
                "n_other_objects": [5],
                "n_echoing": [2],
            }
        ),
    }


@pytest.mark.usefixtures("no_figures")
def test_report_opens_with_what_the_guards_found(
    audit_run, random_audit, audit_manifest, checks, tmp_path
):
    frame = random_audit(6, seed=1)
    frame.loc[0, "second_correct"] = pd.NA
    folder = audit_run("run", frame, audit_manifest(), checks=checks)

    page = write_audit_report(load_audit_runs([folder]), tmp_path / "out", stories=0)

    text, tags = read(page)
    assert page == tmp_path / "out" / "report.html"
    before = text[: text.index("What survives deletion, all facts")]
    for said in (
        "sports/base: right are 0.8 % with the database whole and 0.8 % with the fact deleted",
        "countries/base, sports/base hold the same entries",
        "sports/base was searched by a retriever over other content (bbbbbbbbbbbb, not aaaa",
        "released, cloze: the database lacks the facts of 3 of 100 prompts",
        "19 golds stay readable under another relation of their subject (18 of them because",
        "1 deletions delete nothing",
        "5 have further objects under the same subject and relation",
        "2 golds contain their subject",
        "1 of 72 facts have no verdict under DEL-OFF",
    ):
        assert said in before
    assert "released: right are" not in text
    assert "script" not in tags


@pytest.mark.usefixtures("no_figures")
def test_report_says_under_every_table_that_a_closure_was_incomplete(
    audit_run, audit_frame, audit_manifest, tmp_path
):
    rows = [{"n_surviving": int(place == 0), "first_correct": place == 0} for place in range(4)]
    folders = [
        audit_run("left", audit_frame(rows), audit_manifest("left")),
        audit_run("clean", audit_frame([{}, {}]), audit_manifest("clean")),
    ]

    page = write_audit_report(load_audit_runs(folders), tmp_path / "all.html", stories=0)

    html = page.read_text()
    note = "left: closure incomplete: after their deletion 1 of 4 facts are still stated"
    assert html.count("<table") > 10
    assert html.count(note) == html.count("<table")
    assert "clean: closure incomplete" not in html


@pytest.mark.usefixtures("no_figures")
def test_report_says_when_the_guards_found_nothing(
    audit_run, audit_frame, audit_manifest, checks, tmp_path
):
    quiet = {name: table.iloc[:0] for name, table in checks.items()}
    folder = audit_run("run", audit_frame([{}, {}]), audit_manifest(), checks=quiet)

    text, _ = read(write_audit_report(load_audit_runs([folder]), tmp_path, stories=0))

    assert "The guards found nothing" in text


@pytest.mark.usefixtures("no_figures")
def test_report_says_which_guards_were_not_run(audit_run, audit_frame, audit_manifest, tmp_path):
    folder = audit_run("run", audit_frame([{}, {}]), audit_manifest())

    text, _ = read(write_audit_report(load_audit_runs([folder]), tmp_path, stories=0))

    assert "not checked, since the run holds no such table: contamination, databases" in text
    assert "The guards found nothing" not in text


def test_report_shows_rates_origins_and_identity(audit_run, random_audit, audit_manifest, tmp_path):
    frame = random_audit(10, seed=2)
    folder = audit_run("run", frame, audit_manifest())

    text, tags = read(write_audit_report(load_audit_runs([folder]), tmp_path, stories=0))

    leaked = 100 * frame["second_correct"].mean()
    right = int((frame["attribution"] == "same_object").sum())
    assert f"{leaked:.1f} [" in text
    assert f"same object elsewhere{right}" in text.replace(" ", " ")
    assert "L + R, rate, %" in text
    assert "clustered p" in text
    assert "img" in tags
    assert "No figure" not in text


@pytest.mark.usefixtures("no_figures")
def test_report_of_several_runs_compares_them(audit_run, random_audit, audit_manifest, tmp_path):
    folders = [
        audit_run(f"run-{k}", random_audit(4, seed=k), audit_manifest(settings={"retriever": name}))
        for k, name in enumerate(("minilm", "bm25"))
    ]

    text, _ = read(write_audit_report(load_audit_runs(folders), tmp_path, stories=0))

    assert "Settings in which the runs differ" in text
    assert "organism (retriever minilm)" in text
    assert "pip install 'surface-consistency[plot]' Then write the report again." in text


@pytest.mark.usefixtures("no_figures")
def test_report_tells_stories_and_escapes_what_models_and_data_say(told_run, tmp_path):
    runs = load_audit_runs([told_run(subject=f"United {EVIL}")])

    page = write_audit_report(runs, tmp_path / "page.html", stories=3)

    text, tags = read(page)
    assert "script" not in tags
    assert "\x1b" not in text
    assert "countries/noise/7, cloze: United <script>alert('1')</script>" in text
    assert "deleted" in text
    assert "retained; SELECTED" in text
    assert "0.7100" in text
    assert "survived the deletion, which is incomplete: USA | Capital city" in text
    assert "DEL-OFF: wrong" in text


@pytest.mark.usefixtures("no_figures")
def test_report_says_that_no_fact_survived_or_that_the_log_is_gone(
    audit_run, told_run, audit_frame, audit_manifest, tmp_path
):
    nothing = audit_run("nothing", audit_frame([{}, {}]), audit_manifest("nothing"))
    told = told_run()
    (told / "generations.jsonl").unlink()

    text, _ = read(write_audit_report(load_audit_runs([nothing, told]), tmp_path / "p.html"))

    assert "nothing: no fact was answered after its deletion." in text
    assert "has no generations.jsonl" in text


def test_report_of_states_that_were_not_asked_says_so(
    audit_run, audit_frame, audit_manifest, tmp_path
):
    rows = [{"second_correct": None, "second_f1": None, "second_prediction": None}] * 3
    folder = audit_run("run", audit_frame(rows), audit_manifest())

    text, _ = read(write_audit_report(load_audit_runs([folder]), tmp_path, stories=0))

    assert "DEL-OFF was not asked" in text
    assert "No figure: the tables hold no rates by variant" in text


def test_write_audit_report_rejects_no_runs_and_negative_stories(told_run, tmp_path):
    with pytest.raises(ValueError, match="runs must not be empty"):
        write_audit_report([], tmp_path)
    with pytest.raises(ValueError, match="stories at least 0, got -1"):
        write_audit_report(load_audit_runs([told_run()]), tmp_path, stories=-1)


@pytest.mark.usefixtures("no_figures")
def test_report_reads_what_the_command_wrote(tmp_path, monkeypatch):
    """The real products of an audit, and not only those of fixtures, make a page."""
    pytest.importorskip("bm25s")
    (tmp_path / "page_reader.py").write_text(READER)
    monkeypatch.syspath_prepend(str(tmp_path))
    databases, out = str(tmp_path / "databases"), tmp_path / "run"
    topology = ["--domains", "countries", "--topologies", "noise", "--styles", "cloze"]
    assert main(["build", "audit", "--out", databases, *topology]) == 0
    store = ["--retriever", "bm25", "--threshold", "none", "--limit", "12", "--resamples", "50"]
    asked = ["--databases", databases, "--runner", "page_reader:Reader", "--out", str(out)]
    assert main(["audit", *asked, *store]) == 0

    runs = load_audit_runs([out])
    text, _ = read(write_audit_report(runs, out))

    assert len(runs[0].outcomes) == 12
    assert "golds stay readable under another relation" in text
    assert "not checked" not in text
    assert "reader: no fact was answered after its deletion." in text
    told = fact_story(out, runs[0].outcomes["fact_id"][0]).to_text()
    assert "FULL: right" in told
    assert "[same subject, relation, object; deleted]" in told
