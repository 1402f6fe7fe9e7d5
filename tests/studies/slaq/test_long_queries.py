import itertools

import pytest
from hypothesis import given, strategies as st

from surface_consistency.studies.slaq.queries import parse_long_query

CLAUSES = ("when it began", "how long it took", "who fought", "who led", "what was crossed")
# Figure 6 of the paper (arXiv 2510.11218), line breaks included.
FIGURE_6 = """Discuss the Punic Wars by covering (1) when the First Punic War occurred,
            (2) how long the Punic Wars lasted, (3) which two powers fought,
            (4) who the renowned Carthaginian general in the Second Punic War was,
            and (5) what he famously crossed Italy with."""

LISTS = {
    "(1)": "Discuss it by covering (1) {}, (2) {}, (3) {}, (4) {}, and (5) {}.",
    "1)": "Discuss it by covering 1) {}, 2) {}, 3) {}, 4) {} and 5) {}.",
    "1.": "Discuss it by covering: 1. {} 2. {} 3. {} 4. {} 5. {}.",
    "1:": "Discuss it: 1: {}; 2: {}; 3: {}; 4: {}; 5: {}",
    "(a)": "Discuss it by covering (a) {}, (b) {}, (c) {}, (d) {}, and (e) {}.",
    "a)": "Discuss it by covering a) {}, b) {}, c) {}, d) {}, and e) {}.",
    "(i)": "Discuss it by covering (i) {}, (ii) {}, (iii) {}, (iv) {}, and (v) {}.",
    "lines": "Discuss it.\n1. {}\n2. {}\n3. {}\n4. {}\n5. {}",
    "indented": "Discuss it:\n   (1) {}\n   (2) {}\n\n   (3) {}\n   (4) {}\n   (5) {}",
    "no space": "Discuss it:(1){},(2){},(3){},(4){},(5){}.",
    "as well as": "Discuss it by covering (1) {}; (2) {}; (3) {}; (4) {}; as well as (5) {}?",
    "and finally": "Can you say (1) {}, (2) {}, (3) {}, (4) {}, and finally, (5) {}?",
    "quoted": '"Discuss it by covering (1) {}, (2) {}, (3) {}, (4) {}, and (5) {}."',
}


@pytest.mark.parametrize("name", LISTS)
def test_parse_long_query_finds_the_clauses_of_each_list_style(name):
    query = parse_long_query(LISTS[name].format(*CLAUSES))

    assert query.clauses == CLAUSES


def test_query_of_figure_6_is_parsed_and_rendered_in_another_order():
    query = parse_long_query(FIGURE_6)

    assert query.lead == "Discuss the Punic Wars by covering"
    assert query.render() == " ".join(FIGURE_6.split())
    assert query.dependent == (5,)
    assert query.render([5, 1, 2, 3, 4]) == (
        "Discuss the Punic Wars by covering (1) what he famously crossed Italy with, (2) when the "
        "First Punic War occurred, (3) how long the Punic Wars lasted, (4) which two powers "
        "fought, and (5) who the renowned Carthaginian general in the Second Punic War was."
    )


@pytest.mark.parametrize(
    ("text", "order", "rendered"),
    [
        # Clauses with commas are separated by semicolons.
        (
            "Discuss (1) a, b, (2) c, (3) d, (4) e, and (5) f.",
            [5, 4, 3, 2, 1],
            "Discuss (1) f; (2) e; (3) d; (4) c; and (5) a, b.",
        ),
        # Questions keep their question marks.
        (
            "Answer: (1) Who? (2) Why? (3) When? (4) How? (5) What?",
            [2, 1, 3, 4, 5],
            "Answer: (1) Why? (2) Who? (3) When? (4) How? (5) What?",
        ),
        # Sentences after the list stay at the end.
        (
            "Discuss it by (1) a, (2) b, (3) c, (4) d, and (5) who led Rome? Be concise.",
            [5, 1, 2, 3, 4],
            "Discuss it by (1) who led Rome, (2) a, (3) b, (4) c, and (5) d? Be concise.",
        ),
    ],
)
def test_render_writes_clauses_in_another_order(text, order, rendered):
    assert parse_long_query(text).render(order) == rendered


def test_brackets_and_abbreviations_in_clauses_are_not_markers():
    """O(2) is not a marker, and "Mt." does not end a sentence."""
    query = parse_long_query(
        "Explain O(2): (1) what O(2) is; (2) SO(3); (3) version 1.5 of it; (4) St. Paul; (5) Mt. X."
    )

    assert query.lead == "Explain O(2):"
    assert query.clauses == ("what O(2) is", "SO(3)", "version 1.5 of it", "St. Paul", "Mt. X")


@pytest.mark.parametrize(
    "text",
    [
        "Tell me about the Punic Wars.",
        "Discuss (1) a, (2) b, (3) c, and (4) d.",
        "Discuss (1) a, (2) b, (3) c, (4) d, (5) e, and (6) f.",
        "Discuss (1) a, (2) b, (2) c, (4) d, and (5) e.",
        "Discuss (2) a, (1) b, (3) c, (4) d, and (5) e.",
        "Discuss (1) a (1) or a (2) b, (3) c, (4) d, and (5) e.",
        "Discuss (1) , (2) b, (3) c, (4) d, and (5) e.",
        "",
    ],
)
def test_parse_returns_none_for_queries_without_five_marked_clauses(text):
    assert parse_long_query(text) is None


@given(
    clauses=st.lists(
        st.text("abc, z", min_size=1, max_size=12).filter(lambda text: text.strip(" ,;")),
        min_size=5,
        max_size=5,
    ),
    order=st.permutations([1, 2, 3, 4, 5]),
    mark=st.sampled_from([".", "?", ""]),
)
def test_render_is_undone_by_the_inverse_order(clauses, order, mark):
    """A rendered query is parsed again, and the inverse order gives the original query."""
    body = "; ".join(
        f"({k}) {' '.join(text.strip(' ,;').split())}" for k, text in enumerate(clauses, 1)
    )
    query = parse_long_query(f"Discuss it by covering {body}{mark}")
    inverse = [order.index(k) + 1 for k in (1, 2, 3, 4, 5)]

    again = parse_long_query(query.render(order))

    assert again.clauses == tuple(query.clauses[k - 1] for k in order)
    assert again.render(inverse) == query.render()


def test_every_order_of_a_query_contains_every_clause():
    query = parse_long_query(FIGURE_6)

    texts = {query.render(order) for order in itertools.permutations((1, 2, 3, 4, 5))}

    assert len(texts) == 120
    assert all(clause in text for text in texts for clause in query.clauses)
    with pytest.raises(ValueError, match="1 to 5 once each"):
        query.render([1, 2, 3, 4, 4])
