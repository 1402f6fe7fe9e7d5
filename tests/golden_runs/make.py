"""Golden runs: small, fixed inputs sent through every study, from the question to the page.

This module is the adapter: the only part of the golden runs that calls the studies, and the only
one that changes when their functions do. `inputs.py` holds models and data, `files.py` turns what
came out into text, `expected/` holds what must come out, and `test_golden_runs.py` compares. The
expected files are written by hand alone, all of them or those of some runs:

    python -m tests.golden_runs.make [NAME ...]

They are never made anew to turn a test green: a number that changes on purpose gets its line
"Numbers change" in the changelog, and only the files of its run are made again.
"""

import re
import sys
import tempfile
import warnings
from pathlib import Path

import pandas as pd

from tests.golden_runs.files import EXPECTED, GoldenRun, page_numbers
from tests.golden_runs.inputs import (
    COUNTRIES,
    DECOYS,
    RELATIONS,
    STYLES,
    TOPOLOGIES,
    audit_reader,
    chance,
    redirect_model,
    slaq_judge,
    slaq_labels,
    slaq_model,
)

RESAMPLES = 1_000
VERDICT_COLUMNS = {"first": "first_correct", "second": "second_correct", "pair_id": "pair_id"}


def load_redirectqa():
    """The bundled questions."""
    from surface_consistency.data.sample import load_sample

    return load_sample()


def redirectqa(home: Path) -> GoldenRun:
    """Two models asked both templates, repeated in part, scored, and reported together."""
    from surface_consistency.report import load_runs, study_tables, write_report
    from surface_consistency.studies.redirectqa import RedirectQASettings, run_redirectqa
    from surface_consistency.studies.scoring import score_run

    data = load_redirectqa()
    settings = RedirectQASettings(
        templates=("original", "paraphrase"), shots=2, seed=3, limit=60, repeat=150
    )
    models = (
        redirect_model("ada", data.questions, knows=0.75),
        redirect_model("bob", data.questions, knows=0.5, fails=0.03),
    )
    folders, rescored = [], {}
    for runner in models:
        folder = run_redirectqa(
            data, runner, home / runner.name, model=runner.name, settings=settings, progress=False
        )
        frame = score_run(folder, rule="boundary", region="whole")
        rescored[runner.name] = frame[["model", "pair_id", "first_correct", "second_correct"]]
        score_run(folder)
        folders.append(folder.path)
    runs = load_runs(folders)
    tables = study_tables(runs, n_resamples=RESAMPLES)
    by_subject = study_tables(runs, cluster="subject_id", n_resamples=RESAMPLES)
    alone = study_tables(runs[:1], n_resamples=RESAMPLES)
    page = write_report(runs, home / "report.html", n_resamples=RESAMPLES, tables=tables)
    return _gathered(
        {run.label: run for run in runs},
        tables
        | {
            "overall_by_subject": by_subject["overall"],
            "overall_alone": alone["overall"],
            "rescored": pd.concat(rescored.values()),
        },
        page,
    )


def slaq(home: Path) -> GoldenRun:
    """Two models in all forms; a rule judges one, a model the other; both held against labels."""
    from surface_consistency.data.slaq import load_slaq_sample
    from surface_consistency.report.slaq import load_slaq_runs, slaq_run_tables, write_slaq_report
    from surface_consistency.studies.slaq.ask import SlaqSettings, ask_slaq
    from surface_consistency.studies.slaq.labels import write_labelling_sheet
    from surface_consistency.studies.slaq.llm_judge import LLMJudge
    from surface_consistency.studies.slaq.matcher_judge import MatcherJudge
    from surface_consistency.studies.slaq.score import read_slaq_tasks, score_slaq

    data = load_slaq_sample().select(limit=9)
    settings = SlaqSettings(forms=("short", "long", "free"), n_permutations=5, seed=2, repeat=25)
    judge = LLMJudge(slaq_judge("jay"), home / "judge", model="jay", progress=False)
    folders = []
    for name, knows, fails, who in (
        ("ada", 0.7, 0.03, MatcherJudge()),
        ("bob", 0.55, 0.0, judge),
    ):
        runner = slaq_model(name, data.topics, knows=knows, fails=fails)
        folder = ask_slaq(data, runner, home / name, model=name, settings=settings, progress=False)
        labels = slaq_labels(name, data.topics, knows=knows, n_permutations=5)
        folder.labels.write_text(labels, encoding="utf-8")
        score_slaq(folder, who)
        folders.append(folder.path)
    write_labelling_sheet(home / "sheet.csv", read_slaq_tasks(folder), n=4, seed=1)
    runs = load_slaq_runs(folders)
    tables = slaq_run_tables(runs, n_resamples=RESAMPLES, n_null=200)
    page = write_slaq_report(runs, home / "report.html", tables=tables)
    sheet = {"labelling_sheet": pd.read_csv(home / "sheet.csv")}
    return _gathered({run.label: run for run in runs}, tables | sheet, page)


def audit_data(home: Path):
    """Build small databases with decoys, near misses and aliases, and find their prompts."""
    from surface_consistency.data.audit import (
        Aliases,
        FactTable,
        RelatedFact,
        build_audit_databases,
    )
    from surface_consistency.prompts.audit_styles import style_writers
    from surface_consistency.schemas import Triplet
    from surface_consistency.studies.audit import AuditData, find_conditions

    table = FactTable(
        name="lands",
        facts=tuple(
            Triplet(name, relation, value)
            for name, values in COUNTRIES.items()
            for relation, value in zip(RELATIONS, values, strict=True)
        ),
        aliases=(
            *(
                Aliases(
                    name=name, aliases=(f"Republic of {name}", f"{name} Land"), roles=("subject",)
                )
                for name in COUNTRIES
            ),
            # A name that only the closure over all prompts knows for one of Arania's.
            Aliases(name="RA", aliases=("Republic of Arania",), roles=("subject",)),
            Aliases(name="Capital", aliases=("Capital City", "Seat"), roles=("relation",)),
            Aliases(name="Internet TLD", aliases=("TLD", "Web Domain"), roles=("relation",)),
        ),
        noise=(
            *(
                RelatedFact(
                    triplet=Triplet(f"{name} State", "Capital City", COUNTRIES[name][0]),
                    near=(name, "Capital"),
                )
                for name in DECOYS
            ),
            RelatedFact(triplet=Triplet("RA", "Capital", "Lumo"), near=("Arania", "Capital")),
        ),
        collision=tuple(
            RelatedFact(
                triplet=Triplet(f"{name} Isles", "Capital", f"Port {name}"), near=(name, "Capital")
            )
            for name in DECOYS
        ),
    )
    folder = home / "databases"
    build_audit_databases(
        folder, domains=[table], topologies=TOPOLOGIES, styles=style_writers(STYLES)
    )
    return AuditData(id="databases", conditions=find_conditions(folder))


class Asking:
    """A model that looks its fact up in the store, and says what it is given or what it knows."""

    name = "asking"

    def __init__(self, source=None):
        self.source = source

    def with_source(self, source):
        return Asking(source)

    def fingerprint(self):
        return {"runner": self.name, "source": self.source.fingerprint()}

    def generate(self, prompts, params):
        from surface_consistency.inference.lookup import LookupRequest
        from surface_consistency.schemas import Generation, LookupQuery

        for prompt in prompts:
            fact = self.source.query(prompt)
            key = (fact.entity, fact.relation)
            known = COUNTRIES.get(fact.entity, ("Lumo",))[0] if chance("knows", *key) < 0.2 else ""
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
    """One audit by words: the model reads what the store finds."""
    from surface_consistency.studies.audit import AuditSettings, AuditStudy
    from surface_consistency.studies.engine import run_study, score_run

    study, data = AuditStudy(), audit_data(home)
    reader = audit_reader([prompt for one in data.conditions for prompt in one.prompts])
    settings = AuditSettings(retriever=("bm25",), threshold=(None,), n_facts=2)
    folder = run_study(
        study, data, reader, home / "run", model="reader", settings=settings, progress=False
    )
    score_run(folder, study=study)
    published = {
        f"published_{name}": pd.read_csv(folder.path / f"{name}_metrics.csv")
        for name in ("per_state", "cross_state")
    }
    return _of_study(study, [folder], published)


def audit_sweep(home: Path) -> GoldenRun:
    """A model that looks facts up by letters, at two thresholds, and what changes between them."""
    from surface_consistency.studies.audit import AuditSettings, AuditStudy
    from surface_consistency.studies.engine import run_study, score_run

    study, data = AuditStudy(), audit_data(home)
    folders = []
    settings = AuditSettings(retriever=("fuzzy",), threshold=(0.5, 0.95))
    for name, chosen in study.variants(settings):
        folder = run_study(
            study,
            data,
            Asking(),
            home / "sweep" / name,
            model="asking",
            settings=chosen,
            shared=folders[0] if folders else None,
            progress=False,
        )
        score_run(folder, study=study)
        folders.append(folder)
    return _of_study(study, folders, {})


def compare(home: Path) -> GoldenRun:
    """Anyone's verdicts: the outcomes of the first golden run as a CSV file."""
    from surface_consistency.studies import compare as module

    source = EXPECTED / "redirectqa" / "outcomes.csv"
    by_model = home / "ada.csv"
    frame = pd.read_csv(source)
    frame[(frame["model"] == "ada") & (frame["template"] == "original")].to_csv(
        by_model, index=False
    )
    asked = {
        "all": (by_model, {}),
        "by_type": (by_model, {"by": "types", "separator": ";"}),
        "by_model_and_template": (source, {"by": ["model", "template"]}),
        "clustered": (by_model, {"test": "obuchowski", "confidence": 0.9, "seed": 5}),
    }
    found = {}
    for name, (verdicts, options) in asked.items():
        rows = module.compare(str(verdicts), **VERDICT_COLUMNS, n_resamples=RESAMPLES, **options)
        flat = pd.json_normalize(rows, sep="_")
        for column in [column for column in flat if column.startswith("interval_")]:
            bounds, rate = flat.pop(column), column.removeprefix("interval_")
            flat[f"{rate}_low"], flat[f"{rate}_high"] = zip(*bounds, strict=True)
        found[f"tables/{name}"] = flat
    return GoldenRun(tables=found)


def _of_study(study, folders, more) -> GoldenRun:
    """Report runs of a study; `more` are tables besides those of the page."""
    from surface_consistency.studies.engine import build_page
    from surface_consistency.studies.study import ReportSettings

    page, tables, runs = build_page(
        [folder.path for folder in folders],
        study=study,
        settings=ReportSettings(resamples=RESAMPLES),
    )
    checks = {name for run in runs for name in run.checks}
    frames = {name: table.frame for name, table in tables.items() if name not in checks}
    return _gathered({run.label: run for run in runs}, frames | more, page_numbers(page))


def _gathered(runs, tables, page) -> GoldenRun:
    """Name everything by its file; `runs` have outcomes and checks, `page` is a file or text."""
    outcomes = pd.concat([run.outcomes.assign(model=label) for label, run in runs.items()])
    found = {"outcomes": outcomes}
    # The checks stand in files of their own.
    found |= {
        f"tables/{name}": table for name, table in tables.items() if not name.startswith("check_")
    }
    for label, run in runs.items():
        for name, table in run.checks.items():
            found[f"checks/{re.sub(r'[^A-Za-z0-9.]+', '-', label).strip('-')}/{name}"] = table
    text = page if isinstance(page, str) else Path(page).read_text(encoding="utf-8")
    return GoldenRun(tables=found, page=text)


RUNS = {
    "redirectqa": redirectqa,
    "slaq": slaq,
    "audit": audit,
    "audit_sweep": audit_sweep,
    "compare": compare,
}


def main(names: list[str]) -> None:
    """Write the files of some runs, or of all."""
    warnings.simplefilter("ignore")
    for name in names or RUNS:
        with tempfile.TemporaryDirectory() as home:
            for file, text in RUNS[name](Path(home)).texts.items():
                target = EXPECTED / name / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
