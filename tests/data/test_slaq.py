import dataclasses
import json

import datasets
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from surface_consistency.data import slaq as slaq_module
from surface_consistency.data.slaq import load_slaq
from surface_consistency.data.slaq_rows import SlaqRow, to_slaq_rows, write_slaq_csv
from surface_consistency.data.sources import open_source
from surface_consistency.engine.features import read_parquet, to_parquet
from surface_consistency.errors import ColumnNotFoundError, RecordError, SurfaceConsistencyWarning

MISSING_WORDS = ["NA", "N/A", "null", "NULL", "None", "nan", "NaN", "#N/A", "-nan", "<NA>"]


def test_load_slaq_reads_the_example_of_figure_6(write_csv, row):
    data = load_slaq(write_csv([row()]))
    topic = data.topics[0]

    assert topic.topic == "The Punic Wars"
    assert topic.pageviews == 1_234_567
    assert topic.popularity is None
    assert [question.is_entity for question in topic.questions] == [True, False, True, True, True]
    assert topic.questions[1].answer == "They lasted a total of 43 years."
    assert topic.questions[1].id == f"{topic.id}/2"
    assert data.source.n_questions == 5


@pytest.mark.parametrize("name", MISSING_WORDS)
def test_names_that_look_like_missing_values_are_kept(write_csv, row, name):
    path = write_csv([row(name, ShortA1=name, ShortQ2=name, Category=name, LongA=name)])
    topic = load_slaq(path).topics[0]

    assert topic.topic == topic.category == topic.long_answer == name
    assert topic.questions[0].answer == topic.questions[1].question == name


def test_rows_of_readers_with_na_rules_raise_an_error_with_a_remedy(write_csv, row, tmp_path):
    """Rows of `load_dataset` have lost the names, so the message has a remedy."""
    path = write_csv([row("NA"), row("B")])
    lossy = datasets.load_dataset("csv", data_files=str(path), cache_dir=str(tmp_path / "cache"))

    with pytest.raises(RecordError, match="keep_default_na=False"):
        load_slaq(lossy["train"])


def test_every_format_gives_the_same_topics(write_csv, row, tmp_path):
    """CSV, TSV, JSON lines, a Parquet folder and its `load_dataset` give the same data."""
    rows = [row("NaN", ShortA1="null", ShortA2='a, "b"\nc'), row("Sodium", ShortA1="NA")]
    data = load_slaq(write_csv(rows))
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    folder = tmp_path / "published"
    folder.mkdir()
    to_parquet(folder / "test.parquet", to_slaq_rows(data.topics), SlaqRow)

    loaded = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "cache"))
    others = [tmp_path / "rows.jsonl", rows, folder, folder / "test.parquet", loaded]

    assert loaded[0]["Topic"] == "NaN"
    assert loaded[1]["ShortA1"] == "NA"
    for other in others:
        assert load_slaq(other).topics == data.topics
        assert load_slaq(other).source.digest == data.source.digest
    assert [*read_parquet(folder / "test.parquet", SlaqRow)] == [*to_slaq_rows(data.topics)]


def test_written_csv_is_read_as_the_same_data(write_csv, row, tmp_path):
    """Quotes, commas, line breaks and empty cells are kept; a second copy is identical."""
    rows = [
        row("NaN", ShortA1='He said "no", twice', LongA="line\nbreak", Pageviews="", URL=""),
        row("Null", ShortQ1_Entity="", ShortQ2_Entity="true"),
    ]
    data = load_slaq(write_csv(rows))
    write_slaq_csv(tmp_path / "again.csv", data.topics)
    again = load_slaq(tmp_path / "again.csv")
    write_slaq_csv(tmp_path / "third.csv", again.topics)

    assert again.topics == data.topics
    assert (tmp_path / "third.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()


@pytest.mark.parametrize(("n", "has_note"), [(600, False), (601, False), (599, True)])
def test_hub_release_of_another_size_is_reported(write_csv, row, monkeypatch, recwarn, n, has_note):
    """The paper has 600 rows, the hub reported 601; any other number is another release."""
    path = write_csv([row(f"Topic {k}") for k in range(n)])
    opened = dataclasses.replace(open_source(path), id="WueNLP/SLAQ", revision="f" * 40)
    monkeypatch.setattr(slaq_module, "open_source", lambda *_, **__: opened)

    data = load_slaq()

    assert data.source.revision == "f" * 40
    assert data.source.n_questions == len(data.rows) == 5 * n
    assert [str(one.message)[:20] for one in recwarn] == (
        [f"WueNLP/SLAQ has {n} "] if has_note else []
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            ({column: cell}, rf"test\.csv:3: column '{column}' is empty")
            for column, cell in (("ShortQ5", ""), ("ShortA3", "  "), ("LongQ", ""), ("Topic", ""))
        ),
        ({"ShortQ2_Entity": "2"}, r"test\.csv:3: .*'ShortQ2_Entity': expected 0 or 1, got '2'"),
        ({"ShortQ2_Entity": "yes"}, r"test\.csv:3: column 'ShortQ2_Entity': expected 0 or 1"),
        ({"Pageviews": "1.2M"}, r"test\.csv:3: column 'Pageviews': expected an integer"),
        ({"Pageviews": "-5"}, r"test\.csv:3: column 'Pageviews': expected an integer"),
        ({"Topic": "A"}, r"test\.csv:3: topic 'A' is also on .*test\.csv:2, with"),
    ],
)
def test_malformed_rows_raise_an_error_with_the_line(write_csv, row, changes, message):
    path = write_csv([row("A"), row("B") | {"LongA": "other"} | changes, row("C")])

    with pytest.raises(RecordError, match=message):
        load_slaq(path)


def test_error_lists_all_malformed_rows(write_csv, row):
    """Lines are counted through quoted line breaks."""
    path = write_csv([row("A", ShortA1=""), row("B", LongA="one\ntwo\nthree"), row("C", LongA="")])

    with pytest.raises(RecordError, match=r"2 rows of .*test\.csv:2: .*test\.csv:6: .*Correct"):
        load_slaq(path)


def test_repeated_rows_count_once(write_csv, row):
    with pytest.warns(SurfaceConsistencyWarning, match="repeats 1 rows exactly"):
        data = load_slaq(write_csv([row("A"), row("B"), row("A")]))

    assert len(data.topics) == 2


def test_html_is_kept_with_a_warning_or_removed_on_request(write_csv, row):
    path = write_csv([row("A", ShortA1="H<sub>2</sub>O"), row("B"), row("C", ShortQ2="AT&amp;T?")])

    with pytest.warns(SurfaceConsistencyWarning, match=r"2 rows of .*HTML .*:2; .*:4.*clean_html"):
        data = load_slaq(path)
    assert data.rows["answer"].iloc[0] == "H<sub>2</sub>O"

    changed = row("A", ShortA1="<b>H<sub>2</sub>O</b>", ShortQ2="AT&amp;T?", ShortA3="<b>")
    facts = load_slaq([changed], clean_html=True).rows
    assert facts["answer"].tolist()[0:3:2] == ["H2O", "<b>"]
    assert facts["question"].iloc[1] == "AT&T?"


def test_missing_column_raises_an_error(write_csv, row):
    columns = [name for name in row() if name != "ShortQ5"]

    with pytest.raises(ColumnNotFoundError, match="'question5' under ShortQ5"):
        load_slaq(write_csv([row()], columns=columns))


def test_optional_columns_can_be_missing_and_columns_can_be_named(write_csv, row):
    needed = [name for name in row() if name not in {"URL", "Pageviews"} and "Entity" not in name]
    facts = load_slaq(write_csv([row()], columns=needed)).rows
    assert facts[["url", "pageviews", "is_entity"]].isna().all(axis=None)

    rows = [{("Question" if name == "ShortQ1" else name): cell for name, cell in row().items()}]
    data = load_slaq(rows, columns={"question1": "Question"})
    assert data.rows["question"].iloc[0].startswith("When did")


def test_digest_covers_questions_and_answers_but_not_their_order(row):
    first = load_slaq([row("A"), row("B")]).source.digest

    assert load_slaq([row("B"), row("A")]).source.digest == first
    assert load_slaq([row("A"), row("B", Pageviews=3)]).source.digest == first
    for column in ("ShortQ3", "ShortA3", "LongQ", "LongA"):
        assert load_slaq([row("A"), row("B", **{column: "x"})]).source.digest != first


def test_select_keeps_the_popularity_in_all_topics(row):
    rows = [row(str(k), Category=f"C{k % 2}", Pageviews=k) for k in range(8)]
    data = load_slaq(rows)

    part = data.select(categories="C1", popularity="popular")

    assert [topic.topic for topic in part.topics] == ["5", "7"]
    assert all(topic.popularity == "popular" for topic in part.topics)
    assert part.source.digest != data.source.digest
    assert len(data.select(limit=3).rows) == 15


def test_limit_spreads_over_categories(row):
    """One topic per category in turn, in the order of the source."""
    rows = [row(f"{name}{k}", Category=name) for name in "ABC" for k in range(3 + (name == "B"))]
    data = load_slaq(rows)

    def topics(limit):
        return [topic.topic for topic in data.select(limit=limit).topics]

    assert topics(2) == ["A0", "B0"]
    assert topics(5) == ["A0", "A1", "B0", "B1", "C0"]
    assert topics(10) == topics(99) == [topic.topic for topic in data.topics]
    assert [t.topic for t in data.select(categories=["B", "C"], limit=1).topics] == ["B0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categories": "C9"}, "categories must be among"),
        ({"categories": ()}, "got none"),
        ({"limit": 0}, "limit counts topics"),
        ({"popularity": "popular"}, "no topic of these"),
    ],
)
def test_select_rejects_unknown_categories_limits_and_halves(row, options, message):
    with pytest.raises(ValueError, match=message):
        load_slaq([row("A", Pageviews="")]).select(**options)


def halves(row, *topics):
    """Return the half of each topic, given as name, category and page views."""
    rows = [row(name, Category=category, Pageviews=views) for name, category, views in topics]
    facts = load_slaq(rows).rows
    halves = facts.drop_duplicates("topic_id")["popularity"].astype(object)
    return halves.where(halves.notna(), None).tolist()


def test_popularity_of_middle_topics_ties_and_unknown_views(row):
    topics = [("a", "X", 3), ("b", "X", 2), ("c", "X", 1), ("d", "X", "")]

    assert halves(row, *topics) == ["popular", "obscure", "obscure", None]
    # Equal views are ordered by topic id, such as "a-ca978112" before "b-3e23e816".
    assert halves(row, ("b", "X", 4), ("a", "X", 4)) == ["obscure", "popular"]
    assert halves(row, ("a", "X", 4)) == [None]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from("XYZ"), st.integers(0, 50)), min_size=1, max_size=30))
def test_halves_differ_in_size_by_at_most_one_and_are_ordered_by_views(row, drawn):
    """No obscure topic has more views than a popular one of its category."""
    topics = [(f"t{k:02}", category, views) for k, (category, views) in enumerate(drawn)]
    done = list(zip(drawn, halves(row, *topics), strict=True))

    for category in "XYZ":
        group = [(half, views) for (label, views), half in done if label == category]
        popular, obscure = (
            [views for half, views in group if half == name] for name in ("popular", "obscure")
        )
        if len(group) > 1:
            assert len(obscure) - len(popular) in (0, 1)
            assert min(popular) >= max(obscure)
