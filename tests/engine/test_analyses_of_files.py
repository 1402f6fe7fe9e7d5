"""Analyses that convert files to runs, and whose finding can come first on the page."""

import pandas as pd
import pytest

from surface_consistency.cli.report import make_analyse
from surface_consistency.engine import Analysis, import_verdicts, report_runs
from surface_consistency.errors import SourceNotFoundError
from surface_consistency.plugins import importable
from surface_consistency.schemas.settings import Settings
from surface_consistency.tables import Column, Table


class Counted(Analysis):
    name = "counted"
    title = "Counted"

    def prepare(self, paths, out, settings):
        frames = [pd.read_csv(path) for path in paths]
        return [
            import_verdicts(
                frame, out / "made" / str(n), origin=str(path), first="a", second="b", model=f"m{n}"
            ).path
            for n, (path, frame) in enumerate(zip(paths, frames, strict=True))
        ]

    def tables(self, report, settings):
        frame = pd.DataFrame({"model": [run.label for run in report.runs]})
        columns = [Column(key="model", title="Model")]
        return {"counted": Table(frame=frame, caption="Counted models", columns=columns)}


class Leading(Counted):
    def finding(self, report, tables):
        return ["Two files were counted."]


@pytest.fixture
def files(tmp_path):
    """Two files of correctness labels of forty pairs."""
    cells = {"item": range(40), "first_correct": 1, "second_correct": [0, 1] * 20}
    verdicts = pd.DataFrame(cells)
    verdicts["pair"] = verdicts["item"]
    paths = [tmp_path / name for name in ("one.csv", "two.csv")]
    for path in paths:
        verdicts.to_csv(path, index=False)
    return paths


@pytest.mark.parametrize(("analysis", "is_first"), [(Counted(), False), (Leading(), True)])
def test_analysis_with_a_finding_comes_first_on_the_page(files, tmp_path, analysis, is_first):
    reported = report_runs(files, tmp_path / "out", analyses={analysis: Settings()})

    page = reported.page.read_text("utf-8")
    assert [run.label for run in reported.runs] == ["m0", "m1"]
    assert ("Two files were counted." in page) == is_first
    assert (page.index("Counted models") < page.index("All pairs")) == is_first
    assert ('<p class="standfirst">' in page) != is_first


def test_analyse_command_passes_files_to_an_analysis_of_files(files, tmp_path, capsys):
    name = f"{__name__}:Counted"

    with importable(name):
        make_analyse(name)(*files, out=tmp_path / "out")

    assert "Counted models" in capsys.readouterr().out


def test_analyse_command_rejects_files_for_an_analysis_of_runs(files, tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"one\.csv"):
        make_analyse("popularity")(*files, counts=[tmp_path / "counts"], out=tmp_path / "out")
