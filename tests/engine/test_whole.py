import pandas as pd
import pytest

import surface_consistency as sc
from surface_consistency.cli.main import main
from surface_consistency.models import FakeRunner
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from tests.refusals import refusals

OPTIONS = {"source": "sample", "limit": 8, "shots": 0, "repeat": 0, "progress": False}


def answer(prompt):
    """Answer by the length of the prompt, so that some pairs flip."""
    return "actor" if len(prompt.text or "") % 2 else "London"


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_run_returns_the_stored_outcomes_and_resumes(tmp_path, capsys):
    backend = FakeRunner(answer, name="fake")
    outcomes = sc.run("redirectqa", runner=backend, label="mine", out=tmp_path / "x", **OPTIONS)
    again = sc.run(
        RedirectQAStudy(),
        runner=FakeRunner(lambda prompt: pytest.fail("sent again"), name=backend.name),
        label="mine",
        out=tmp_path / "x",
        **OPTIONS,
    )

    stored = pd.read_parquet(tmp_path / "x" / "outcomes.parquet")
    assert outcomes["pair"].tolist() == stored["pair"].tolist()
    assert outcomes["first_correct"].tolist() == again["first_correct"].tolist()
    assert {"type", "category", "cluster"} <= {*outcomes}
    for function in (sc.paired, sc.consistency):
        expected = function(outcomes).frame
        for source in (tmp_path / "x", tmp_path / "x" / "outcomes.parquet", stored):
            pd.testing.assert_frame_equal(function(source).frame, expected)
    by_type = sc.paired(tmp_path / "x", by="type").frame
    pd.testing.assert_frame_equal(by_type, sc.paired(outcomes, by="type").frame)
    assert main(["paired", str(tmp_path / "x" / "outcomes.parquet"), "--by", "type"]) == 0
    assert main(["paired", str(tmp_path / "x")]) == 0
    assert main(["consistency", str(tmp_path / "x")]) == 0
    assert "0 items" not in capsys.readouterr().out
    assert set(outcomes["model"]) == {"mine"}
    assert (tmp_path / "x" / "report.html").is_file()
    assert sc.paired(outcomes).to_frame()["n"].tolist() == [len(outcomes)]


test_run_rejects_invalid_studies_options_and_sources = refusals(
    lambda folder, study, options: sc.run(study, out=folder / "x", **options),
    ("redirectqaa", {}, "did you mean 'redirectqa'"),
    ("redirectqa", {"limt": 3}, r"redirectqa has no option 'limt' \(did you mean 'lim"),
    ("redirectqa", OPTIONS | {"limit": 0}, "limit"),
    ("redirectqa", OPTIONS | {"cluster": "nowhere", "runner": FakeRunner(answer)}, "cluster"),
    ("redirectqa", OPTIONS | {"source": [{"a": 1}]}, TypeError, "source is a list, .* to_parquet"),
    (RedirectQAStudy, OPTIONS, TypeError, "study is <class .*; pass an instance of Study, such"),
    (
        "redirectqa",
        OPTIONS | {"as_published": True},
        "^redirectqa: `as_published` .* `as_pub[^ ]*$",
    ),
    ("redirectqa", OPTIONS | {"runner": FakeRunner}, TypeError, "pass an instance of Runner"),
    fixture="tmp_path",
)
