"""What `as_published` sets, held against the sentences of the papers that state it."""

import re
from dataclasses import replace

import pytest

from surface_consistency.cli.main import main
from surface_consistency.data.questions import questions_of
from surface_consistency.engine.judging.prompts import paper_prompt
from surface_consistency.engine.model_settings import ModelSettings, paper_differences
from surface_consistency.engine.published import published_values
from surface_consistency.engine.settings import study_records
from surface_consistency.errors import DataError
from surface_consistency.matching.rules import resolve_rule
from surface_consistency.models import FakeRunner
from surface_consistency.plugins import importable
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.redirectqa.demonstrations import DemonstrationPool
from surface_consistency.studies.redirectqa.prompts import FRAMES
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.slaq.queries import random_orders

PROTOCOLS = [
    ("redirectqa", "local"),
    ("redirectqa", "api"),
    ("redirectqa", "japanese"),
    ("slaq", None),
    ("audit", None),
    ("lexical", None),
]

LOCAL = {
    "we used prompts of the form “Q: <question> A:” in a 15-shot setting": {
        "shots": r"(\d+)-shot", "frame": "en", "chat": False, "truncate": False
    },
    "For each test question, the demonstrations were deterministically sampled with a fixed random "
    "seed from canonical-surface instances of other relation types, excluding the same factual "
    "triple.": {"demonstrations": r"For each test (question)", "demonstration_file": None},
    "For local models, we generated up to 15 new tokens and extracted the first generated line as "
    "the prediction.": {
        "max_new_tokens": r"up to (\d+) new", "stop": False, "read": r"we (generate)d",
        "region": r"the (first) generated line",
    },
    "We evaluated predictions using alias-aware string matching.": {"judge": "rule"},
    "a prediction was counted as correct if the extracted prediction contained any acceptable "
    "surface form of the gold answer entity, allowing simple case variants": {
        "rule": "popqa", "fold_accents": False
    },
    "For local inference on training-transparent and open-weight models, we applied 8-bit "
    "quantization to reduce memory usage.": {"int8": True, "int4": False},
}  # fmt: skip
API = {
    "For GPT-4o-mini, we used the API with temperature 0, top-p 1, and a maximum of 100 output "
    "tokens, applying the same first-line extraction.": {"max_new_tokens": r"maximum of (\d+)"},
    "For local inference on training-transparent and open-weight models, we applied 8-bit "
    "quantization to reduce memory usage.": {"int8": False, "int4": False},
}
JAPANESE = {
    "推論時には 8bit 量子化を施した": {"int8": True, "int4": False},
    "同一のプロンプトテンプレート “Q: <question> A:” を用いて, 14-shot の設定で推論を行った": {
        "shots": r"(\d+)-shot", "frame": "en", "chat": False, "truncate": False
    },
    "PopQA と同一のテンプレートをもとに各表層における質問文を生成し": {"template": "original"},
    "生成結果の評価は完全一致によって行った": {
        "rule": "exact", "judge": "rule", "fold_accents": False, "read": "generate"
    },
}  # fmt: skip
SLAQ = {
    "All models use greedy decoding via the Hugging Face API.": {"read": "generate"},
    "we randomize the order of the five sub-questions within each long-form query across 5 "
    "permutations": {
        "permutations": r"across (\d+)", "orders": r"we (random)ize", "wording": r"form (query)"
    },
    "Answer the question with factual single sentence response for the Topic: topic. Question: "
    "question": {"short_instruction": None, "prompts": None},
    "Answer to the question should answer everything in the question in a clear and concise "
    "manner. Question: long_question": {"long_instruction": None},
    "We employ Gemini-2.5-Flash (Team et al., 2023) as our LLM judge": {
        "judge_model": r"employ (\S+)", "judge": r"our (LLM)"
    },
    "we recommend the reader to go through the prompts in Table 2 and 3": {"judge_prompts": None},
}  # fmt: skip
AUDIT = {
    "sentence-transformers/all-MiniLM-L6-v2": {"retriever": r"(MiniLM)"},
    "candidates with score below this are dropped, and retrieval returns unknown if no candidate "
    "clears it. 0.6": {"threshold": r"(0\.6)"},
    "Behavior when no candidate clears threshold; top1_anyway re-runs retrieval at threshold −1.0 "
    "and returns the highest-similarity candidate.": {"fallback": r"(top1_anyway)"},
    "Total token budget passed to model.generate [...] max(32, |p| + 28)": {
        "max_new_tokens": r"\+ (\d+)\)"
    },
    "Stop tokens that terminate generation early [...]: <|db_return|>, tokenizer.eos_token_id, "
    "<|end_of_text|>": {"stop": False},
    "greedy decoding is used throughout the audit": {"read": "generate"},
    "In FULL, the target fact remains [...] In DEL-ON, the target fact is deleted [...] In "
    "DEL-OFF, the target fact is deleted and retrieval is disabled.": {"states": r"In ([A-Z-]+),"},
    "tests whether alias-closure deletion catches every surface realization": {
        "closure": r"(alias)-closure"
    },
    "removes only triplets that alias-match the target on subject, relation, and object": {
        "closure_scope": r"(subject|relation|object)"
    },
    "an automatic, alias-aware exact-match notion of correctness": {"judge": "rule"},
    "[the released code, raeesiarya/LMLMAudit: top 5; names without case and punctuation]": {
        "k": r"top (\d)", "off_mode": "allow", "closure_key": "published", "radius": None,
        "radius_same_object": False, "canonical": False, "cleaner": "published",
        "equivalence": "published", "support": "published",
    },
}  # fmt: skip
LEXICAL = {
    "Perturbations are obtained by substituting the nouns and verbs": {"pos": r"(noun|verb)s"},
    "for each noun and verb – except for auxiliaries, model verbs, and proper nouns": {
        "share": 1.0
    },
    "we select one of them uniformly at random": {"draws": 1},
    "The correct synset in Wordnet for the given word is chosen leveraging an 8B LLaMa-3.1 model "
    "finetuned on the Word Sense Disambiguation task": {"senses": "judge"},
    "lexically perturbed sentences obtained using the RoBERTa model": {"neighbours": 0},
    "We prompted Llama 3.1 8B on 50 examples from each subtask.": {"meaning_pairs": r"(\d+) exam"},
}
STATED = dict(zip(PROTOCOLS, (LOCAL, LOCAL | API, JAPANESE, SLAQ, AUDIT, LEXICAL), strict=True))


def published(study, protocol):
    """Every value that is set, by field, as a user types it; and the whole file."""
    records = study_records(study)
    paper = records.settings.paper({} if protocol is None else {"protocol": protocol})
    tables = {"settings": records.settings, "scoring": records.scoring, "model": ModelSettings}
    values = {}
    for table, record in tables.items():
        values |= published_values(record, paper[table])
    return values, paper


def is_said(word, value):
    """Whether a word of a sentence says a value, such as "first" the value first_line."""
    if word.replace(".", "").isdigit():
        return float(word) == float(value)
    return re.search(rf"(\b|_){word}", str(value).lower()) is not None


@pytest.mark.parametrize(("study", "protocol"), PROTOCOLS)
def test_what_is_called_the_papers_is_stated_there(study, protocol):
    """Every value has a sentence of the paper; a pattern reads the value off it."""
    values, paper = published(study, protocol)
    stated = {
        name: (text, how)
        for text, of in STATED[study, protocol].items()
        for name, how in of.items()
    }

    assert set(values) == set(stated)
    for name, (text, how) in stated.items():
        value = values[name]
        if not isinstance(how, str) or not (found := re.findall(how, text)):
            assert value == how or how is None, name
        else:
            several = value if isinstance(value, tuple) else (value,)
            told = dict.fromkeys(map(str.lower, found))
            assert all(is_said(*pair) for pair in zip(told, several, strict=True)), name
    entries = {**paper["settings"], **paper["scoring"], **paper["model"]}
    assert all(entry["section"] for entry in entries.values())
    silent = set(paper["unstated"]) & set(values)
    assert not silent


@pytest.mark.parametrize(("study", "protocol"), PROTOCOLS)
def test_each_default_that_differs_is_named_with_its_reason(study, protocol, capsys, monkeypatch):
    values, paper = published(study, protocol)
    records = study_records(study)
    fields = {}
    for record in (records.settings, records.scoring, ModelSettings):
        fields |= {name: field.get_default() for name, field in record.model_fields.items()}
    differ = {name for name, value in values.items() if value != fields[name]}
    differ -= {"short_instruction", "long_instruction"}  # `prompts` sets them.

    [rows] = [rows for name, rows in paper_differences(records).items() if paper["paper"] in name]
    assert {row.name for row in rows if row.table in ("settings", "scoring", "model")} == differ
    assert all(row.reason.endswith((".", ")")) for row in rows)
    monkeypatch.setenv("COLUMNS", "4000")
    assert main(["run", study, "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name} " in said for name in differ)


def test_prompts_are_the_papers_word_for_word():
    frame = FRAMES["en"].replace("{question}", "<question>")
    assert all(frame in text for of in (LOCAL, JAPANESE) for text in of if "<question>" in text)
    for form, bare in (("short", "question"), ("long", "long_question")):
        instruction = published("slaq", None)[0][f"{form}_instruction"]
        assert instruction == paper_prompt(f"slaq_{form}")
        told = instruction.replace("{topic}", "topic").replace("{question}", bare)
        assert " ".join(told.split()) in SLAQ
    match = resolve_rule("popqa")
    assert [
        match(text, ["Tokyo Prefecture"]).is_match for text in ("In tokyo prefecture.", "Tokyo")
    ] == [1, 0]


def test_each_question_draws_demonstrations_of_its_own():
    data = RedirectQAStudy().load(study_records("redirectqa").source(source="sample"))
    pool = DemonstrationPool(data.rows, scope="per_question")
    questions = [one for one in questions_of(data.rows) if one.relation == "capital"][:6]
    drawn = [pool.draw(one, 15) for one in questions]

    assert len(set(drawn)) == len(drawn)
    assert drawn == [
        DemonstrationPool(data.rows, scope="per_question").draw(one, 15) for one in questions
    ]


def test_random_orders_differ_and_are_not_balanced():
    orders = [random_orders(5, topic_id=str(topic)) for topic in range(40)]

    assert all(len(set(of)) == 5 and {*map(len, of)} == {5} for of in orders)
    assert any(len({order[0] for order in of}) < 5 for of in orders)
    assert len(set(random_orders(120))) == 120
    assert random_orders(121)[:120] == random_orders(120)


def replies(model=None):
    """A judge or a model, which replies by what it is asked."""
    return FakeRunner(lambda prompt: "[1,0,1,1,0]" if "list of 5 ints" in str(prompt) else "1")


ASKED = {
    "redirectqa": ["--source", "sample", "--limit", "5"],
    "slaq": ["--source", "sample", "--limit", "2", "--setting", f"judge_runner={__name__}:replies"],
}


@pytest.mark.parametrize("study", sorted(ASKED))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_a_run_as_published_says_so_and_what_it_could_not_set(study, tmp_path, capsys):
    words = [*ASKED[study], "--runner", f"{__name__}:replies", "--setting", "resamples=50"]
    with importable(f"{__name__}:replies"):
        code = main(
            ["run", study, "--as-published", *words, "--repeat", "0", "--out", str(tmp_path)]
        )

    said = capsys.readouterr().out
    folder = RunFolder.open(tmp_path)
    values, _ = published(study, "local" if study == "redirectqa" else None)
    made = folder.read_manifest().settings | folder.read_scoring().settings
    assert code == 0
    assert all(made[name] == value for name, value in values.items() if name in made)
    assert ("quantization is int8 there, and not set in this run" in said) == (
        study == "redirectqa"
    )
    assert "scored otherwise" not in said
    judge = {"redirectqa": ["--rule", "boundary"], "slaq": ["--judge", "matcher"]}[study]
    assert main(["score", str(tmp_path), *judge]) == 0
    assert "was run as published and is scored otherwise" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["redirectqa", "--shots", "3"], "sets --shots 15, and 3 was given; leave out --shots or"),
        (["redirectqa", "--rule", "exact"], "sets --rule popqa, and exact was given"),
        (["redirectqa", "--setting", "int4=true", "--model", "m"], "sets --setting int4=false"),
        (["slaq", "--prompts", "own"], "sets --prompts paper@[0-9a-f]{12}, and own was given"),
        (["slaq", "--judge-model", "j"], "sets --judge-model gemini-2.5-flash, and j was given"),
        (["lexical", "--task", "piqa"], "--senses judge needs --sense-model"),
    ],
)
def test_options_beside_it_that_contradict_are_refused(words, message, tmp_path, capsys):
    assert main(["run", *words, "--as-published", "--out", str(tmp_path / "run")]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "run").exists()


def test_other_rows_of_the_published_repository_are_refused():
    study = RedirectQAStudy()
    data = study.load(study.records.source(source="sample"))
    source = data.source.model_copy(update={"id": "naist-nlp/RedirectQA"})
    data = replace(data, source=source)
    for protocol, n_rows in (("local", "61,120"), ("japanese", "22,869")):
        settings = study.records.settings(as_published=True, protocol=protocol)
        with pytest.raises(DataError, match=f"is of {n_rows} questions"):
            study.plan(data, settings)
    study.plan(data, study.records.settings())
    with pytest.raises(ValueError, match="`protocol` needs `as_published`"):
        study.records.settings(protocol="api")
