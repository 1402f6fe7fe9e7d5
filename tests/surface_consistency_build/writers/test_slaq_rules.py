import re
from dataclasses import replace

import pytest
from surface_consistency_build.writers.slaq_articles import clean_article
from surface_consistency_build.writers.slaq_rules import check_topic
from surface_consistency_build.writers.slaq_written import WrittenFact, WrittenTopic

from surface_consistency.data.slaq import load_slaq
from surface_consistency.data.slaq_records import SlaqArticle

LONG = "It took place in North Africa and Sicily and Spain from 264 to 241 BCE."
OTHER = (
    "Discuss the Punic Wars by covering (1) the navy, (2) how long they last, (3) which powers "
    "fought, (4) the renowned Carthaginian general, and (5) what Hannibal crossed Italy with."
)

BREACHES = [
    ({"ShortQ2": None}, "five_pairs", "ShortQ2"),
    ({"ShortA4": None}, "five_pairs", "ShortA4"),
    ({"LongQ": None}, "five_pairs", "LongQ"),
    ({"LongA": None}, "five_pairs", "LongA"),
    ({"ShortA1": LONG}, "short_answer", "ShortA1"),
    ({"ShortQ1": "According to the article, when did it occur?"}, "source_reference", "ShortQ1"),
    ({"ShortQ1": "When does the text say the First Punic War occurred?"}, "source_reference", None),
    ({"ShortQ3": "Which Punic War powers are mentioned in the passage?"}, "source_reference", None),
    ({"ShortQ3": "Which powers fought it as described above?"}, "source_reference", None),
    ({"ShortQ1": "When did the war occur?"}, "subject_named", "ShortQ1"),
    ({"ShortQ1": "When did it first occur?"}, "subject_named", "ShortQ1"),
    ({"ShortQ5": "What did the author of their study find?"}, "subject_named", "ShortQ5"),
    ({"ShortQ4": "How many people died in the battle altogether then?"}, "subject_named", 0),
    ({"ShortQ4": "Name a famous Carthaginian general of the Punic Wars."}, "one_answer", "ShortQ4"),
    ({"ShortQ4": "What is one of the Punic Wars' generals?"}, "one_answer", "ShortQ4"),
    ({"ShortQ4": "Who led the Second Punic War and when did he die?"}, "one_answer", "ShortQ4"),
    ({"ShortQ4": "Who led the Punic Wars? Who won the Punic Wars?"}, "one_answer", "ShortQ4"),
    ({"LongQ": "Tell me about the Punic Wars."}, "long_query_covers", "LongQ"),
    ({"LongQ": OTHER}, "long_query_covers", "LongQ"),
    ({"LongQ": "Discuss them by covering (1) a, (2) b, (3) c, (4) d, (5) e"}, "subject_named", 0),
]


@pytest.mark.parametrize(("changes", "rule", "field"), BREACHES, ids=range(len(BREACHES)))
def test_violation_of_each_rule_is_reported(written, article, changes, rule, field):
    found = check_topic(written(**changes), article)

    assert rule in {fault.rule for fault in found}
    if field:
        assert any(fault.rule == rule and fault.field == field for fault in found)
    assert all(fault.message.startswith(fault.field) for fault in found)


def test_figure_6_violates_no_rule(written, article):
    """The example of the paper is valid."""
    assert check_topic(written(), article) == []


def test_answers_must_occur_in_the_article(written, article):
    late = written(ShortA1="From 263 to 241 BCE", LongA=written().long_answer.replace("264", "263"))
    foreign = written(ShortA3="Athens and Sparta.")

    for one, expected in (
        (late, {("grounded", "ShortA1")}),
        (foreign, {("grounded", "ShortA3"), ("long_answer_covers", "LongA")}),
    ):
        assert {(fault.rule, fault.field) for fault in check_topic(one, article)} == expected


def test_long_answer_must_contain_the_short_ones(written, article):
    text = written().long_answer.replace("43 years", "decades")
    [fault] = check_topic(written(LongA=text), article)

    assert fault.rule == "long_answer_covers"
    assert fault.message == "LongA lacks ShortA2 (no 43)"


@pytest.mark.parametrize(
    "added", [" Rome lost 700 ships.", "\n- Rome won", "\n1. First point\n2. Second point"]
)
def test_long_answer_must_not_add_facts(written, article, added):
    found = check_topic(written(LongA=written().long_answer + added), article)

    assert {fault.rule for fault in found} == {"long_answer_adds"}


def test_there_must_be_five_different_pairs(written, article):
    extra = WrittenFact(question="Who won the Punic Wars?", answer="Rome")
    base = written()
    more = replace(base, facts=(*base.facts, extra))
    fewer = replace(base, facts=base.facts[:4])

    assert check_topic(more, article)[0].message == "ShortQ6 there are 6 pairs; give five"
    assert {fault.field for fault in check_topic(fewer, article)} >= {"ShortQ5", "ShortA5"}
    alike = check_topic(written(ShortQ2="when did the first punic war occur"), article)
    assert ("five_pairs", "ShortQ2 repeats ShortQ1") in {(one.rule, one.message) for one in alike}


def test_short_answers_have_at_most_nine_words(written, article):
    nine = written(ShortA3="Rome and Carthage and Rome and Carthage and Rome")
    ten = written(ShortA3="Rome and Carthage and Rome and Carthage and Rome and")

    assert check_topic(nine, article) == []
    assert [fault.rule for fault in check_topic(ten, article)] == ["short_answer"]


@pytest.mark.parametrize(
    "question",
    [
        "When did the Treaty of Versailles enter into force?",
        "What is the name of the set of zeros of a polynomial?",
        "Who wrote the book about the Second Punic War?",
        "What did Hannibal do after he crossed the Alps?",
        "In what year were the Punic Wars over?",
        "Which text of Polybius describes the Punic Wars?",
        "What does the term 'corvus' denote?",
    ],
)
def test_valid_questions_are_accepted(written, article, question):
    found = check_topic(written(ShortQ1=question), article)

    assert [fault for fault in found if fault.field == "ShortQ1"] == []


def test_every_rule_is_tested():
    tested = {rule for _, rule, _ in BREACHES}

    assert tested | {"grounded", "long_answer_covers", "long_answer_adds"} == set(
        re.findall(r"`(\w+)`\s\(", check_topic.__doc__)
    )


@pytest.mark.parametrize("topic", load_slaq("sample").topics, ids=lambda topic: topic.id)
def test_sample_violates_no_rule(topic):
    """The sample passes the checks of a writer."""
    text = " ".join([topic.long_answer, *(question.answer for question in topic.questions)])
    facts = tuple(WrittenFact(question=q.question, answer=q.answer) for q in topic.questions)
    texts = {"long_question": topic.long_question, "long_answer": topic.long_answer}
    written = WrittenTopic(facts=facts, **texts)
    article = SlaqArticle(title=topic.topic, category=topic.category, text=clean_article(text))

    assert check_topic(written, article) == []
