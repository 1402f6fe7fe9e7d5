"""Golden runs of comparisons: two runs, imported labels, several models, unlearning logs."""

from pathlib import Path

import pandas as pd

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.labels import split_labels
from surface_consistency.analysis.settings import ComparisonSettings, TableSettings
from surface_consistency.engine.compare.results_page import comparison_page
from surface_consistency.engine.compare.verdicts import import_verdicts
from surface_consistency.engine.settings import RuleScoring
from surface_consistency.results.columns import ResultColumns
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.unlearning.analysis import UnlearningAnalysis, UnlearningSettings
from tests.golden_runs.files import EXPECTED, GoldenRun
from tests.golden_runs.gather import load_redirectqa, of_study, rendered, scored_run
from tests.golden_runs.inputs import reduced_model
from tests.made_logs import MODELS, tofu_log, write_log

DATA_FILES = Path(__file__).parents[1] / "data" / "files"
RULE = {"rule": "popqa", "agreement": False}
OUTCOMES = EXPECTED / "redirectqa" / "outcomes.csv"


def compare_runs(home: Path) -> GoldenRun:
    """Compare the answers of a model before and after some of its names are removed."""
    data = load_redirectqa()
    for name, forgets in (("before", 0.0), ("after", 0.25)):
        runner = reduced_model(name, data.questions, knows=0.8, forgets=forgets)
        settings = RedirectQASettings(shots=0, repeat=60, template="both")
        options = {"scoring": RuleScoring(**RULE), "model": "ada"}
        scored_run(RedirectQAStudy(), data, runner, home / name, settings, **options)
    compared = compare_results(
        [home / "before", home / "after"], ResultColumns(names=("before", "after"))
    )
    page, tables = comparison_page(compared)
    frames = {f"tables/{name}": table for name, table in tables.items()}
    return GoldenRun(tables=frames, page=rendered(page, [home]))


def outcomes_of_ada(home: Path) -> Path:
    """Write the outcomes of one model of the run `redirectqa` in one template as a CSV file."""
    frame = pd.read_csv(OUTCOMES)
    is_asked = (frame["model"] == "ada") & (frame["template"] == "original")
    frame[is_asked].to_csv(home / "ada.csv", index=False)
    return home / "ada.csv"


def compare_page(home: Path) -> GoldenRun:
    """Report external labels: the outcomes of the run `redirectqa` as a CSV file."""
    read = pd.read_csv(outcomes_of_ada(home), keep_default_na=False, na_values=[""])
    by = ("types", "relation")
    names = {"origin": "ada.csv", "first": "canonical", "second": "redirect"}
    folder = import_verdicts(split_labels(read, by, ";"), home / "out", by=by, **names)
    return of_study(None, [folder], {}, hidden=[home], answers=20)


def compare_models(home: Path) -> GoldenRun:
    """Compare three models on the redirects of `redirectqa`; the third is bob with errors added."""
    frame = pd.read_csv(OUTCOMES)
    names = {
        "pair": "item",
        "item": "fact",
        "second_correct": "score",
        "second_prediction": "prediction",
    }
    rows = frame.rename(columns=names).assign(
        task=frame["template"], question=frame["second_surface"]
    )
    columns = ["task", "model", "item", "score", "prediction", "question", "fact", "types"]
    third = rows[rows["model"] == "bob"].assign(model="bob-8bit")
    third.loc[third.index[::4], "score"] = False
    pd.concat([rows, third])[columns].to_csv(home / "answers.csv", index=False)
    compared = compare_results(
        home / "answers.csv",
        ResultColumns(cluster=("fact",)),
        ComparisonSettings(baseline="ada", margin=0.05),
        TableSettings(by=("types",), separator=";"),
    )
    page, tables = comparison_page(compared)
    frames = {f"tables/{name}": table for name, table in tables.items()}
    return GoldenRun(tables=frames, page=rendered(page, [home]))


def unlearning(home: Path) -> GoldenRun:
    """Analyse logs of three models on 200 questions about ten authors, with placeholder texts."""
    sides = [(MODELS[1], "full"), (MODELS[2], "retain90"), (MODELS[1], "retain90")]
    paths = []
    for model, side in sides:
        log = tofu_log(DATA_FILES, model, side)
        for metric in log.values():
            cells = metric["value_by_index"].items()
            metric["value_by_index"] = {n: cell for n, cell in cells if int(n) < 200}
        paths.append(write_log(home / f"{model}-{side}", log))
    analysis, settings = UnlearningAnalysis(), UnlearningSettings()
    folders = analysis.prepare(paths, home / "out", settings)
    opened = [RunFolder.open(folder) for folder in folders]
    return of_study(None, opened, {}, analyses={analysis: settings}, hidden=[home], answers=20)
