import json

import pytest

from dataset_builders.slaq.slaq_builder import build
from dataset_builders.slaq.write_topics import WriterSettings, write_topics
from surface_consistency.data.slaq import load_slaq, load_slaq_sample
from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.inference.fake import FakeRunner
from surface_consistency.schemas.slaq import SlaqArticle

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


def test_write_rejects_no_attempt(tmp_path):
    with pytest.raises(ValueError, match="attempts must be at least 1"):
        write_topics(
            articles(), writer({}), tmp_path, model="f", settings=WriterSettings(attempts=0)
        )
