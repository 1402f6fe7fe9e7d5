"""Test both tasks of the writer, from requests and the review sheet to the data of the studies."""

import csv
import json

import datasets
import pytest
from surface_consistency_build.commands import build as build_command
from surface_consistency_build.writers.paraphrases import (
    ParaphraseSettings,
    ParaphraseWriting,
    check_paraphrase,
    find_wordings,
    paraphrase_prompt,
)
from surface_consistency_build.writers.slaq_topics import TopicSettings, TopicWriting, topic_prompt
from surface_consistency_build.writers.writer import ReviewSheet

from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.data.slaq import load_slaq
from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.data.slaq_rows import SlaqRow, to_slaq_rows
from surface_consistency.engine.features import make_features
from surface_consistency.engine.judging.prompts import pin_prompts
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    RunError,
    SourceNotFoundError,
)
from surface_consistency.models import FakeRunner
from surface_consistency.studies.redirectqa.study import RedirectQASettings, RedirectQAStudy
from surface_consistency.taxonomy import RELATIONS
from tests.surface_consistency_build.made_records import fact_questions

SAMPLE = load_redirectqa("sample")
TOPICS = load_slaq("sample").topics[:6]
LOOSE = TopicSettings(min_words=10, min_characters=10)
GOOD = "1. In which city was {name} built?\n2. Which is the place where {name} was built?"


def fact(number, *names, **given):
    return fact_questions(number, names, aliases=("Other",), **given)


SMALL = [
    *fact(1, "Ark of {Oz}", "Ark of Os"),
    *fact(2, "Zug", "Zugg", answers=("the place", "Milan")),
]
DATA = RedirectQA.from_questions(SMALL, source="small")
DRAFT = find_wordings(SMALL)[0][0]


def article_of(topic, n_more=0):
    text = " ".join([topic.long_answer, *(question.answer for question in topic.questions)])
    given = {"title": topic.topic, "text": text + " more" * n_more}
    return SlaqArticle.model_validate(
        given | topic.model_dump(include={"category", "url", "pageviews"})
    )


def articles(topics=TOPICS):
    return [article_of(topic) for topic in topics]


def texts_of(topic, **changes):
    """The texts of a valid answer of a writer, by key."""
    pairs = {
        f"Short{kind}{question.index}": text
        for question in topic.questions
        for kind, text in (("Q", question.question), ("A", question.answer))
    }
    return pairs | {"LongQ": topic.long_question, "LongA": topic.long_answer} | changes


def output_of(topic, **changes):
    """A valid answer of a writer."""
    flags = {
        f"ShortQ{question.index}_Entity": int(question.is_entity) for question in topic.questions
    }
    return json.dumps(texts_of(topic, **changes) | flags)


def paraphraser(*answers, asked=None):
    """A runner that returns one answer per attempt, with the name, and records the prompts."""
    prompts = [] if asked is None else asked

    def handle(prompt):
        prompts.append(prompt)
        return answers[min(int(prompt.id[-1]), len(answers)) - 1].replace("{name}", "Ark of {Oz}")

    return FakeRunner(handle, name="writer")


def topic_writer(answers):
    """A runner that returns the answers to a topic by attempt."""

    def handle(prompt):
        topic_id, _, attempt = prompt.id.split("/")
        listed = answers[topic_id]
        return listed[min(int(attempt), len(listed)) - 1]

    return FakeRunner(handle, name="writer")


def paraphrases(**settings):
    return ParaphraseWriting(DATA, ParaphraseSettings(**{"paraphrases": 2} | settings))


def topics(chosen=TOPICS, settings=LOOSE):
    return TopicWriting(articles(chosen), settings)


class Paraphrasing:
    """The task of paraphrases, for the tests of both."""

    make = staticmethod(paraphrases)
    runner = staticmethod(lambda: paraphraser(f"{GOOD}\n3. Where was it built?"))
    other = staticmethod(
        lambda: ParaphraseWriting(RedirectQA.from_questions(SMALL[:2], source="o"))
    )
    other_settings = staticmethod(lambda: paraphrases(paraphrases=3))
    data = "paraphrased/test-00000-of-00001.parquet"
    text, mark, correction = "paraphrase", "keep", "corrected"
    accepted = ({"keep": "yes"}, {"keep": "no"}, {})
    all_rejected = ({"keep": "no"}, {"keep": "no"}, {})


class TopicTask:
    """The task of topics, for the tests of both."""

    make = staticmethod(lambda: topics(TOPICS[:2]))
    runner = staticmethod(
        lambda: topic_writer({topic.id: [output_of(topic)] for topic in TOPICS[:2]})
    )
    other = staticmethod(lambda: topics(TOPICS[:3]))
    other_settings = staticmethod(
        lambda: topics(TOPICS[:2], TopicSettings(min_words=9, min_characters=10))
    )
    data = "all/test-00000-of-00001.parquet"
    text, mark, correction = "answer", "is_grounded", "corrected_answer"
    accepted = ({},) * 12
    all_rejected = ({"is_grounded": "no"},) * 12


@pytest.fixture(params=[Paraphrasing, TopicTask])
def task(request):
    return request.param


@pytest.fixture
def written(task, tmp_path):
    """The folder that the task wrote."""
    task.make().write(task.runner(), tmp_path / "written", model="fake")
    return tmp_path / "written"


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fill(sheet, *cells):
    """Edit the rows of a sheet like a reviewer."""
    rows = rows_of(sheet)
    for row, changed in zip(rows, cells, strict=False):
        row.update(changed)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(row for row in rows if "gone" not in row.values())


# Both tasks ---------------------------------------------------------------------------------------


def test_second_run_does_not_send_requests_again(task, tmp_path):
    """After an interruption, only the missing requests are sent."""
    runner = task.runner()
    done = task.make().write(runner, tmp_path, model="fake")
    log = (tmp_path / "writer.jsonl").read_text("utf-8")
    data = (tmp_path / task.data).read_bytes()
    second, after = task.runner(), task.runner()

    again = task.make().write(second, tmp_path, model="fake")
    (tmp_path / "writer.jsonl").write_text(log[: len(log.splitlines(True)[0]) // 2], "utf-8")
    task.make().write(after, tmp_path, model="fake")

    assert second.asked == []
    assert again == done
    assert after.asked == runner.asked
    assert (tmp_path / task.data).read_bytes() == data


def test_folder_with_other_data_or_settings_is_rejected(task, written):
    with pytest.raises(RunError, match="digest"):
        task.other().write(task.runner(), written, model="fake")
    with pytest.raises(RunError, match="settings"):
        task.other_settings().write(task.runner(), written, model="fake")


def test_a_sheet_with_notes_is_not_overwritten(task, written):
    """The same for a sheet that a spreadsheet saved with semicolons, so that columns are not
    found."""
    sheet = written / "review.csv"
    fill(sheet, {"note": "not in the article"})
    filled = sheet.read_text("utf-8")
    with pytest.raises(DataError, match="contains notes of a reviewer; move it"):
        task.make().write(task.runner(), written, model="fake")
    assert sheet.read_text("utf-8") == filled
    rows = rows_of(sheet)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter=";")
        table.writerows([list(rows[0]), *(row.values() for row in rows)])
    saved = sheet.read_text("utf-8")
    with pytest.raises(DataError, match="contains notes of a reviewer"):
        task.make().write(task.runner(), written, model="fake")
    assert sheet.read_text("utf-8") == saved


def test_a_review_may_be_in_another_folder_and_must_accept_a_row(task, written, tmp_path):
    fill(written / "review.csv", *task.accepted)
    (written / "review.csv").rename(tmp_path / "mine.csv")

    done = task.make().apply(tmp_path / "mine.csv", tmp_path / "done", written=written)

    assert done.counts["corrected"] == 0
    assert (tmp_path / "done" / task.data).is_file()
    fill(tmp_path / "mine.csv", *task.all_rejected)
    with pytest.raises(DataError, match="remains"):
        task.make().apply(tmp_path / "mine.csv", tmp_path / "none", written=written)
    assert not (tmp_path / "none").exists()


def test_damaged_or_unrelated_sheets_are_rejected(task, written, tmp_path):
    fill(written / "review.csv", *task.accepted)
    sheet, text = written / "review.csv", (written / "review.csv").read_text("utf-8")
    manifest, log = written / "writer.manifest.json", written / "writer.jsonl"
    described, key = manifest.read_text("utf-8"), task.make().sheet.key[0]

    def assert_rejected(error, message, writing=task.make, **options):
        with pytest.raises(error, match=message):
            writing().apply(sheet, tmp_path / "done", **options)
        assert not (tmp_path / "done").exists()

    changed = rf"column '{task.text}' of .* was changed from .* 'Where\?'"
    for name, cell, error, message in (
        (task.mark, "perhaps", RecordError, f"csv:2: column '{task.mark}' must be yes, no"),
        (key, "other", RecordError, f"csv:2: row 'other.*not found; do not change .*{key}"),
        (key, "gone", DataError, r"1 rows are missing, such as '.*1'; restore them, and write no"),
        (task.text, "Where?", RecordError, changed),
    ):
        fill(sheet, {name: cell})
        assert_rejected(error, message)
        sheet.write_text(text, "utf-8")
    assert_rejected(DataError, "was written with other data", task.other)
    assert_rejected(DataError, "was written with other settings", task.other_settings)
    assert_rejected(SourceNotFoundError, r"contains no writer\.jsonl", written=tmp_path)
    sheet.write_text(text + text.splitlines(keepends=True)[1], "utf-8")
    assert_rejected(RecordError, "occurs twice; keep only one")
    sheet.write_text(text.replace(task.correction, "mine", 1), "utf-8")
    assert_rejected(ColumnNotFoundError, f"lacks {task.correction}")
    sheet.write_text(text, "utf-8")
    study = task.make().study
    for changed, error, message in (
        (described.replace(f'"{study}"', '"judge"', 1), DataError, r"written with other task \(ju"),
        ("{}", RunError, "not the settings of a run"),
    ):
        manifest.write_text(changed, "utf-8")
        assert_rejected(error, message)
    manifest.write_text(described, "utf-8")
    log.write_text("", "utf-8")
    assert_rejected(DataError, "contains no answer to the requests of this version")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_sheets_contain_no_formulas(tmp_path, start):
    sheet = ReviewSheet(shown=("id", "text"), filled=("keep",), key=("id",), marks=("keep",))

    sheet.write(tmp_path / "review.csv", [("1", f'{start}HYPERLINK("http://x")')])

    assert rows_of(tmp_path / "review.csv")[0]["text"].startswith(f"'{start}")
    [(_, cells)] = sheet.read(tmp_path / "review.csv")
    assert cells["text"].startswith(start.strip())
    with pytest.raises(ValueError, match=r"field 'attempts': .*greater than or equal to 1"):
        TopicSettings(attempts=0)


# Paraphrases --------------------------------------------------------------------------------------


def question_in(prompt):
    """Return the question that a request for paraphrases is about."""
    return prompt.messages[-1].content.rpartition("Question: ")[2].partition("\n")[0]


def questions_of(folder):
    """Read the questions by template and name."""
    rows = datasets.load_dataset(str(folder), split="test")
    return {(row["template"], row["subject_surface"]): row["question"] for row in rows}


def test_written_paraphrases_are_read_as_redirectqa(tmp_path):
    """Facts, names and answers are kept; each pair differs only in the name, in each wording."""
    # The paraphrases of the sample, as the answer of a writer.
    canonical = [one for one in SAMPLE.questions if one.surface.is_canonical]
    known = {one.triple.id: one.question for one in canonical if one.template == "paraphrase"}
    questions = {
        one.question: known[one.triple.id] for one in canonical if one.template == "original"
    }
    runner = FakeRunner(lambda prompt: f"Here it is:\n1. {questions[question_in(prompt)]}")

    done = ParaphraseWriting(SAMPLE).write(runner, tmp_path / "out", model="fake")
    read = load_redirectqa(tmp_path / "out")

    assert done.counts["wordings"] == len(runner.asked) == done.counts["paraphrases"] == 16
    assert (done.dropped, done.left_out) == ({}, {})
    assert {(q.id, q.question, q.triple.answers) for q in read.questions} == {
        (q.id, q.question, q.triple.answers) for q in SAMPLE.questions
    }
    assert len(read.pairs) == len(SAMPLE.pairs)


def test_further_paraphrases_are_separate_templates(tmp_path):
    done = paraphrases().write(paraphraser(GOOD), tmp_path, model="fake")
    rows = questions_of(tmp_path)

    assert (done.counts["paraphrases"], done.counts["rows"]) == (2, 10)
    assert rows["original", "Ark of Os"] == "Where was Ark of Os built?"
    assert rows["paraphrase", "Ark of {Oz}"] == "In which city was Ark of {Oz} built?"
    assert rows["paraphrase_2", "Ark of Os"] == "Which is the place where Ark of Os was built?"
    # "the place" is an answer of the second fact, so its second paraphrase is not posed.
    assert ("paraphrase", "Zugg") in rows
    assert ("paraphrase_2", "Zugg") not in rows
    read = load_redirectqa(tmp_path)
    by_name = {q.triple.id: q.triple for q in read.questions}
    assert by_name["f2"].answers == ("the place", "Milan")
    for template, n_pairs in {"original": 2, "paraphrase": 3, "both": 5}.items():
        plan = RedirectQAStudy().plan(read, RedirectQASettings(template=template, shots=0))
        assert len(plan.pairs) == n_pairs


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("Ark of {Oz}", "In which city was Ark of {Oz} built?", None),
        ("Ark of {Oz}", "In which city was Ark of Oz built?", "name"),
        ("Ark of {Oz}", "In which city was ark of {oz} built?", "name"),
        ("Ark of {Oz}", "Was Ark of {Oz} built where Ark of {Oz} is?", "name"),
        ("Ark of {Oz}", "where was Ark of {Oz} built ?", "original"),
        ("Ark of {Oz}", "In what city was Ark of {Oz} built?", None),
        ("Ark of {Oz}", "In which CITY was Ark of {Oz} built??", "repeated"),
        ("Ark of {Oz}", "It was built in a city, Ark of {Oz}.", "no question"),
        ("Ark of {Oz}", "Was Ark of {Oz} built in Rome or in the place?", "answer"),
        ("Ark of {Oz}", "Was Ark of {Oz} built in Romeo's town?", None),
        # Names within words, of few letters, of marks and of other scripts.
        ("Zug", "In which city was Zugspitze built?", "name"),
        ("Zug", "In which city was Zug's tower built?", None),
        ("It", "In which Italian city was it built?", "name"),
        ("It", "In which city was It built?", None),
        ("C++", "Which city built C++?", None),
        ("!!!", "Which city built !!!?", None),
        ("タワー", "東京タワーズはどの都市にありますか?", "name"),
        ("タワー", "東京タワーはどの都市にありますか?", None),
    ],
)
def test_check_paraphrase_gives_the_reason_of_a_rejection(name, text, reason):
    known = SMALL if name == DRAFT.name else fact(1, name, "Other")
    taken = ["In which city was Ark of {Oz} built?"] if reason == "repeated" else []

    assert check_paraphrase(text, find_wordings(known)[0][0], taken=taken)[0] == reason


def test_questions_that_cannot_be_paraphrased_are_counted():
    odd = [
        *fact(3, "Here", "There", question="Here, was {} built?"),
        *fact(4, "Lone", "Loan")[1:],
        fact(5, "A1", "B1")[0],
        fact(5, "A1", "B1", question="Who built {}?")[1],
    ]

    drafts, left_out = find_wordings([*SMALL, *odd])

    assert left_out == {
        "f3": "its name does not occur in its question exactly once",
        "f4": "it has no canonical question",
        "f5": "its questions differ in more than the name",
    }
    assert [list(draft.facts) for draft in drafts] == [["f1", "f2"]]
    with pytest.raises(DataError, match="no question of odd can be paraphrased: its name does"):
        ParaphraseWriting(RedirectQA.from_questions(odd[:2], source="odd"))


def test_too_few_paraphrases_are_requested_again(tmp_path):
    asked = []
    first = "In which city was {name} built?\nWhere was {name} built?"
    second = "1) Which is the place where {name} was built?\n2) And what of {name}?"

    done = paraphrases().write(paraphraser(first, second, asked=asked), tmp_path, model="fake")

    assert len(asked) == 2
    again = asked[1].messages[-1].content
    assert again.startswith("Taken already: In which city was Ark of {Oz} built? | Where")
    assert again.endswith("Name: Ark of {Oz}\nWrite 1 wording.")
    assert done.dropped == {"it is the original": 1, "enough paraphrases exist without it": 1}
    words = r"no paraphrase of 1 wordings remains \(2 the name does not .*follows instructions"
    with pytest.raises(DataError, match=words):
        paraphrases().write(paraphraser("I cannot.", "No."), tmp_path / "none", model="fake")
    few = paraphrases(attempts=1).write(paraphraser(first), tmp_path / "few", model="fake")
    assert few.left_out == {"Where was {} built?": "it has too few paraphrases"}


@pytest.fixture
def paraphrased(tmp_path):
    """Two accepted paraphrases, and a dropped one."""
    paraphrases().write(Paraphrasing.runner(), tmp_path / "written", model="fake")
    return tmp_path / "written" / "review.csv"


def test_paraphrases_of_a_reviewer_replace_those_of_the_writer(paraphrased, tmp_path):
    rows = rows_of(paraphrased)
    assert [row["n_facts"] for row in rows] == ["2", "1", "2"]
    assert rows[2]["dropped"] == "the name does not occur in it exactly once"
    assert rows[0]["question"] == "Where was Ark of {Oz} built?"
    assert {row["keep"] + row["corrected"] + row["note"] for row in rows} == {""}
    fill(
        paraphrased,
        {"keep": "no"},
        {"corrected": "Tell me, where was Ark of {Oz} built?", "note": "shorter"},
        {"keep": "no", "corrected": "Which town built Ark of {Oz}?"},
    )

    done = paraphrases().apply(paraphrased, tmp_path / "done")
    rows = questions_of(tmp_path / "done")

    assert done.counts == {"wordings": 1, "paraphrases": 2, "rows": 12, "corrected": 2}
    assert done.dropped == {"the reviewer rejected it": 1}
    assert rows["paraphrase", "Zugg"] == "Tell me, where was Zugg built?"
    assert rows["paraphrase_2", "Ark of Os"] == "Which town built Ark of Os?"


@pytest.mark.parametrize(
    ("cells", "error", "message"),
    [
        (({}, {}, {}), DataError, r"csv:2: the reviewer did not mark this row; write yes or no"),
        (({"keep": "yes"}, {}, {}), DataError, r"csv:3: the reviewer did not mark this row"),
        (({"keep": "yes"}, {"n_facts": "3"}), RecordError, "'n_facts' of .* from '1' to '3'"),
        (({}, {}, {"dropped": ""}), RecordError, "column 'dropped' of .* was changed"),
        ([{"keep": one} for one in ("yes", "no", "yes")], RecordError, "because the name does not"),
        (({"corrected": "In Rome?"}, {"keep": "no"}), RecordError, "question about 'Ark of {Oz}'"),
    ],
)
def test_invalid_reviews_are_rejected(paraphrased, tmp_path, cells, error, message):
    fill(paraphrased, *cells)

    with pytest.raises(error, match=message):
        paraphrases().apply(paraphrased, tmp_path / "done")
    assert not (tmp_path / "done").exists()


def test_solved_examples_precede_the_request_for_paraphrases():
    """The requested number of wordings, without relations of RedirectQA."""
    chat = paraphrase_prompt("Who wrote {x}?", "{x}", number=2, prompt_id="p").messages

    assert [turn.role for turn in chat] == ["user", "assistant"] * 3 + ["user"]
    assert chat[0].content.startswith("Ask each question in other words.")
    assert chat[1].content.splitlines()[1].startswith("2. What is the year")
    assert chat[-1].content == "Question: Who wrote {x}?\nName: {x}\nWrite 2 wordings."
    text = "\n".join(turn.content for turn in chat)
    for relation in RELATIONS.values():
        for template in (relation.original, relation.paraphrase):
            assert template.replace("{}", "Ikea") not in text


def test_the_command_line_writes_paraphrases_and_applies_a_review(tmp_path, monkeypatch, capsys):
    """The option for the runner is tested with the command of topics."""
    writer = FakeRunner(lambda prompt: f"Please tell me: {question_in(prompt)}")
    monkeypatch.setattr(build_command, "load_runner", lambda *_, **__: writer)
    out, done = tmp_path / "out", str(tmp_path / "done")
    words = ["build", "paraphrases", "--source", "sample", "--limit", "4"]

    assert main([*words, "--out", str(out)]) == 0
    reviewed = [*words, "--review", str(out / "review.csv"), "--out", done]
    assert main(reviewed) == 2
    fill(out / "review.csv", *[{"keep": "yes"}] * 4)
    assert main(reviewed) == 0

    printed = capsys.readouterr()
    assert "paraphrases: 4" in printed.out
    assert "to review: " in printed.out
    assert "the reviewer did not mark this row" in printed.err
    assert len(load_redirectqa(tmp_path / "done").pairs) >= 8


# Topics -------------------------------------------------------------------------------------------


def test_topics_written_from_articles_are_read_as_slaq(tmp_path):
    runner = topic_writer({one.id: [f"Here:\n```json\n{output_of(one)}\n```"] for one in TOPICS})

    done = topics().write(runner, tmp_path / "out", model="fake")

    assert (done.counts, done.left_out) == ({"topics": 6, "doubtful topics": 0}, {})
    assert load_slaq(tmp_path / "out").topics == TOPICS
    loaded = datasets.load_dataset(str(tmp_path / "out"), split="test")
    assert loaded.to_list() == [row.model_dump() for row in to_slaq_rows(TOPICS)]
    assert loaded.features == make_features(SlaqRow)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "license: other" in card
    assert "written from articles by a model" in card
    assert len(runner.asked) == 6


def test_violations_are_sent_back_once(tmp_path):
    """A second request corrects a violation; valid topics are not requested again."""
    first, second = TOPICS[:2]
    long = output_of(first, ShortA1="Christiaan Huygens " * 6)
    runner = topic_writer({first.id: [long, output_of(first)], second.id: [output_of(second)]})

    topics((first, second)).write(runner, tmp_path, model="fake")

    assert [topic.id for topic in load_slaq(tmp_path).topics] == [first.id, second.id]
    assert runner.asked == [f"{first.id}/write/1", f"{second.id}/write/1", f"{first.id}/write/2"]


def test_prompt_of_the_paper_is_sent_once_and_recorded(tmp_path):
    """Its one line is read, flags are not requested, and a start with another wording is
    rejected."""
    settings = LOOSE.model_copy(update={"prompts": pin_prompts("paper", "writer")})
    requests = []

    def handle(prompt):
        requests.append(prompt.messages)
        (topic,) = (one for one in TOPICS if prompt.id.startswith(f"{one.id}/"))
        answer = ", ".join(f"{key} : {text}" for key, text in texts_of(topic).items())
        return answer if topic.id != TOPICS[0].id else "I cannot."

    runner = FakeRunner(handle, name="writer")
    done = topics(settings=settings).write(runner, tmp_path, model="fake")

    read = load_slaq(tmp_path).topics
    assert [one.long_answer for one in read] == [one.long_answer for one in TOPICS[1:]]
    assert {question.is_entity for one in read for question in one.questions} == {None}
    assert list(done.left_out) == [TOPICS[0].topic]
    assert [len(messages) for messages in requests] == [1] * len(TOPICS)
    assert requests[0][0].content.startswith("Given a *reference article*")
    manifest = json.loads((tmp_path / "writer.manifest.json").read_text())
    assert manifest["settings"]["prompts"] == pin_prompts("paper", "writer")
    with pytest.raises(RunError, match="prompts"):
        topics().write(runner, tmp_path, model="fake")
    with pytest.raises(ValueError, match="prompts must be own or paper"):
        TopicSettings(prompts="mine")


def test_topics_with_remaining_violations_are_on_the_review_sheet(tmp_path):
    """Refusals, missing texts and violations are on the sheet, but not in the data set."""
    good, declined, gap, long = TOPICS[:4]
    answers = {
        good.id: [output_of(good)],
        declined.id: ["I cannot do that."],
        gap.id: [output_of(gap, ShortA2="")],
        long.id: [output_of(long, ShortQ1="When did the war end?")],
    }

    done = topics(TOPICS[:4]).write(topic_writer(answers), tmp_path, model="fake")
    rows = {(row["topic_id"], row["fact"]): row for row in rows_of(tmp_path / "review.csv")}

    assert [topic.id for topic in load_slaq(tmp_path).topics] == [good.id]
    assert [topic.id for topic in load_slaq(tmp_path, split="doubtful").topics] == [long.id]
    assert list(done.left_out) == [declined.topic, gap.topic]
    assert "; got 4 of 5 facts; see check_topic" in done.left_out[gap.topic]
    assert len(rows) == 4 * 6
    assert {row["violations"] for (name, _), row in rows.items() if name == good.id} == {""}
    assert "ShortA2 is missing" in rows[gap.id, "2"]["violations"]
    assert "names no subject" in rows[long.id, "1"]["violations"]
    assert "ShortA4 is missing" in rows[declined.id, "4"]["violations"]
    assert "LongQ is missing" in rows[declined.id, "long"]["violations"]


def test_a_worse_second_answer_is_ignored(tmp_path):
    topic = TOPICS[0]
    once = output_of(topic, ShortQ1="When did the war end?")
    worse = output_of(topic, ShortQ1="When did the war end?", ShortQ2="Name one moon.", LongQ="x")

    for place, second in enumerate((worse, "no")):
        out = tmp_path / str(place)
        topics((topic,)).write(topic_writer({topic.id: [once, second]}), out, model="f")
        kept = load_slaq(out, split="doubtful").topics[0]
        assert kept.questions[1].question == topic.questions[1].question


def test_short_articles_are_not_requested(tmp_path):
    """The limit of the paper applies unless it is lowered."""
    long = article_of(TOPICS[0], n_more=1000)
    runner = topic_writer({TOPICS[0].id: [output_of(TOPICS[0])]})

    done = TopicWriting([long, *articles(TOPICS[1:3])]).write(runner, tmp_path, model="fake")

    assert done.left_out == {one.topic: "the article is too short" for one in TOPICS[1:3]}
    with pytest.raises(DataError, match=r"more than 1000 words .*2 are shorter"):
        TopicWriting(articles(TOPICS[1:3]))
    with pytest.raises(DataError, match="two articles have the title 'Saturn'"):
        topics((TOPICS[0], TOPICS[0]))


@pytest.fixture
def sheet(tmp_path):
    """The review sheet of two valid topics."""
    TopicTask.make().write(TopicTask.runner(), tmp_path / "written", model="fake")
    return tmp_path / "written" / "review.csv"


def mark(sheet, place, fact, **cells):
    """Edit the row of a fact of one of two topics."""
    index = 6 * place + (5 if fact == "long" else int(fact) - 1)
    fill(sheet, *[{}] * index, cells)


def test_corrections_replace_the_texts_of_the_writer(sheet, tmp_path):
    answer = "Ptolemy of Alexandria"
    mark(sheet, 0, "long", corrected_answer=f"{TOPICS[0].long_answer} {answer}")
    # The article does not contain the new answer, and at most one mark of the row confirms it.
    for cells in (("no", ""), ("yes", ""), ("", "yes"), ("", "")):
        marks = dict(zip(("is_grounded", "is_open_domain"), cells, strict=True))
        mark(sheet, 0, "1", corrected_answer=answer, **marks)
        done = TopicTask.make().apply(sheet, tmp_path / "done")
        assert list(done.left_out) == [TOPICS[0].topic]
        assert "the reviewer rejected" not in done.left_out[TOPICS[0].topic]
    mark(sheet, 0, "1", is_grounded="yes", is_open_domain="Yes", is_entity="0")
    again = TopicTask.make().apply(sheet, tmp_path / "done")
    question = load_slaq(tmp_path / "done").topics[0].questions[0]
    assert (question.answer, question.is_entity) == (answer, False)
    assert again.counts["corrected"] == 2


def test_rejection_without_a_correction_excludes_the_topic(sheet, tmp_path):
    """A sheet without marks keeps the topics; a correction overrides a rejection."""
    done = TopicTask.make().apply(sheet, tmp_path / "all")
    assert (done.counts, done.left_out) == ({"topics": 2, "corrected": 0}, {})
    assert load_slaq(tmp_path / "all").topics == load_slaq(sheet.parent).topics

    one = TOPICS[0].questions[0]
    mark(sheet, 0, "1", is_open_domain="no", corrected_question=f"{one.question} ")
    mark(sheet, 0, "2", is_grounded="no", corrected_answer=f"{TOPICS[0].questions[1].answer} ")
    mark(sheet, 1, "3", is_open_domain="no")
    done = TopicTask.make().apply(sheet, tmp_path / "done")
    assert [topic.id for topic in load_slaq(tmp_path / "done").topics] == [TOPICS[0].id]
    assert done.left_out == {TOPICS[1].topic: "the reviewer rejected row 3"}
    assert done.counts["corrected"] == 2


TEXT = "First paragraph here.\n\nSecond paragraph. It goes on and on and on."
ARTICLE = SlaqArticle(title="Null Island", category="Geography", text=TEXT)


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (len(TEXT), TEXT),
        (30, "First paragraph here."),
        (50, "First paragraph here.\n\nSecond paragraph."),
        (20, "First paragraph"),
        (3, "Fir"),
    ],
)
def test_long_articles_are_cut_at_the_end_of_a_paragraph_sentence_or_word(limit, kept):
    content = topic_prompt(ARTICLE, max_characters=limit).messages[0].content

    assert content.partition("Article:\n")[2].partition("\n\n(The article")[0] == kept


def test_request_for_a_topic_contains_rules_keys_and_article():
    """The prompt of the paper does not contain the topic; violations follow their answer."""
    prompt = topic_prompt(ARTICLE, previous="old", faults=("ShortA1 has 12 words",), attempt=2)
    first, answer, complaint = prompt.messages

    assert prompt.id.endswith("/write/2")
    assert [turn.role for turn in prompt.messages] == ["user", "assistant", "user"]
    for text in (TEXT, "fewer than ten words", "Topic: Null Island"):
        assert text in first.content
    for key in ("ShortQ1", "ShortA5", "LongQ", "LongA", "ShortQ5_Entity"):
        assert f'"{key}": "..."' in first.content
    assert answer.content == "old"
    assert "ShortA1 has 12 words" in complaint.content
    article = ARTICLE.model_copy(update={"text": "A {text} of sea. More."})
    (turn,) = topic_prompt(article, prompts="paper", max_characters=17).messages
    assert turn.content.endswith("Reference Article:\nA {text} of sea.\n\n-\n\nGenerate Now:")
    assert "Null Island" not in turn.content
