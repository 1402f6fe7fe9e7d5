"""Stored predictions in common layouts."""

import json

import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.redirectqa_release import hub_rows
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
    UnscoredWarning,
)
from surface_consistency.results import predictions
from surface_consistency.results.columns import USUAL, PredictionSettings
from surface_consistency.results.predictions import QuestionIndex, answers_only, questions_digest
from surface_consistency.results.samples import written_out
from surface_consistency.rows.readers import Place
from surface_consistency.schemas import Generation, write_jsonl
from tests.results.kinds import written as written_as


def read_predictions(path, **settings):
    """Return texts by the best name of their questions; raise an error for conflicts."""
    read = predictions.read_predictions(path, PredictionSettings(**settings))
    rows = zip(read.names, read.texts, strict=True)
    return {names[0]: text for names, text in rows if text is not None}


def lm_eval_sample(text="London", *, doc=None, arguments=None, **fields):
    """One line of `samples_*.jsonl`, with the fields of lm-evaluation-harness 0.4."""
    asked = {"gen_args_0": {"arg_0": "Q: Capital of England? A:", "arg_1": {"until": ["\n"]}}}
    return {
        "doc_id": 0,
        "doc": {"id": "q1", "question": "Capital of England?"} if doc is None else doc,
        **{"target": "London", "arguments": arguments or asked, "resps": [[text]]},
        **{"filtered_resps": [text.strip()], "doc_hash": "1f" * 32, "exact_match": 1.0},
    } | fields


def choice_sample(likelihoods, *, texts=(" London", " Leeds"), **fields):
    """A sample of a multiple-choice task of lm-evaluation-harness 0.4, with its strings."""
    context = "Q: Capital of England? A:"
    pairs = [[str(value), "False"] for value in likelihoods]
    asked = {f"gen_args_{n}": {"arg_0": context, "arg_1": text} for n, text in enumerate(texts)}
    own = {"arguments": asked, "resps": [[pair] for pair in pairs], "filtered_resps": pairs}
    return lm_eval_sample(**{**own, **fields})


def write_lines(path, *items):
    """Write JSON lines; a string is written as it is."""
    lines = [item if isinstance(item, str) else json.dumps(item) for item in items]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def lines(*items):
    """JSON lines, as text."""
    return "".join(json.dumps(item) + "\n" for item in items)


def written(folder, content):
    """Write JSON lines, or a table if the content begins with the name of a column."""
    content = content.encode() if isinstance(content, str) else content
    path = folder / ("p.csv" if content.lstrip(b"\xef\xbb\xbf")[:1].isalpha() else "p.jsonl")
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "id_column", ["id", "question_id", "prompt_id", "example_id", "idx", "question", "prompt"]
)
@pytest.mark.parametrize("text_column", USUAL["prediction"])
def test_usual_columns_of_jsonl_are_found(tmp_path, id_column, text_column):
    row = {"model": "m", id_column: "q1", text_column: " London\nQ:"}

    assert read_predictions(write_lines(tmp_path / "p.jsonl", row)) == {"q1": " London\nQ:"}


LONDON = " London\n"
CHOSEN = choice_sample(
    (-3.0, -2.0), arguments=[["Q: Capital of England? A:", text] for text in (" London", " Leeds")]
)
TABLE = '\ufeffquestion_id,prediction\r\n007,NA\r\n1,null\r\n2,nan\r\n3,\r\n4,"a, ""b""\nc"\r\n'
HARD = {"strict": "42", "loose": "[invalid]"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # A byte order mark, a blank line and a null.
        ('\ufeff{"id": "a", "text": "x"}\n\n{"id": "b", "text": null}\n', {"a": "x"}),
        ('{"id": 7, "text": "x"}\n{"id": 8, "text": 1969}', {"7": "x", "8": "1969"}),
        # "NA" and "null" are answers, "nan" is missing, "" is empty; 007 keeps its zeros.
        (TABLE, {"007": "NA", "1": "null", "4": 'a, "b"\nc'}),
        # JSON can escape a lone surrogate, which is replaced; pairs of surrogates are kept.
        (r'{"id": "q1", "text": "Malm\ud800ö \ud83d\ude00"}', {"q1": "Malm\\ud800ö \U0001f600"}),
        (r'{"doc": {"id": "q1"}, "resps": [["Malm\ud800ö"]]}', {"q1": "Malm\\ud800ö"}),
        # Samples of the harness are matched by document, otherwise by prompt.
        (lines(lm_eval_sample(LONDON)), {"q1": LONDON}),
        (lines(lm_eval_sample(LONDON, doc={"question_id": 12})), {"12": LONDON}),
        (lines(lm_eval_sample(LONDON, doc={"question": "Who?"})), {"Who?": LONDON}),
        (lines(lm_eval_sample("x", doc={"question": ["?"]})), {"Q: Capital of England? A:": "x"}),
        (lines(lm_eval_sample("x", doc={}, arguments=[["Q: hm? A:", {}]])), {"Q: hm? A:": "x"}),
        # The harness writes a line for each filter; the unfiltered response is the same.
        (
            lines(*(lm_eval_sample(" 42\n", filter=f, filtered_resps=[HARD[f]]) for f in HARD)),
            {"q1": " 42\n"},
        ),
        # A text that looks like a log-likelihood is one only if texts were scored.
        (lines(lm_eval_sample("-10.765")), {"q1": "-10.765"}),
        # Choices in lists, the layout of 0.4.0 to 0.4.2.
        (lines(CHOSEN), {"q1": " Leeds"}),
    ],
)
def test_predictions_are_matched_by_the_best_name_of_their_question(tmp_path, content, expected):
    assert read_predictions(written(tmp_path, content)) == expected


def test_item_and_prediction_columns_can_be_named(tmp_path):
    plain = written(tmp_path, '{"id": "x", "row": 7, "text": "no", "greedy": "London"}')
    assert read_predictions(plain, item=("row",), prediction="greedy") == {"7": "London"}
    sample = written(tmp_path, lines(lm_eval_sample(LONDON, doc={"triplet": 5})))
    found = read_predictions(sample, item=("triplet",), prediction="filtered_resps")
    assert found == {"5": "London"}
    for path in (sample, written(tmp_path, "id,text\n1,x\n")):
        message = rf"{path.name}.*: column 'qid' of `item` not found. Columns: .*id"
        with pytest.raises(ColumnNotFoundError, match=message):
            read_predictions(path, item=("qid",))


SAMPLE = lines(lm_eval_sample())
ROW = '{"id": "a", "text": "x"}\n'
NAMELESS = lines(lm_eval_sample(doc={}, arguments={"x": 1}))
SCORED = '[{"doc_id": 0, "prompt_0": "Q: a A: b", "logit_0": -1.5}]'
NO_COLUMN = "no column of predictions; searched for prediction, pred, .*; name .* Columns: id, said"


@pytest.mark.parametrize(
    ("error", "content", "message"),
    [
        (RecordError, ROW + '{"id": "b", "text": "x"', "p.jsonl:2: .*not JSON"),
        (RecordError, ROW + '{"text": "x"}', "row 2 does not name its question"),
        (RecordError, ROW + '{"id": null, "text": "x"}', "row 2 does not name"),
        (
            RecordError,
            '{"id": "a", "prediction": ["x", "y"]}',
            "1 of 1 predictions are lists or ob",
        ),
        (RecordError, 'id,text\na,"x\ny"\nb,c,d\n', "p.csv:4: 3 cells under 2 columns"),
        (DataError, "", "contains no rows, so no results; check how it was written"),
        (DataError, "\n", "contains no rows"),
        (DataError, "[]", "contains no rows"),
        (DataError, "id,text\n", "contains no rows"),
        (ColumnNotFoundError, '{"id": 1, "said": "x"}', NO_COLUMN),
        # Samples of the harness.
        (RecordError, SAMPLE + NAMELESS, r"p\.jsonl: row 2 does not name its question; fill in"),
        (
            RecordError,
            SAMPLE + ROW,
            r"p\.jsonl:2: the row does not have the layout .* columns are id, text",
        ),
        (DataError, lines(choice_sample((-1.5,), arguments=[["It is"]])), "contains no answer"),
        (
            DataError,
            lines(choice_sample((-1.5,), texts=(" London",))),
            "contains no answer; of samp",
        ),
        (
            DataError,
            lines(choice_sample((-1.5, -2), texts=(" a", " a"))),
            "contains no answer; .*sto",
        ),
        (RecordError, lines(choice_sample((-1.5, "x"))), ":1: .*'x' is not a log-probability"),
        (RecordError, SCORED, r":1: logit_0 is -1\.5, which .*; only logs of gen"),
    ],
)
def test_files_without_predictions_raise_an_error(tmp_path, error, content, message):
    with pytest.raises(error, match=message):
        read_predictions(written(tmp_path, content))


def test_paths_without_predictions_raise_an_error(tmp_path):
    with pytest.raises(SourceNotFoundError, match="expected a file of stored predictions"):
        read_predictions(tmp_path / "none.csv")
    with pytest.raises(
        SourceNotFoundError, match=r"is a folder, .*; name its files, such as .*/\*"
    ):
        read_predictions(tmp_path)


def test_a_file_without_names_of_questions_raises_an_error(tmp_path):
    path = write_lines(tmp_path / "p.jsonl", {"nr": 1, "text": "x"})

    with pytest.raises(
        ColumnNotFoundError, match=r"searched for item, .*; name it by .* Columns: nr, text"
    ):
        match(path)
    with pytest.raises(ColumnNotFoundError, match="no column identifies the questions"):
        predictions.read_predictions(path).by_name()


def test_a_run_log_is_read_as_predictions(tmp_path):
    path = tmp_path / "log.jsonl"
    write_jsonl(path, [Generation(prompt_id="q1", text="London", prompt_key="k")])

    assert read_predictions(path) == {"q1": "London"}


@pytest.mark.parametrize("mark", [" A:", "\nA:"])
def test_the_question_of_a_prompt_does_not_depend_on_the_line_of_the_mark(tmp_path, mark):
    row = {"prompt": f"Q: Who? A: I\n\nQ: Capital of England?{mark}", "prediction": "London"}
    asked = QuestionIndex(["q1"], ["Capital of England?"])

    assert match(write_lines(tmp_path / "p.jsonl", row), asked) == ["London"]


def test_lm_eval_samples_of_hub_rows_are_keyed_by_question(tmp_path):
    """The harness has only `triplet_id`, which all names and wordings of a fact share."""
    questions = load_redirectqa("sample").questions[:40]
    shots = "Q: What sport does Pelé play? A: football\n\n"
    samples = []
    for number, row in enumerate(hub_rows(questions)):
        asked = {"gen_args_0": {"arg_0": f"{shots}Q: {row.question} A:", "arg_1": {}}}
        own = {"doc": row.model_dump(mode="json"), "arguments": asked, "doc_id": number}
        samples.append(lm_eval_sample(f" {row.object_surface}\n", **own))

    found = read_predictions(write_lines(tmp_path / "samples_redirectqa.jsonl", *samples))

    assert found == {item.question: f" {item.triple.object.name}\n" for item in questions}


def test_lm_eval_samples_of_a_filter_are_selected_by_its_name(tmp_path):
    rows = [
        {"doc": {"id": name}, "resps": [[f"So {name}."]], "filtered_resps": [text], "filter": how}
        for name in ("a", "b")
        for how, text in (("strict", "[invalid]"), ("flexible", name))
    ]
    path = write_lines(tmp_path / "samples.jsonl", *rows)

    read = predictions.read_predictions(path, PredictionSettings(filter="flexible"))

    assert read.by_name() == {"a": "a", "b": "b"}
    assert read.match(QuestionIndex(["b", "a"])) == ["b", "a"]
    assert predictions.read_predictions(path).by_name() == {"a": "So a.", "b": "So b."}
    with pytest.raises(RecordError, match=r"a second prediction .* several filters by `filt"):
        match(path, QuestionIndex(["b", "a"]), prediction="filtered_resps")


def test_samples_of_several_responses_and_ties_are_reported(tmp_path):
    several = [{"doc": {"id": "a"}, "resps": [["x", "y"]]}, {"doc": {"id": "b"}, "resps": [["z"]]}]
    docs = [{"id": f"q{n}", "question": "Capital of England?"} for n in range(3)]
    likelihoods = [(-10.765, -12.5), (-10.765, -9.75), (-1.5, -1.5)]
    choices = [choice_sample(two, doc=doc) for two, doc in zip(likelihoods, docs, strict=True)]

    with pytest.warns(SurfaceConsistencyWarning, match="1 of 2 samples contain several responses"):
        read = predictions.read_predictions(write_lines(tmp_path / "s.jsonl", *several))
    assert read.texts == ["x", "z"]
    with pytest.warns(SurfaceConsistencyWarning, match=r"1 of 3 samples have .*\(a tie\), so"):
        read = predictions.read_predictions(write_lines(tmp_path / "c.jsonl", *choices))
    assert read.texts == [" London", " Leeds", None]


def test_documents_written_by_the_old_harness_are_read(tmp_path):
    path = tmp_path / "triviaqa_write_out_info.json"
    prompts = ("Question: Who\nwas it?\nAnswer:\n.,", "Q: Who: he? A: I\n\nQ: Who? A:until")
    texts = [" I", " he"]
    pairs = enumerate(zip(prompts, texts, strict=True))
    path.write_text(json.dumps([{"doc_id": n, "prompt_0": a, "logit_0": b} for n, (a, b) in pairs]))

    read = predictions.read_predictions(path)

    assert read.texts == texts
    assert [names[0] for names in read.names] == ["Who\nwas it?", "Who?"]
    (one,), (other,) = (
        written_out({"prompt_0": prompt, "logit_0": "x"}, Place(path.name, 1)) for prompt in prompts
    )
    assert one.parts["prompt"] == one.parts["id"] == "Question: Who\nwas it?\nAnswer:"
    assert other.parts["prompt"] == other.parts["id"] == "Q: Who: he? A: I\n\nQ: Who? A:"
    with pytest.raises(DataError, match="the log of the task 'triviaqa', names questions such as"):
        read.match(QuestionIndex(["q1"], ["What?"]))


# Two facts about namesakes have the same question, the third has a different one.
GEORGIA = QuestionIndex(
    ids=["1:original:aa", "2:original:aa", "3:original:bb"],
    questions=["What is the capital of Georgia?", "What is the capital of Georgia?", "Who?"],
    facts=["1", "2", "3"],
    answers=[("Tbilisi",), ("Atlanta",), ("Cohen",)],
)
TEXTS = [" Tbilisi", " Atlanta", " Cohen"]


def match(path, asked=GEORGIA, **settings):
    return predictions.read_predictions(path, PredictionSettings(**settings)).match(asked)


POPQA = {
    **{"": "12", "id": "4222362", "subj": "Georgia", "prop": "capital", "obj": "Tbilisi"},
    **{"s_pop": "9", "o_pop": "3", "question": "What is the capital of Georgia?"},
    **{"possible_answers": '["Tbilisi", "Tiflis"]', "is_correct": "True"},
}


def georgia_rows(order=(2, 1, 0), **columns):
    """Rows by question, with further columns; not in the order of the questions."""
    columns = {"question": GEORGIA.questions, "pred": TEXTS, **columns}
    return [{name: values[place] for name, values in columns.items()} for place in order]


def test_answer_column_has_precedence_over_output_with_the_prompt(tmp_path):
    """Files of PopQA's script contain the prompt, the answer (`pred`), and both in one column.

    Namesakes are matched by their answers. Another named column needs `strip_prompt`, which
    gives only the answers.
    """
    rows = []
    for place in (1, 0, 2):
        question = GEORGIA.questions[place]
        prompt = f"Q: What sport does Pelé play? A: football\n\nQ: {question} A:"
        rows.append(
            POPQA
            | {"id": str(place), "question": question, "prompt": prompt, "pred": TEXTS[place]}
            | {"possible_answers": json.dumps(GEORGIA.answers[place])}
            | {"generation": f"</s>{prompt}{TEXTS[place]}\n\nQ: {question} A: no"}
        )
    popqa = written_as(tmp_path / "model=opt.csv", rows)

    assert match(popqa) == TEXTS
    texts = match(popqa, prediction="generation")
    with pytest.raises(DataError, match=r"^3 of 3 outputs .*set strip_prompt=True to remove it"):
        answers_only(texts, GEORGIA.questions, PredictionSettings())
    cut = answers_only(texts, GEORGIA.questions, PredictionSettings(strip_prompt=True))

    assert [text.splitlines()[0] for text in cut] == TEXTS


def test_output_that_begins_with_its_prompt_is_rejected_or_stripped(tmp_path):
    """If a column contains the prompt, the questions are not needed."""
    rows = [
        {"id": name, "prompt": f"Complete: {name} is", "output": f"Complete: {name} is{answer}"}
        for name, answer in zip(GEORGIA.ids, TEXTS, strict=True)
    ]
    path = write_lines(tmp_path / "p.jsonl", *rows)
    asked = QuestionIndex(GEORGIA.ids)

    with pytest.raises(DataError, match=r"^3 of 3 outputs of .*p\.jsonl begin with their prompt"):
        match(path, asked)

    assert match(path, asked, strip_prompt=True) == TEXTS


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("Who? Cohen", 4),
        ("Q: Who? A: Cohen", 10),
        ("Question: Who?\nAnswer: Cohen", 22),
        ("<s> Q: Who? A: Cohen", 14),
        ("Q: What? A: x\n\nQ: Who? A: Cohen\n\nQ: Who? A: no", 25),
        (" Cohen\n\nQ: Who? A: Cohen", None),
        ("Cohen", None),
    ],
)
def test_repeated_prompt_is_distinguished_from_a_continued_output(text, end):
    """Text after the answer is not a prompt."""
    settings = PredictionSettings(strip_prompt=True)

    assert answers_only([text], ["Who?"], settings) == [text if end is None else text[end:]]
    if end is None:
        assert answers_only([text], ["Who?"], PredictionSettings()) == [text]
    else:
        with pytest.raises(DataError, match="1 of 1 outputs"):
            answers_only([text], ["Who?"], PredictionSettings())
        few = [text, *["Cohen"] * 10]
        assert answers_only(few, ["Who?"] * 11, PredictionSettings()) == few


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            ("id", "text", "output"),
            r"columns 'output' and 'text' could each contain the predictions",
        ),
        (
            ("id", "answer", "response"),
            r"'response' and 'answer' could each contain .* `prediction`",
        ),
        (
            ("id", "pred", "prediction"),
            r"columns 'prediction' and 'pred' could each contain the pre",
        ),
        (("id", "Pred", "PRED"), r"columns 'Pred' and 'PRED' are both spellings of 'pred'"),
    ],
)
def test_two_columns_that_could_be_the_prediction_raise_an_error(tmp_path, columns, message):
    path = write_lines(tmp_path / "p.jsonl", dict.fromkeys(columns, "q1"))

    with pytest.raises(ColumnNotFoundError, match=message):
        read_predictions(path)
    assert read_predictions(path, prediction=columns[1]) == {"q1": "q1"}


@pytest.mark.parametrize("name", ["Prediction ", "PRED", "Answer", "Model Output", "generatedText"])
def test_similar_names_of_columns_and_spaces_in_cells_are_read(tmp_path, name):
    (tmp_path / "p.csv").write_text(f"Question_ID ,{name}\nq1 , London \n")

    assert read_predictions(tmp_path / "p.csv") == {"q1": " London "}
    assert read_predictions(tmp_path / "p.csv", item=("question_id",)) == {"q1": " London "}


@pytest.mark.parametrize(
    "columns",
    [
        {"id": GEORGIA.ids},
        {"triplet_id": [1, 2, 3]},
        {"possible_answers": ['["Tiflis", "Tbilisi"]', '["Atlanta"]', "[]"]},
        {"doc_id": [0, 1, 2]},
    ],
)
def test_namesakes_are_distinguished_by_further_columns(tmp_path, columns):
    """Each column that the message names distinguishes them."""
    without = write_lines(tmp_path / "without.jsonl", *georgia_rows())
    path = write_lines(tmp_path / "with.jsonl", *georgia_rows(**columns))

    with pytest.raises(
        DataError, match="several questions of the data are 'What is the capital of Geo"
    ):
        match(without)

    assert match(path) == TEXTS


def test_namesakes_are_matched_by_their_order_or_its_digest(tmp_path):
    """Rows in the order of the questions need no id; without texts the digest is required."""
    rows = georgia_rows((0, 1, 2))
    path = write_lines(tmp_path / "a.jsonl", *rows)
    mixed = write_lines(tmp_path / "b.jsonl", *georgia_rows((1, 2, 0)))
    bare = write_lines(tmp_path / "c.jsonl", *({"pred": row["pred"]} for row in rows))
    digest = questions_digest(GEORGIA.questions)

    assert match(path) == TEXTS
    for file, message in [
        (mixed, "the predictions under it differ"),
        (bare, "no column identifies"),
    ]:
        with pytest.raises(DataError, match=rf"{message}.*in_order='{digest}', the digest"):
            match(file)
    assert match(bare, in_order=digest) == TEXTS
    with pytest.raises(DataError, match=f"in_order='abc' is not the digest .* is '{digest}'"):
        match(bare, in_order="abc")
    with pytest.raises(DataError, match="2 rows for 3 questions"):
        match(write_lines(tmp_path / "d.jsonl", *rows[:2]), in_order=digest)
    # Equal predictions are not a conflict.
    equal = [{"question": text, "pred": "Rome"} for text in reversed(GEORGIA.questions)]
    assert match(write_lines(tmp_path / "e.jsonl", *equal)) == ["Rome"] * 3
    assert match(write_lines(tmp_path / "f.jsonl", *equal[1:])) == ["Rome", "Rome", None]


@pytest.mark.parametrize("key", ["triplet_id", "possible_answers", "doc_id"])
def test_namesakes_in_samples_of_the_harness_are_distinguished(tmp_path, key):
    """The document's fact, its answers, or its number in the data distinguishes them."""
    samples = []
    for place in (2, 0, 1):
        keys = {"triplet_id": int(GEORGIA.facts[place]), "possible_answers": GEORGIA.answers[place]}
        doc = {"question": GEORGIA.questions[place]} | {n: v for n, v in keys.items() if n == key}
        own = {"doc": doc, "doc_id": place if key == "doc_id" else 7, "target": ""}
        samples += [lm_eval_sample(TEXTS[place], filter=one, **own) for one in ("strict", "loose")]
    path = write_lines(tmp_path / "samples_x.jsonl", *samples)

    assert match(path) == TEXTS
    if key == "doc_id":
        assert match(path, item=("doc_id",)) == TEXTS


def test_two_predictions_for_one_question_raise_an_error(tmp_path):
    """The error names both places."""
    rows = [{"id": GEORGIA.ids[0], "pred": text} for text in ("x", "x", "y")]
    read = predictions.read_predictions(write_lines(tmp_path / "p.jsonl", *rows))

    assert read.by_name() == {GEORGIA.ids[0]: None}
    with pytest.raises(RecordError, match=r"p\.jsonl: row 3: a second .* that of .*: row 1; k"):
        read.match(GEORGIA)


@pytest.mark.parametrize(
    ("missing", "stated", "expected"),
    [
        ("drop", "set `missing` to wrong", ["London", None, None, None]),
        ("wrong", "they count as incorrect", ["London", "", " \n", ""]),
    ],
)
def test_blank_predictions_are_counted_and_missing_by_default(missing, stated, expected):
    settings = PredictionSettings(missing=missing)
    with pytest.warns(UnscoredWarning, match=r"\d predictions|\d prompts") as caught:
        found = answers_only(["London", "", " \n", None], None, settings)
    assert found == expected
    texts = [str(one.message) for one in caught]
    assert texts[0].startswith("2 of 3 predictions are blank; ")
    assert stated in texts[0]
    assert texts[1].startswith("1 of 4 prompts have no prediction; ")
    assert stated in texts[1]


@pytest.mark.parametrize("text", [None, " "])
def test_missing_predictions_raise_on_request(text):
    settings = PredictionSettings(missing="raise")
    assert answers_only(["London"], None, settings) == ["London"]
    n = (1, 0) if text is None else (0, 1)
    message = f"of 2 prompts {n[0]} have no prediction and {n[1]} a blank one, but `missing` is"
    with pytest.raises(DataError, match=message):
        answers_only(["London", text], None, settings)


def test_equal_rows_of_one_question_are_counted(tmp_path):
    rows = [{"id": name, "pred": "x"} for name in (GEORGIA.ids[0], *GEORGIA.ids, GEORGIA.ids[0])]
    path = write_lines(tmp_path / "p.jsonl", *rows)
    with pytest.warns(SurfaceConsistencyWarning, match=r"2 of 5 .* are dropped, .*: row 2$"):
        assert match(path) == ["x"] * 3


FACTS = QuestionIndex(
    ids=[f"q{n}" for n in range(6)],
    questions=[f"What is the capital of {name}?" for name in ("A", "B", "C", "D", "E", "F")],
    facts=[f"f{n}" for n in range(6)],
    answers=[["Paris"], ["Lima"], ["Rome", "Roma"], ["Oslo"], ["Bern"], ["Quito"]],
)
OUTPUTS = ["Paris", "It is Cusco", "Milan", "Oslo", "Geneva", "Quito I think"]


def rows_of(**columns):
    """Rows of columns."""
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


REFERENCES = [accepted[0] for accepted in FACTS.answers]
LABELS = ["correct", "incorrect", "correct", "Correct", "incorrect", "correct"]
MAY = "column '{}' may contain the reference .* 'gpt-x' may be .* by `prediction`"
EQUAL = "'{0}' equal a reference in 6 of 6 .* Columns: question, {0}, .*`prediction`"
ALONE = "'{}' are only correctness labels, such as 'correct', .*`prediction`"


@pytest.mark.parametrize(
    ("error", "message", "columns"),
    [
        (ColumnNotFoundError, MAY, {"answer": REFERENCES, "gpt-x": OUTPUTS}),
        (ColumnNotFoundError, MAY, {"text": REFERENCES, "gpt-x": OUTPUTS}),
        (ColumnNotFoundError, MAY, {"Answer": REFERENCES, "gpt-x": OUTPUTS}),
        # The column of the output has a name with another meaning, or words of one letter.
        (DataError, EQUAL, {"answer": REFERENCES, "topic": OUTPUTS}),
        (DataError, EQUAL, {"text": REFERENCES, "n": list("abcdef")}),
        # `output` of an instruction set is the reference if there is also a column of a model.
        (DataError, EQUAL, {"output": REFERENCES, "gpt-x": OUTPUTS}),
        (DataError, ALONE, {"prediction": LABELS, "mine": OUTPUTS}),
        (DataError, ALONE, {"response": LABELS, "mine": OUTPUTS}),
    ],
)
def test_references_and_labels_are_predictions_only_if_named(tmp_path, error, message, columns):
    path = write_lines(tmp_path / "p.jsonl", *rows_of(question=FACTS.questions, **columns))

    with pytest.raises(error, match=message.format(next(iter(columns)))):
        match(path, FACTS)
    for name, texts in columns.items():
        assert match(path, FACTS, prediction=name) == texts


# Columns of the data, hashes, numbers and labels are not outputs.
OF_THE_DATA = {
    "subj": ["The country of " + letter for letter in "ABCDEF"],
    "doc_hash": [f"a{n}86fdcccc305b8a3f1ee0{n}" for n in range(6)],
    "url": [f"https://x.org/{letter}" for letter in "abcdef"],
    "kind": ["short answer"] * 6,
}


@pytest.mark.parametrize(
    "columns",
    [{"prediction": REFERENCES}, {"response": REFERENCES}, {"answer": OUTPUTS, **OF_THE_DATA}],
)
def test_perfect_answers_and_answers_with_columns_of_the_data_are_read(tmp_path, columns):
    path = write_lines(tmp_path / "p.jsonl", *rows_of(question=FACTS.questions, **columns))

    assert match(path, FACTS) == next(iter(columns.values()))
