import csv
import json

import pytest
from surface_consistency_build.builders.slaq.slaq_builder import build
from surface_consistency_build.writers.slaq import WriterSettings, apply_review, write_topics

from surface_consistency.data.slaq import load_slaq, load_slaq_sample, popularity_halves
from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.engine.judging.paper_prompts import pin_prompts
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    RunMismatchError,
)
from surface_consistency.models.runner import FakeRunner

TOPICS = load_slaq_sample().topics[:6]
LOOSE = WriterSettings(min_words=10, min_characters=10)


def article_of(topic, n_more=0):
    text = " ".join([topic.long_answer, *(question.answer for question in topic.questions)])
    return SlaqArticle(
        title=topic.topic,
        category=topic.category,
        text=text + " more" * n_more,
        url=topic.url,
        pageviews=topic.pageviews,
    )


def output_of(topic, **changes):
    """What a good writer answers."""
    pairs = {
        f"Short{kind}{question.index}": text
        for question in topic.questions
        for kind, text in (("Q", question.question), ("A", question.answer))
    }
    flags = {
        f"ShortQ{question.index}_Entity": int(question.is_entity) for question in topic.questions
    }
    return json.dumps(
        pairs | flags | {"LongQ": topic.long_question, "LongA": topic.long_answer} | changes
    )


def writer(answers):
    """A runner that knows a topic's answers by attempt, and a list of what it was asked."""

    def handle(prompt):
        topic_id, _, attempt = prompt.id.split("/")
        listed = answers[topic_id]
        return listed[min(int(attempt), len(listed)) - 1]

    return FakeRunner(handle, name="writer")


def articles(topics=TOPICS):
    return [article_of(topic) for topic in topics]


def test_articles_become_a_data_set(tmp_path):
    """Written, checked, saved, loaded and built: the topics are those that were written."""
    runner = writer({topic.id: [f"Here:\n```json\n{output_of(topic)}\n```"] for topic in TOPICS})

    done = write_topics(articles(), runner, tmp_path / "out", model="fake", settings=LOOSE)

    assert done.topics == TOPICS
    assert done.doubtful == done.unwritten == done.too_short == ()
    assert load_slaq(tmp_path / "out" / "test.csv").topics == TOPICS
    assert len(build(tmp_path / "out" / "test.csv", tmp_path / "cache")) == 6
    assert load_slaq(tmp_path / "out").topics == TOPICS
    assert len(runner.asked) == 6
    assert (tmp_path / "out" / "review.html").is_file()


def test_faults_are_sent_back_once(tmp_path):
    """A broken rule is mended in the second attempt; good topics are not asked again."""
    first, second = TOPICS[:2]
    long = output_of(first, ShortA1="Christiaan Huygens " * 6)
    runner = writer({first.id: [long, output_of(first)], second.id: [output_of(second)]})

    done = write_topics(
        articles((first, second)), runner, tmp_path / "out", model="fake", settings=LOOSE
    )

    assert [topic.id for topic in done.topics] == [first.id, second.id]
    assert runner.asked == [f"{first.id}/write/1", f"{second.id}/write/1", f"{first.id}/write/2"]


def one_line(topic):
    """What a writer answers who is asked in the paper's words."""
    pairs = [
        f"Short{kind}{question.index} : {text}"
        for question in topic.questions
        for kind, text in (("Q", question.question), ("A", question.answer))
    ]
    return ", ".join([*pairs, f"LongQ : {topic.long_question}", f"LongA : {topic.long_answer}"])


def test_the_paper_words_are_sent_once_and_recorded(tmp_path):
    """Its one line is read, no flag is asked for, and a start in other words is refused."""
    settings = WriterSettings(prompts="paper", min_words=10, min_characters=10)
    requests = []

    def handle(prompt):
        requests.append(prompt.messages)
        return next(one_line(topic) for topic in TOPICS if prompt.id.startswith(f"{topic.id}/"))

    runner = FakeRunner(handle, name="writer")
    done = write_topics(articles(), runner, tmp_path, model="fake", settings=settings)

    unflagged = [
        topic.model_copy(
            update={
                "questions": tuple(
                    q.model_copy(update={"is_entity": None}) for q in topic.questions
                )
            }
        )
        for topic in TOPICS
    ]
    assert done.topics == tuple(unflagged)
    assert [len(messages) for messages in requests] == [1] * len(TOPICS)
    assert requests[0][0].content.startswith("Given a *reference article*")
    manifest = json.loads((tmp_path / "writer.manifest.json").read_text())
    assert manifest["settings"]["prompts"] == pin_prompts("paper", "writer")
    with pytest.raises(RunMismatchError, match="prompts"):
        write_topics(articles(), runner, tmp_path, model="fake", settings=LOOSE)


def test_what_contradicts_the_paper_words_is_refused():
    assert WriterSettings(prompts="paper").attempts == 1
    assert WriterSettings(prompts="paper", attempts=3).layout == "one_line"
    with pytest.raises(ValueError, match="`layout` json contradicts `prompts` paper, whose words"):
        WriterSettings(prompts="paper", layout="json")
    with pytest.raises(ValueError, match="prompts must be own or paper"):
        WriterSettings(prompts="mine")


def test_what_stays_broken_goes_to_a_person(tmp_path):
    """Prose, gaps and broken rules never reach the data set, and all stand on the sheet."""
    good, refused, gap, long = TOPICS[:4]
    runner = writer(
        {
            good.id: [output_of(good)],
            refused.id: ["I cannot do that."],
            gap.id: [output_of(gap, ShortA2="")],
            long.id: [output_of(long, ShortQ1="When did the war end?")],
        }
    )

    done = write_topics(articles(TOPICS[:4]), runner, tmp_path, model="fake", settings=LOOSE)
    sheet = (tmp_path / "review.csv").read_text(encoding="utf-8")

    assert [topic.id for topic in done.topics] == [good.id]
    assert [topic.id for topic in done.doubtful] == [long.id]
    assert done.unwritten == (refused.topic, gap.topic)
    assert len(load_slaq(tmp_path / "doubtful.csv").topics) == 1
    assert "ShortA2 is missing" in sheet
    assert "names no subject" in sheet
    assert refused.id in sheet


def test_a_worse_second_answer_is_not_taken(tmp_path):
    topic = TOPICS[0]
    once = output_of(topic, ShortQ1="When did the war end?")
    worse = output_of(topic, ShortQ1="When did the war end?", ShortQ2="Name one moon.", LongQ="x")

    done = write_topics(
        articles((topic,)), writer({topic.id: [once, worse]}), tmp_path, model="f", settings=LOOSE
    )

    assert done.doubtful[0].questions[1].question == topic.questions[1].question


def test_second_start_asks_nothing_twice(tmp_path):
    outputs = {topic.id: [output_of(topic, LongQ="x"), output_of(topic)] for topic in TOPICS}
    first = writer(outputs)
    done = write_topics(articles(), first, tmp_path, model="fake", settings=LOOSE)
    second = writer(outputs)

    again = write_topics(articles(), second, tmp_path, model="fake", settings=LOOSE)

    assert len(first.asked) == 12
    assert second.asked == []
    assert again == done


def test_short_articles_are_not_asked_about(tmp_path):
    """The paper's limit stands unless it is lowered."""
    long = article_of(TOPICS[0], n_more=1000)
    runner = writer({TOPICS[0].id: [output_of(TOPICS[0])]})

    done = write_topics([long, *articles(TOPICS[1:3])], runner, tmp_path, model="fake")

    assert [topic.id for topic in done.topics] == [TOPICS[0].id]
    assert done.too_short == (TOPICS[1].topic, TOPICS[2].topic)
    with pytest.raises(DataError, match=r"more than 1000 words .*2 are shorter"):
        write_topics(articles(TOPICS[1:3]), runner, tmp_path / "other", model="fake")


def test_write_rejects_two_articles_of_one_title(tmp_path):
    with pytest.raises(DataError, match="two articles are called 'Saturn'"):
        write_topics(
            articles((TOPICS[0], TOPICS[0])), writer({}), tmp_path, model="f", settings=LOOSE
        )


def test_write_rejects_other_articles_in_the_same_folder(tmp_path):
    runner = writer({topic.id: [output_of(topic)] for topic in TOPICS})
    write_topics(articles(TOPICS[:2]), runner, tmp_path, model="fake", settings=LOOSE)

    with pytest.raises(RunMismatchError, match="digest"):
        write_topics(articles(TOPICS[:3]), runner, tmp_path, model="fake", settings=LOOSE)


def test_write_rejects_no_attempt():
    with pytest.raises(ValueError, match=r"attempts\n.*greater than or equal to 1"):
        WriterSettings(attempts=0)


@pytest.fixture
def written(tmp_path):
    """Two topics, written and saved with their sheet."""
    runner = writer({topic.id: [output_of(topic)] for topic in TOPICS[:2]})
    write_topics(articles(TOPICS[:2]), runner, tmp_path / "written", model="fake", settings=LOOSE)
    return tmp_path / "written"


def fill(sheet, topic, fact, /, **cells):
    """Write into the sheet as a reviewer does."""
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["topic_id"] == topic.id and row["fact"] == fact:
            row.update(cells)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


def test_sheet_without_a_word_of_the_reviewer_gives_the_topics_back(written, tmp_path):
    done = apply_review(written / "review.csv", articles(), tmp_path / "done")

    assert done.topics == popularity_halves(TOPICS[:2])
    assert (done.refused, done.n_corrected) == ({}, 0)
    assert load_slaq(tmp_path / "done" / "test.csv").topics == load_slaq(written).topics


def test_corrections_take_the_place_of_what_was_written(written, tmp_path):
    topic = TOPICS[0]
    answer = "Ptolemy of Alexandria"
    corrected = {"is_grounded": "no", "corrected_answer": answer}
    fill(written / "review.csv", topic, "1", **corrected)
    fill(written / "review.csv", topic, "long", corrected_answer=f"{topic.long_answer} {answer}")

    done = apply_review(written / "review.csv", articles(), tmp_path / "done")

    # The article does not hold the new answer's words, and the reviewer did not confirm it.
    assert list(done.refused) == [topic.topic]
    fill(written / "review.csv", topic, "1", is_grounded="yes", is_open_domain="Yes")
    again = apply_review(written / "review.csv", articles(), tmp_path / "done")
    assert again.topics[0].questions[0].answer == answer
    assert again.n_corrected == 2


@pytest.mark.parametrize("said", [{"is_grounded": "yes"}, {"is_open_domain": "yes"}, {}])
def test_a_broken_rule_stands_unless_both_marks_confirm_the_row(written, tmp_path, said):
    topic, answer = TOPICS[0], "Ptolemy of Alexandria"
    sheet = written / "review.csv"
    fill(sheet, topic, "long", corrected_answer=f"{topic.long_answer} {answer}")
    fill(sheet, topic, "1", corrected_answer=answer, **said)

    done = apply_review(sheet, articles(), tmp_path / "done")

    assert list(done.refused) == [topic.topic]
    assert "the reviewer refused" not in done.refused[topic.topic]


@pytest.mark.parametrize("kind", ["question", "answer"])
def test_a_correction_of_one_text_takes_the_place_of_a_no(written, tmp_path, kind):
    one = TOPICS[0].questions[0]
    cells = {f"corrected_{kind}": f"{getattr(one, kind)} "}
    fill(written / "review.csv", TOPICS[0], "1", is_open_domain="no", **cells)

    done = apply_review(written / "review.csv", articles(), tmp_path / "done")

    assert done.refused == {}
    assert done.n_corrected == 1


def test_a_no_without_a_correction_leaves_the_topic_out(written, tmp_path):
    fill(written / "review.csv", TOPICS[1], "3", is_open_domain="no")

    done = apply_review(written / "review.csv", articles(), tmp_path / "done")

    assert [topic.id for topic in done.topics] == [TOPICS[0].id]
    assert done.refused == {TOPICS[1].topic: "the reviewer refused row 3"}


@pytest.mark.parametrize(
    ("cells", "error", "says"),
    [
        (
            {"is_grounded": "perhaps"},
            RecordError,
            r"review\.csv.*'is_grounded' is yes, no",
        ),
        ({"fact": "6"}, RecordError, "1 to 5 or long, not '6'"),
        ({"fact": "2"}, RecordError, "row 2 twice"),
        ({"topic_id": "other"}, DataError, "lost its rows"),
    ],
)
def test_damaged_sheets_are_refused(written, tmp_path, cells, error, says):
    fill(written / "review.csv", TOPICS[0], "1", **cells)

    with pytest.raises(error, match=says):
        apply_review(written / "review.csv", articles(), tmp_path / "done")


def test_sheet_of_other_articles_is_refused(written, tmp_path):
    with pytest.raises(DataError, match=f"no article for topic '{TOPICS[1].id}'"):
        apply_review(written / "review.csv", articles(TOPICS[:1]), tmp_path / "done")


def test_sheet_without_a_column_is_refused(written, tmp_path):
    sheet = written / "review.csv"
    text = sheet.read_text("utf-8").replace("corrected_answer", "mine", 1)
    sheet.write_text(text, "utf-8")

    with pytest.raises(ColumnNotFoundError, match="lacks corrected_answer"):
        apply_review(sheet, articles(), tmp_path / "done")
