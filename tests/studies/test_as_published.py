"""Settings of `as_published`, compared with the sentences of the papers."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surface_consistency.cli.main import main
from surface_consistency.data.questions import questions_of
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.judging.prompts import paper_prompt
from surface_consistency.engine.model_settings import ModelSettings, paper_differences
from surface_consistency.engine.published import as_typed, differences, values_of
from surface_consistency.engine.settings import study_records
from surface_consistency.errors import DataError
from surface_consistency.models import FakeRunner
from surface_consistency.plugins import STUDIES, importable
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.linking.settings import LinkingSettings
from surface_consistency.studies.linking.study import LinkingStudy
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.redirectqa.demonstrations import DemonstrationPool
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.slaq.queries import random_orders

SENTENCES = Path(__file__).parents[1] / "data" / "files" / "papers" / "published_settings.toml"
STATED = tomllib.loads(SENTENCES.read_text(encoding="utf-8"))
PROTOCOLS = [name.partition("_")[::2] for name in STATED]


def published(study, protocol):
    """Return every value that is set, by field, and the complete file."""
    if study == "mechanism":
        paper = MechanismSettings.paper({})
        return values_of(MechanismSettings, paper["settings"]), paper
    records = study_records(study)
    paper = records.settings.paper({"protocol": protocol})
    tables = {"settings": records.settings, "scoring": records.scoring, "model": ModelSettings}
    values = {}
    for table, record in tables.items():
        values |= values_of(record, paper[table])
    return values, paper


def states(word, value):
    """Test if a word of a sentence states a value, such as "first" for first_line."""
    if word.replace(".", "").isdigit():
        return float(word) == float(value)
    return re.search(rf"(\b|_){word.lower()}", str(value).lower()) is not None


@pytest.mark.parametrize(("study", "protocol"), PROTOCOLS)
def test_values_of_as_published_are_stated_in_the_paper(study, protocol):
    """A pattern extracts each value from a quoted sentence."""
    values, paper = published(study, protocol)
    quoted = STATED["_".join(filter(None, (study, protocol)))]
    if protocol == "api":
        quoted = STATED["redirectqa_local"] + quoted
    stated = {name: (how, of["sentence"]) for of in quoted for name, how in of.items()}
    del stated["sentence"]

    assert set(values) == set(stated)
    for name, (how, sentence) in stated.items():
        if "(" in str(how):
            numbers = dict.fromkeys(re.findall(how, sentence))
            several = values[name] if isinstance(values[name], tuple) else [values[name]]
            assert all(states(*pair) for pair in zip(numbers, several, strict=True)), name
        else:
            assert as_typed(values[name]).partition("@")[0] == as_typed(how), name
    entries = {**paper["settings"], **paper["scoring"], **paper["model"]}
    assert all(entry["section"] for entry in entries.values())
    assert not set(values) & {name for name, remark in paper["unstated"].items() if remark}


@pytest.mark.parametrize(
    ("study", "protocol"), [one for one in PROTOCOLS if one[0] in STUDIES.names()]
)
def test_defaults_that_differ_from_the_paper_have_a_reason(study, protocol, capsys, monkeypatch):
    values, paper = published(study, protocol)
    records = study_records(study)
    fields = {**ModelSettings.model_fields, **records.scoring.model_fields}
    fields |= records.settings.model_fields
    differ = {name for name, value in values.items() if value != fields[name].get_default()}

    [rows] = [rows for name, rows in paper_differences(records).items() if paper["paper"] in name]
    named = [row for row in rows if row.name in values]
    # The instructions are set by `prompts`.
    assert {row.name for row in named} == differ - {"short_instruction", "long_instruction"}
    assert all(row.reason.endswith((".", ")")) for row in rows)
    monkeypatch.setenv("COLUMNS", "4000")
    assert main(["run", study, "--help"]) == 0
    output = capsys.readouterr().out
    assert all(f"{row.name} {row.default} ({row.paper})" in output for row in named)


def test_mechanism_as_published_reads_the_logit_and_rejects_other_readouts():
    settings = MechanismSettings(as_published=True)
    named = differences(MechanismSettings.paper({}), {"settings": MechanismSettings})

    assert (MechanismSettings().readout, settings.readout) == ("centred_logit", "logit")
    assert [one.name for one in named if one.table == "settings"] == ["readout"]
    with pytest.raises(
        ValueError, match=r"^MechanismSettings: `as_published` sets .* `as_pub[^ ]*$"
    ):
        MechanismSettings(as_published=True, readout="log_probability")


@pytest.mark.parametrize("form", ["short", "long"])
def test_instructions_of_slaq_equal_table_4(form):
    assert published("slaq", "")[0][f"{form}_instruction"] == paper_prompt(f"slaq_{form}")


def test_scope_per_question_draws_different_demonstrations():
    rows = load_redirectqa("sample").rows
    pool = DemonstrationPool(rows, scope="per_question")
    questions = [one for one in questions_of(rows) if one.relation == "capital"][:6]
    drawn = [pool.draw(one, 15) for one in questions]

    assert len(set(drawn)) == len(drawn) == 6
    assert drawn == [pool.draw(one, 15) for one in questions]


def test_random_orders_differ_and_are_not_balanced():
    orders = [random_orders(5, topic_id=str(topic)) for topic in range(40)]

    assert all(len(set(of)) == 5 for of in orders)
    assert any(len({order[0] for order in of}) < 5 for of in orders)
    assert len(set(random_orders(121))) == 120


def replies(model=None):
    """Make a judge or model whose reply depends on the prompt."""
    words = {"list of 5 ints": "[1,0,1,1,0]", "Q: Is": "yes"}
    return FakeRunner(lambda prompt: next((words[of] for of in words if of in str(prompt)), "1"))


def vectors(names):
    """Return the lengths of names as vectors."""
    return np.array([[len(name)] for name in names], dtype=np.float32)


@pytest.mark.parametrize(
    ("study", "words", "otherwise"),
    [
        ("redirectqa", [], ["--rule", "boundary"]),
        ("slaq", ["--setting", f"judge_runner={__name__}:replies"], ["--judge", "matcher"]),
        ("linking", ["--read", "generate", "--neighbours", f"{__name__}:vectors"], []),
    ],
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_run_as_published_prints_settings_that_differ(study, words, otherwise, tmp_path, capsys):
    asked = ["--source", "sample", "--limit", "4", "--repeat", "0", "--setting", "resamples=50"]
    asked += [*words, "--runner", f"{__name__}:replies", "--out", str(tmp_path)]
    with importable(f"{__name__}:replies"):
        assert main(["run", study, "--as-published", *asked]) == 0

    output = capsys.readouterr().out
    folder = RunFolder.open(tmp_path)
    made = folder.read_manifest().settings | folder.read_scoring().settings
    values, _ = published(study, "local")
    assert {name: made[name] for name in values if name in made}.items() <= values.items()
    assert ("quantization is int8 there, and not set" in output) == (study != "slaq")
    assert "scored otherwise" not in output
    assert main(["score", str(tmp_path), *otherwise]) == 0
    is_named = "was run as published and is scored otherwise" in capsys.readouterr().out
    assert is_named == bool(otherwise)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["redirectqa", "--shots", "3"], "sets --shots 15, but 3 was given; omit --shots or"),
        (["redirectqa", "--setting", "int4=true", "--model", "m"], "sets --setting int4=false"),
        (["redirectqa", "--setting", "protocol=x"], "protocol: input should be 'local', 'api'"),
        (["audit", "--threshold", "0.4", "none"], "sets --threshold 0.6, but 0.4 none was given"),
        (["audit", "--setting", "radius=0.1"], "sets --setting radius=none, but 0.1 was given"),
        (["audit", "--setting", "cleaner=audit"], "sets --setting cleaner=published, but audit"),
        (["audit", "--judge-model", "m"], "sets --judge rule, but llm was given"),
        (["slaq", "--prompts", "own"], "sets --prompts paper@[0-9a-f]{12}, but own was given"),
        (["slaq", "--judge-model", "j"], "sets --judge-model gemini-2.5-flash, but j was given"),
        (["lexical", "--task", "piqa"], "--senses judge needs --sense-model"),
        (["linking"], "--as-published needs the fastText vectors .* got 'names'"),
        (["linking", "--wording", "same-entity"], "sets --wording category, but same-entity was"),
    ],
)
def test_options_that_contradict_as_published_are_rejected(words, message, tmp_path, capsys):
    assert main(["run", *words, "--as-published", "--out", str(tmp_path / "run")]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_as_published_rejects_other_rows_of_the_published_data():
    sample = load_redirectqa("sample")
    data = replace(sample, source=sample.source.model_copy(update={"id": "naist-nlp/RedirectQA"}))
    for protocol, n_rows in (("local", "61,120"), ("japanese", "22,869")):
        settings = RedirectQASettings(as_published=True, protocol=protocol)
        with pytest.raises(DataError, match=f"needs {n_rows} questions"):
            RedirectQAStudy().plan(data, settings)
    with pytest.raises(DataError, match="needs 61,120 questions"):
        LinkingStudy().plan(data, LinkingSettings(as_published=True, neighbours="vectors.vec"))
    with pytest.raises(ValueError, match="`protocol` needs `as_published`"):
        RedirectQASettings(protocol="api")
