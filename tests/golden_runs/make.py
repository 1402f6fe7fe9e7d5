"""Golden runs: every study is run on small, fixed inputs, from the question to the page.

`inputs.py` contains models and data, `files.py` writes and compares results as text, and
`test_golden_runs.py` contains the tests.

Numbers (`expected/`, CSV files) are fixed. An intended change of a number requires a line "Numbers
change" in the changelog. This command rewrites the files of a run that differ:

    python -m tests.golden_runs.make NAME ...

Wording (`wording/`, one page per study) may change with any commit that improves a sentence. This
command rewrites it; read the diff afterwards:

    python -m tests.golden_runs.make --wording [NAME ...]
"""

import sys
import tempfile
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from surface_consistency.analysis.labels import split_labels
from surface_consistency.analysis.measures import paired
from surface_consistency.data.redirectqa import RedirectQA
from surface_consistency.data.slaq import Slaq, load_slaq
from surface_consistency.engine.design import Report
from surface_consistency.engine.report import _check_tables
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import ReportSettings, RuleScoring
from surface_consistency.metrics.paired.multiplicity import with_adjusted_p_values
from surface_consistency.models.runner import Runner
from surface_consistency.runs.loader import load_runs
from surface_consistency.schemas import Generation, LookupQuery, Triplet
from surface_consistency.studies.audit import AuditData, AuditSettings, AuditStudy, find_conditions
from surface_consistency.studies.audit.lookup.fact_store import LookupRequest
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.slaq.judges import MatcherJudge, SlaqLLMJudge
from surface_consistency.studies.slaq.page import slaq_report_tables
from surface_consistency.studies.slaq.settings import SlaqScoring, SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy
from tests.golden_runs import inputs
from tests.golden_runs.files import EXPECTED, WORDING, GoldenRun, differences, pinned, whole_text
from tests.golden_runs.gather import (
    RESAMPLES,
    gathered,
    load_redirectqa,
    of_study,
    rendered,
    scored_run,
)
from tests.golden_runs.many_forms import forms
from tests.golden_runs.scores import frequency, lexical, linking, linking_vs_consistency
from tests.golden_runs.sweeps import (
    OUTCOMES,
    compare_models,
    compare_page,
    compare_runs,
    outcomes_of_ada,
    unlearning,
)
from tests.golden_runs.weights import mechanism


def redirectqa(home: Path) -> GoldenRun:
    """Run two models on both templates with a repeated sample, and report both on one page."""

    class FirstFacts(RedirectQA):
        """The expected numbers are of the first facts; a limit now samples every relation."""

        def select(self, *, templates=None, relations=None, limit=None):
            selected = super().select(templates=templates, relations=relations)
            kept = selected.rows["item"].isin(selected.rows["item"].unique()[:limit])
            return RedirectQA.from_rows(
                selected.rows[kept].reset_index(drop=True), source=self.source.id
            )

    found, study = load_redirectqa(), RedirectQAStudy()
    data = FirstFacts(rows=found.rows, source=found.source)
    settings = RedirectQASettings(template="both", shots=2, seed=3, limit=60, repeat=150)
    models = (
        inputs.redirect_model("ada", data.questions, knows=0.75),
        inputs.redirect_model("bob", data.questions, knows=0.5, fails=0.03),
    )
    folders, rescored = [], {}
    for runner in models:
        folder = scored_run(study, data, runner, home / runner.name, settings)
        frame = score_run(folder, scoring=RuleScoring(rule="boundary", region="whole"))
        rescored[runner.name] = frame[["model", "pair", "first_correct", "second_correct"]]
        score_run(folder)
        folders.append(folder.path)

    def tables_of(runs, cluster="item"):
        settings = ReportSettings(resamples=RESAMPLES)
        report = Report(runs=runs, design=study.design, settings=settings, cluster=cluster)
        return report, study.report.compute(report) | _check_tables(runs)

    runs = load_runs(folders, outcome=study.records.outcome)
    report, tables = tables_of(runs)
    frames = {name: table.frame for name, table in tables.items()}
    frames["overall_by_subject"] = tables_of(runs, "subject_id")[1]["overall"].frame
    frames["overall_alone"] = tables_of(runs[:1])[1]["overall"].frame
    frames["rescored"] = pd.concat(rescored.values())
    page = rendered(study.report.page(report, tables), [home])
    return gathered({run.label: run for run in runs}, frames, page)


def slaq(home: Path) -> GoldenRun:
    """Run two models on all forms; a rule scores one, an LLM judge the other, with human labels."""

    class Judged(SlaqStudy):
        report = replace(SlaqStudy.report, tables=(partial(slaq_report_tables, n_null=200),))
        judges = {  # noqa: RUF012
            "ada": MatcherJudge(),
            "bob": SlaqLLMJudge(
                inputs.slaq_judge("jay"), home / "judge", model="jay", progress=False
            ),
        }

        def judge(self, scoring, folder):
            return self.judges[folder.read_manifest().model]

    # The expected numbers are of the first topics; a limit now samples every category.
    sample, study = load_slaq("sample"), Judged()
    data = Slaq.from_rows(sample.rows[:45], source=sample.source.id)
    settings = SlaqSettings(free=True, permutations=5, seed=2, repeat=25)
    folders = []
    for name, knows, fails in (("ada", 0.7, 0.03), ("bob", 0.55, 0.0)):
        runner = inputs.slaq_model(name, data.topics, knows=knows, fails=fails)
        folder = run_study(
            study, data, runner, home / name, model=name, settings=settings, progress=False
        )
        labels = inputs.slaq_labels(name, data.topics, knows=knows, n_permutations=5)
        folder.labels.write_text(labels, encoding="utf-8")
        scoring = SlaqScoring(
            labelling_sheet=home / f"sheet-{name}.csv", labelling_sample=4, labelling_seed=1
        )
        score_run(folder, study=study, scoring=scoring)
        folders.append(folder.path)
    runs = load_runs(folders, outcome=study.records.outcome)
    settings = ReportSettings(resamples=RESAMPLES)
    report = Report(runs=runs, design=study.design, settings=settings, cluster="topic_id")
    tables = study.report.compute(report)
    tables |= {name: table for name, table in _check_tables(runs).items() if name not in tables}
    frames = {name: table.frame for name, table in tables.items()}
    for name, labels in {"overall": [], **study.design.groupings}.items():
        # The expected tables are sorted by model, condition and label, unlike those of the page.
        frames[name] = frames[name].sort_values(["model", "condition", *labels], kind="stable")
    sheet = {"labelling_sheet": pd.read_csv(home / "sheet-bob.csv")}
    page = rendered(study.report.page(report, tables), [home])
    return gathered({run.label: run for run in runs}, frames | sheet, page)


def audit_data(home: Path):
    """Build small databases with decoys, near misses and aliases, and return their prompts."""
    from surface_consistency_build.builders.audit_databases.databases import build_audit_databases
    from surface_consistency_build.builders.audit_databases.fact_tables import (
        Aliases,
        FactTable,
        RelatedFact,
    )
    from surface_consistency_build.builders.audit_databases.styles import style_writers

    def named(name, *aliases, role):
        return Aliases(name=name, aliases=aliases, roles=(role,))

    def related(near, *triplet):
        return RelatedFact(triplet=Triplet(*triplet), near=(near, "Capital"))

    table = FactTable(
        name="lands",
        facts=tuple(
            Triplet(name, relation, value)
            for name, values in inputs.COUNTRIES.items()
            for relation, value in zip(inputs.RELATIONS, values, strict=True)
        ),
        aliases=(
            *(named(n, f"Republic of {n}", f"{n} Land", role="subject") for n in inputs.COUNTRIES),
            # Only the closure over all prompts contains this name as an alias of Arania.
            named("RA", "Republic of Arania", role="subject"),
            named("Capital", "Capital City", "Seat", role="relation"),
            named("Internet TLD", "TLD", "Web Domain", role="relation"),
        ),
        noise=(
            *(
                related(n, f"{n} State", "Capital City", inputs.COUNTRIES[n][0])
                for n in inputs.DECOYS
            ),
            related("Arania", "RA", "Capital", "Lumo"),
        ),
        collision=tuple(related(n, f"{n} Isles", "Capital", f"Port {n}") for n in inputs.DECOYS),
    )
    folder = home / "databases"
    build_audit_databases(
        folder, domains=[table], topologies=inputs.TOPOLOGIES, styles=style_writers(inputs.STYLES)
    )
    return AuditData(id="databases", conditions=find_conditions(folder))


class Asking(Runner):
    """A model that looks its fact up in the store and returns the value, or a value it knows."""

    name = "asking"

    def __init__(self, source=None):
        self.source = source

    def with_store(self, source):
        return Asking(source)

    def fingerprint(self):
        return {"runner": self.name, "source": self.source.fingerprint()}

    def generate(self, prompts, params):
        for prompt in prompts:
            fact = self.source.query(prompt)
            key = (fact.entity, fact.relation)
            known = (
                inputs.COUNTRIES.get(fact.entity, ("Lumo",))[0]
                if inputs.chance("knows", *key) < 0.2
                else ""
            )
            if self.source.mode(prompt) != "answer":
                yield Generation(prompt_id=prompt.id, text=f" {known or 'unknown'}.", lookups=())
                continue
            query = LookupQuery(entity=fact.entity, relation=fact.relation)
            (lookup,) = self.source.look_up([LookupRequest(prompt, query)])
            text = (
                f"<|db_entity|> {query.entity}<|db_relationship|> {query.relation}<|db_return|> "
                f"{lookup.value or 'unknown'}<|db_end|>{'' if lookup.value else known}."
            )
            yield Generation(prompt_id=prompt.id, text=text, lookups=(lookup,))


def audit(home: Path) -> GoldenRun:
    """Audit with lexical retrieval (BM25); the retrieved entries are in the prompt."""
    study, data = AuditStudy(), audit_data(home)
    reader = inputs.audit_reader([prompt for one in data.conditions for prompt in one.prompts])
    settings = AuditSettings(retriever=("bm25",), threshold=(None,), n_facts=2)
    folder = scored_run(study, data, reader, home / "run", settings)
    published = {
        f"published_{name}": pd.read_csv(folder.path / f"{name}_metrics.csv")
        for name in ("per_state", "cross_state")
    }
    return of_study(study, [folder], published, hidden=[home])


def audit_sweep(home: Path) -> GoldenRun:
    """Audit a model with fuzzy lookups at two thresholds, and compare the two runs."""
    study, data = AuditStudy(), audit_data(home)
    folders = []
    settings = AuditSettings(retriever=("fuzzy",), threshold=(0.5, 0.95))
    for name, chosen in settings.variants():
        shared = folders[0] if folders else None
        out = home / "sweep" / name
        folders.append(scored_run(study, data, Asking(), out, chosen, shared=shared))
    return of_study(study, folders, {}, hidden=[home])


_RATES = ("consistency", "signed_alignment", "flip_rate", "accuracy_difference")
PAIRED_COLUMNS = (
    *("both", "first_only", "second_only", "neither", "n", *_RATES, "n_missing", "n_clusters"),
    *("statistic", "p_value", "test", "p_value_holm"),
    *(f"{name}_{end}" for name in _RATES for end in ("low", "high")),
)
"""Columns of the expected tables of `compare`."""


def compare(home: Path) -> GoldenRun:
    """Compute paired rates of external labels: the outcomes of the run `redirectqa` as CSV."""
    ada = outcomes_of_ada(home)
    comparisons = {
        "all": (ada, {}),
        "by_type": (ada, {"by": ("type",)}),
        "by_model_and_template": (OUTCOMES, {"by": ("model", "template")}),
        "clustered": (ada, {"test": "obuchowski", "confidence": 0.9}),
    }
    found = {}
    for name, (verdicts, options) in comparisons.items():
        frame = pd.read_csv(verdicts, keep_default_na=False, na_values=[""])
        by = options.get("by", ())
        split = split_labels(
            frame.rename(columns={"types": "type"}), by, ";" if by == ("type",) else None
        )
        rows = with_adjusted_p_values(paired(split, cluster="item", **options).to_frame(all=True))
        rows = rows.rename(columns={"type": "types"})
        by = ["types" if name == "type" else name for name in by]
        found[f"tables/{name}"] = rows[[*by, *PAIRED_COLUMNS]]
    return GoldenRun(tables=found)


RUNS = {
    run.__name__: run
    for run in (
        *(redirectqa, slaq, audit, audit_sweep, compare, compare_runs, compare_page),
        *(compare_models, forms, lexical, linking, linking_vs_consistency, frequency),
        *(mechanism, unlearning),
    )
}
PAGES = (
    *("redirectqa", "slaq", "audit", "forms", "lexical", "linking", "mechanism", "unlearning"),
    "compare_models",
)
"""Runs with a page that is compared as text: one per study, and one of `compare`."""


def main(words: list[str]) -> None:
    """Write the numbers of the named runs or, with `--wording`, the text of their pages."""
    warnings.simplefilter("ignore")
    is_wording = "--wording" in words
    for name in [word for word in words if word != "--wording"] or (PAGES if is_wording else RUNS):
        with tempfile.TemporaryDirectory() as home:
            run = RUNS[name](Path(home))
        texts = {f"{name}.txt": whole_text(run.page)} if is_wording else run.texts
        folder, old = (WORDING, {}) if is_wording else (EXPECTED / name, pinned(name))
        for file in old.keys() - texts.keys():
            (folder / file).unlink()
        for file, text in texts.items():
            if file in old and not differences(f"{name}/{file}", text, old[file]):
                continue  # Differences within the tolerance depend on the processor.
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
