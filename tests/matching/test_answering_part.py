"""Which part of a long answer is taken for the answer to a question."""

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
        # Cassini, of which nothing but the discovery of Titan is said, orbits nothing.
        (SATURN, 2, "Saturn's moon Titan was discovered by NASA's Cassini.", ()),
        (SATURN, 0, "", ("Saturn's moon Titan was discovered by NASA's Cassini.",)),
        # A wrong answer is not made right by a name that stands near.
        (
            SATURN,
            2,
            "Cassini found Titan.",
            ("The first spacecraft to orbit Saturn was Voyager 1.",),
        ),
        # What is said after "and" need not be said of the same.
        (
            TRANSISTOR,
            0,
            "It was invented in 1947, and",
            ("the first working transistor was built in 1948.",),
        ),
        # Where the topic and the others have all its words, no clause can be told to be another's.
        (TURING, 0, "", ("The paper of Alan Turing.",)),
        # The name after "St." stands in the same part.
        (SUMMA, 0, "", ("It was by St. Thomas Aquinas.", "It shows George W. Bush.")),
        # An answer without words of the question is kept.
        (SATURN, 0, "", ("Huygens.",)),
        (SATURN, 0, "", ()),
    ],
)
def test_the_part_that_speaks_of_the_question_is_judged_and_no_other(
    asked, index, other, answering
):
    assert parts(" ".join([other, *answering]).strip(), index, asked=asked) == answering


@pytest.mark.parametrize("before", ["", "Of course!\n"])
@pytest.mark.parametrize("mark", ["{}.", "({})", "- {})", "**{}.**"])
def test_a_numbered_item_answers_the_question_of_its_number(before, mark):
    """Also in another order than that of the query."""
    items = ("Huygens", "1655", "Cassini", "The sixth", "29 years")
    text = before + "\n".join(f"{mark.format(n)} {item}" for n, item in enumerate(items, 1))

    assert parts(text, 2, slot=3) == ("Cassini",)
    assert parts(text, 0, slot=1) == ("Huygens",)
    assert parts(text, 4, slot=2) == ("1655",)


def test_an_item_of_another_question_gives_way_to_the_sentence_that_answers():
    """A model that numbers its items wrongly still says what it says."""
    items = ["Saturn's moon Titan was discovered by Cassini."] * 5
    items[3] = "In 2010 Voyager was the first spacecraft to orbit Saturn."
    text = "\n".join(f"{place}. {item}" for place, item in enumerate(items, 1))

    assert parts(text, 2, slot=5) == (items[3],)


@pytest.mark.parametrize("text", ["1. Huygens\n3. Cassini", "1. Huygens\n1. Huygens", "2. b\n1. a"])
def test_other_numbers_are_no_items(text):
    """Only a list from one to the number of questions is the query's."""
    assert set(parts(text, 2, slot=3)) == set(parts(text, 2))


def test_at_least_one_question_is_asked():
    with pytest.raises(ValueError, match="contain at least one question, got none"):
        TopicQuestions([])


@pytest.mark.parametrize(
    ("questions", "first_is_apart"),
    [
        (["Titan?", "Titan's ring?", "Which ocean?", "Which moon?"], True),
        (["Titan?", "Titan's ring?", "Titan's ocean?", "Which moon?"], False),
        (["Titan?", "Titan's ring?", "Which ocean?", "Which moon?", "Which sea?"], True),
        (["Titan?", "Titan's ring?"], False),
        (["Titan?"], True),
    ],
)
def test_a_word_of_more_than_half_of_the_questions_sets_none_apart(questions, first_is_apart):
    asked = TopicQuestions(questions)

    assert asked.sets_apart(0) is first_is_apart
    assert asked.sets_apart(len(questions) - 1)


def test_the_references_own_long_answers_keep_nine_facts_of_ten():
    """Dense prose in which every fact is right shows what choosing a part costs."""
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
