import json
from dataclasses import replace

import pytest
from surface_consistency_build.writers.slaq_written import (
    WrittenFact,
    WrittenTopic,
    parse_written,
    topic_from_written,
)

from surface_consistency.errors import RecordError

# Texts that naive splitting would read incorrectly: commas, colons, quotes, decimals, "NA".
FACTS = [
    ('Who, in 1801, saw "Ceres" first?', "Giuseppe Piazzi, an astronomer"),
    ("What is NaN: a value or a number?", "A value"),
    ("What does R print for a missing value?", "NA"),
    ("What is 1,000 divided by 8?", "125.0"),
    ("Who wrote 'A: B, or C'?", "O'Brien"),
]
LONG_Q = "Discuss it by covering (1) who, (2) what, (3) R, (4) 1,000, and (5) 'A: B'."
LONG_A = 'Piazzi saw "Ceres"; R prints NA, and 125.0 is right.'
LISTED = [{"question": question, "answer": answer} for question, answer in FACTS]
LONG_TEXTS = {"long_question": LONG_Q, "long_answer": LONG_A}
EXPECTED = WrittenTopic(facts=tuple(WrittenFact(**fact) for fact in LISTED), **LONG_TEXTS)
NUMBERED = enumerate(FACTS, 1)
PAIRS = [(f"Short{'QA'[n]}{k}", fact[n]) for k, fact in NUMBERED for n in range(2)]
PAIRS += [("LongQ", LONG_Q), ("LongA", LONG_A)]
OBJECT = dict(PAIRS)
ONE_LINE = ", ".join(f"{key} : {text}" for key, text in PAIRS)
LINES = "\n".join(f"{key}: {text}" for key, text in PAIRS)

OUTPUTS = {
    "one line": ONE_LINE,
    "one line in quotes": f'"{ONE_LINE}"',
    "one line, template's spacing": ONE_LINE.replace(", LongA", ",LongA"),
    "one line between remarks": f"Here it is.\n\n{ONE_LINE}\n\nLet me know if you need more!",
    "lines": LINES,
    "lines, carriage returns": LINES.replace("\n", "\r\n"),
    "lines, blank between": LINES.replace("\n", "\n\n"),
    "lines in quotes": "\n".join(f"{key}: “{text}”" for key, text in PAIRS),
    "lines with trailing commas": "\n".join(f"{key}: {text}," for key, text in PAIRS),
    "bold keys": "\n".join(f"**{key}:** {text}" for key, text in PAIRS),
    "bold keys, colon outside": "\n".join(f"- **{key}**: {text}" for key, text in PAIRS),
    "numbered": "\n".join(f"{n}. {key}: {text}" for n, (key, text) in enumerate(PAIRS, 1)),
    "equals": "\n".join(f"{key} = {text}" for key, text in PAIRS),
    "dash": "\n".join(f"{key} - {text}" for key, text in PAIRS),
    "spelled out": LINES.replace("ShortQ", "Short Question ").replace("ShortA", "Short Answer "),
    "snake case": LINES.replace("ShortQ", "short_q_").replace("LongA", "long_answer"),
    "only letters": LINES.replace("Short", ""),
    "shouted": "\n".join(f"{key.upper()}: {text}" for key, text in PAIRS),
    "fenced": f"```\n{LINES}\n```",
    "fenced text": f"Sure:\n```text\n{ONE_LINE}\n```\nDone.",
    "json": json.dumps(OBJECT),
    "json, indented": json.dumps(OBJECT, indent=2, ensure_ascii=False),
    "json, fenced": f"Sure!\n```json\n{json.dumps(OBJECT, indent=1)}\n```\nHope this helps.",
    "json, in a list": json.dumps([OBJECT]),
    "json, nested": json.dumps({"result": OBJECT}),
    "json, trailing comma": json.dumps(OBJECT, indent=1)[:-2] + ",\n}",
    "json, cut off": json.dumps(OBJECT, indent=1)[:-2],
    "json, list of facts": json.dumps({"questions": LISTED} | LONG_TEXTS),
    "python": repr(OBJECT),
    "reasoning before": f"<think>ShortQ6: draft, ShortA6: {{draft}}</think>\n{LINES}",
    "draft before": LINES.replace("Piazzi", "Gauss") + "\n\nFinal version:\n\n" + LINES,
    "template before": "ShortQ1 : <value>, ShortA1 : <value>\n\n" + LINES,
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_parse_written_reads_all_formats_of_output(name):
    assert parse_written(OUTPUTS[name]) == EXPECTED


def test_parse_written_reads_quoted_cells_and_a_sixth_pair():
    text = '"ShortQ1 : Who?","ShortA1 : Piazzi, once","LongQ : Discuss it","LongA : He did"'
    written = parse_written(text)

    assert written.facts == (WrittenFact(question="Who?", answer="Piazzi, once"),)
    assert (written.long_question, written.long_answer) == ("Discuss it", "He did")
    assert len(parse_written(LINES + "\nShortQ6: more?\nShortA6: yes").facts) == 6


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("ShortQ1: a\nShortA1: b\nShortQ1_Entity: 1\nShortQ2: c\nShortQ2_Entity: 0", [True, False]),
        ('{"ShortQ1": "a", "ShortQ1_Entity": 1, "ShortQ2": "b", "ShortQ2_Entity": "0"}', [1, 0]),
        ('{"ShortQ1": "a", "ShortQ1_Entity": "maybe", "ShortQ2": "b"}', [None, None]),
        ('{"ShortQ1": "a", "ShortQ1_Entity": 2, "ShortQ2": "b", "ShortQ2_Entity": -1}', [None] * 2),
        ('{"facts": [{"question": "a", "answer": "b", "entity": true}]}', [True]),
    ],
)
def test_parse_written_reads_entity_flags(text, flags):
    assert [fact.is_entity for fact in parse_written(text).facts] == flags


def test_parse_written_keeps_missing_texts_as_none():
    """Later facts keep their numbers."""
    written = parse_written("ShortQ1: a\nShortA1: \nShortQ3: c\nShortA3: <value>\nLongA: x")

    assert [fact.question for fact in written.facts] == ["a", None, "c"]
    assert [fact.answer for fact in written.facts] == [None] * 3
    assert written.long_question is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "I cannot help with that.", "Der Artikel handelt von Rom.", "{}", "[1, 0, 1]"),
        *('{"error": "too long"}', "{" * 5000),
        "ShortQ1 : <value>, ShortA1 : <value>, LongQ : <value>,LongA : <value>",
    ],
)
def test_parse_written_rejects_text_without_questions(text):
    with pytest.raises(RecordError, match="contains no ShortQ1"):
        parse_written(text)


def test_topic_combines_the_texts_with_the_article(written, article):
    topic = topic_from_written(written(), article)

    assert topic.id == article.topic_id
    assert topic.pageviews == 12
    assert [question.index for question in topic.questions] == [1, 2, 3, 4, 5]
    for gap in ("ShortQ2", "ShortA5", "LongA"):
        with pytest.raises(RecordError, match="The Punic Wars"):
            topic_from_written(written(**{gap: None}), article)
    more = replace(written(), facts=(*written().facts, WrittenFact(question="a?", answer="b")))
    with pytest.raises(RecordError, match="got 5 of 6 facts"):
        topic_from_written(more, article)
