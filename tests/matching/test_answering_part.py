"""The part of a long answer that answers a question."""

import pytest

from surface_consistency.data.slaq import load_slaq
from surface_consistency.matching import LongAnswer, TopicQuestions, match

SATURN = TopicQuestions(
    [
        "Who discovered Saturn's moon Titan?",
        "In what year was Saturn's moon Titan discovered?",
        "Which spacecraft was the first to orbit Saturn?",
        "Which planet is Saturn, counted from the Sun?",
        "How long does Saturn take to orbit the Sun once?",
    ],
    topic="Saturn",
)


TRANSISTOR = TopicQuestions(
    ["In what year was the first working transistor built?", "Who coined the word?"],
    topic="Transistor",
)
SUMMA = TopicQuestions(["Who wrote the Summa?", "In which language?"], topic="Summa")
TURING = TopicQuestions(
    ["Who proposed the Turing test?", "In which paper was the Turing test proposed?"],
    topic="Turing test",
)


def parts(text, index, slot=None, asked=SATURN):
    return LongAnswer(text, asked).parts(index, slot=slot)


@pytest.mark.parametrize(
    ("asked", "index", "other", "answering"),
    [
        # The sentence on the discovery of Titan does not answer the question on orbits.
        (SATURN, 2, "Saturn's moon Titan was discovered by NASA's Cassini.", ()),
        (SATURN, 0, "", ("Saturn's moon Titan was discovered by NASA's Cassini.",)),
        # A name in another sentence does not make an incorrect answer correct.
        (
            SATURN,
            2,
            "Cassini found Titan.",
            ("The first spacecraft to orbit Saturn was Voyager 1.",),
        ),
        # The clause after "and" can be about another question.
        (
            TRANSISTOR,
            0,
            "It was invented in 1947, and",
            ("the first working transistor was built in 1948.",),
        ),
        # All words of the question are in the topic or in other questions.
        (TURING, 0, "", ("The paper of Alan Turing.",)),
        # "St." does not end a sentence.
        (SUMMA, 0, "", ("It was by St. Thomas Aquinas.", "It shows George W. Bush.")),
        # An answer without words of the question is selected.
        (SATURN, 0, "", ("Huygens.",)),
        (SATURN, 0, "", ()),
    ],
)
def test_parts_contain_only_the_sentences_about_the_question(asked, index, other, answering):
    assert parts(" ".join([other, *answering]).strip(), index, asked=asked) == answering


@pytest.mark.parametrize("before", ["", "Of course!\n"])
@pytest.mark.parametrize("mark", ["{}.", "({})", "- {})", "**{}.**"])
def test_a_numbered_item_answers_the_question_of_its_number(before, mark):
    """The order of the items can differ from that of the questions."""
    items = ("Huygens", "1655", "Cassini", "The sixth", "29 years")
    text = before + "\n".join(f"{mark.format(n)} {item}" for n, item in enumerate(items, 1))

    assert parts(text, 2, slot=3) == ("Cassini",)
    assert parts(text, 0, slot=1) == ("Huygens",)
    assert parts(text, 4, slot=2) == ("1655",)


def test_a_sentence_about_the_question_takes_precedence_over_a_numbered_item():
    """A model can number its items incorrectly."""
    items = ["Saturn's moon Titan was discovered by Cassini."] * 5
    items[3] = "In 2010 Voyager was the first spacecraft to orbit Saturn."
    text = "\n".join(f"{place}. {item}" for place, item in enumerate(items, 1))

    assert parts(text, 2, slot=5) == (items[3],)


@pytest.mark.parametrize("text", ["1. Huygens\n3. Cassini", "1. Huygens\n1. Huygens", "2. b\n1. a"])
def test_incomplete_or_repeated_numbers_are_not_read_as_items(text):
    """Only a list from one to the number of questions is read as items."""
    assert set(parts(text, 2, slot=3)) == set(parts(text, 2))


def test_topic_without_questions_is_rejected():
    with pytest.raises(ValueError, match="contain at least one question, got none"):
        TopicQuestions([])


@pytest.mark.parametrize(
    ("questions", "first_is_distinct"),
    [
        (["Titan?", "Titan's ring?", "Which ocean?", "Which moon?"], True),
        (["Titan?", "Titan's ring?", "Titan's ocean?", "Which moon?"], False),
        (["Titan?", "Titan's ring?", "Which ocean?", "Which moon?", "Which sea?"], True),
        (["Titan?", "Titan's ring?"], False),
        (["Titan?"], True),
    ],
)
def test_a_word_of_most_questions_does_not_distinguish_a_question(questions, first_is_distinct):
    asked = TopicQuestions(questions)

    assert asked.sets_apart(0) is first_is_distinct
    assert asked.sets_apart(len(questions) - 1)


def test_parts_of_reference_long_answers_contain_ninety_percent_of_the_facts():
    """All facts of the reference answers are correct, so that a lost fact is an error."""
    found = lost = 0
    for topic in load_slaq("sample").topics:
        asked = TopicQuestions([one.question for one in topic.questions], topic=topic.topic)
        for place, one in enumerate(topic.questions):
            accepted = [one.answer, one.answer.removeprefix("The ")]
            chosen = LongAnswer(topic.long_answer, asked).parts(place)
            if match(topic.long_answer, accepted, rule="boundary").is_match:
                found += 1
                lost += not any(match(part, accepted, rule="boundary").is_match for part in chosen)

    assert found > 110
    assert lost / found < 0.1
