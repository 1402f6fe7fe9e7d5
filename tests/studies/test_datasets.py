"""Data sets by name, and scores of predictions made elsewhere."""

import json
from pathlib import Path

import datasets
import pandas as pd
import pyarrow as pa
import pytest

import surface_consistency as sc
from surface_consistency.data.sources import SAMPLES
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    SourceNotFoundError,
    UnscoredWarning,
)

SAMPLES = Path(SAMPLES / "redirectqa").parent
AUDIT_SAMPLE = SAMPLES.parents[1] / "studies" / "audit" / "sample"
BUNDLED = ["redirectqa", "slaq", "popqa", "lmlm-audit"]


@pytest.fixture(scope="module", params=BUNDLED)
def data(request):
    return sc.load_dataset(request.param, source="sample")


@pytest.fixture(scope="module")
def redirectqa():
    return sc.load_dataset("redirectqa", source="sample")


@pytest.fixture(scope="module")
def audit():
    return sc.load_dataset("lmlm-audit", source="sample")


@pytest.fixture(scope="module")
def canonical_only(redirectqa):
    """Correct under canonical names, incorrect under redirects."""
    return {
        row["id"]: row["references"][0] if row["form"].endswith("| canonical") else "?"
        for row in redirectqa.to_dataset()
    }


def test_list_datasets_names_hub_paper_licence_and_sample():
    table = sc.list_datasets().set_index("name")

    assert list(table.index[table["has_sample"]]) == BUNDLED
    assert table.loc["redirectqa", ["hub", "paper", "licence", "rows"]].tolist() == [
        *("naist-nlp/RedirectQA", "arXiv 2604.21882", "CC BY-SA 4.0", 61_120)
    ]
    assert table.loc["pararel", "licence"] == "MIT"
    assert pd.isna(table.loc["pararel", "rows"])
    assert table["description"].map(bool).all()


def test_bundled_rows_are_one_per_prompt(data):
    frame = data.to_pandas()

    assert len(data) == len(frame) == len(data.to_dataset())
    assert list(frame.columns[:5]) == ["id", "item", "form", "question", "references"]
    assert frame["id"].is_unique
    assert not frame.duplicated(["item", "form"]).any()
    assert frame["references"].map(lambda own: isinstance(own, list) and own != []).all()
    assert repr(data).startswith(f"<FactDataset {data.name!r} from {data.source.id!r}: ")
    assert data.source.is_sample


@pytest.mark.parametrize(
    ("name", "n_prompts", "n_items"),
    [("redirectqa", 584, 96), ("slaq", 240, 144), ("popqa", 96, 96), ("lmlm-audit", 3_240, 180)],
)
def test_bundled_samples_have_the_sizes_of_their_cards(name, n_prompts, n_items):
    data = sc.load_dataset(name, source="sample")

    assert (len(data), data.to_pandas()["item"].nunique()) == (n_prompts, n_items)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", ["redirectqa", "slaq", "popqa"])
def test_columns_of_the_source_equal_those_of_datasets_load_dataset(tmp_path, name, streaming):
    """All columns, values and types; "NA", "NaN" and years remain text, lists remain lists."""
    folder = datasets.load_dataset(
        str(SAMPLES / name), split="test", cache_dir=str(tmp_path), streaming=streaming
    )
    data = sc.load_dataset(name, source="sample")
    ours = data.to_dataset()
    renamed = {"id": "source_id"} if name == "popqa" else {}

    of_row = data.prompts.drop_duplicates("source_row").index
    own = [{key: ours[row][renamed.get(key, key)] for key in folder.features} for row in of_row]

    assert own == list(folder)
    types = {key: ours.features[renamed.get(key, key)] for key in folder.features}
    assert types == dict(folder.features)


def test_prompts_of_the_audit_sample_are_a_folder_that_datasets_reads(tmp_path):
    """All topologies; rows without aliases have None, and an empty list in the records."""
    folder = datasets.load_dataset(str(AUDIT_SAMPLE), split="test", cache_dir=str(tmp_path))
    topologies = ("base", "alias", "noise", "collision")
    frame = sc.load_dataset("lmlm-audit", source="sample", topologies=topologies).to_pandas()

    shown = ["prompt_id", "fact_id", "gold_object", "prompt_text", "object_aliases"]
    asked = frame.loc[frame["state"] == "FULL", shown].itertuples(index=False)
    stored = ([*row.values()] for row in folder.select_columns(shown).with_format(None))

    ours = sorted((*cells, sorted(aliases)) for *cells, aliases in asked)
    assert ours == sorted((*cells, sorted(aliases or [])) for *cells, aliases in stored)


@pytest.mark.parametrize("name", ["slaq_answers", "forms"])
def test_other_bundled_folders_are_read_by_datasets(tmp_path, name):
    rows = datasets.load_dataset(str(SAMPLES / name), split="test", cache_dir=str(tmp_path))

    assert all(isinstance(row[rows.column_names[0]], str) for row in rows)


@pytest.mark.parametrize(
    ("name", "folder"), [("redirectqa", SAMPLES / "redirectqa"), ("slaq", SAMPLES / "slaq")]
)
def test_every_kind_of_source_gives_the_same_rows(tmp_path, name, folder):
    expected = sc.load_dataset(name, source="sample")
    rows = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path))
    rows.to_parquet(tmp_path / "rows.parquet")

    for source in (folder, tmp_path / "rows.parquet", rows, rows.to_pandas(), list(rows)):
        loaded = sc.load_dataset(name, source=source)
        pd.testing.assert_frame_equal(loaded.to_pandas(), expected.to_pandas())
        assert loaded.source.digest == expected.source.digest
    assert len(sc.load_dataset(name, source={"train": rows}, split="train")) == len(expected)


def test_rows_and_columns_equal_those_of_the_dataset(redirectqa):
    dataset = redirectqa.to_dataset()

    assert redirectqa[3] == dataset[3]
    assert redirectqa["id"][:5] == dataset["id"][:5]
    assert [*redirectqa] == [*dataset]


def test_hub_id_is_a_name(redirectqa):
    loaded = sc.load_dataset("naist-nlp/RedirectQA", source=SAMPLES / "redirectqa")

    assert loaded.name == "redirectqa"
    assert loaded.source.digest == redirectqa.source.digest


def test_long_query_of_slaq_lists_its_answers_in_the_order_of_the_query():
    frame = sc.load_dataset("slaq", source="sample").to_pandas().set_index("id")

    long = frame.loc["saturn-e6e970bb/long/0"]
    assert long["form"] == "long 1-2-5-4-3"
    assert long["references"] == [long[f"ShortA{place}"] for place in (1, 2, 5, 4, 3)]
    assert long["question"].startswith("Discuss Saturn by covering (1) who discovered")
    assert frame.loc["saturn-e6e970bb/2/short", "question"] == long["ShortQ2"]


def test_mixed_types_of_a_column_raise_an_error():
    rows = [
        {"id": "1", "subj": "a", "prop": "sport", "obj": "b", "question": "q", "s_pop": "7"}
        | {"possible_answers": ["b"], "extra": 1},
        {"id": "2", "subj": "c", "prop": "sport", "obj": "d", "question": "r", "s_pop": "8"}
        | {"possible_answers": ["d"], "extra": "x"},
    ]
    data = sc.load_dataset("popqa", source=rows)

    with pytest.raises(DataError, match="column 'extra' of list has values of several types"):
        data.to_pandas()


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_preset_reads_rows_in_memory():
    record = {
        "case_id": 1,
        "requested_rewrite": {
            **{"prompt": "{} is in", "subject": "Paris", "relation_id": "P17"},
            **{"target_true": {"str": "France"}, "target_new": {"str": "Japan"}},
        },
        "paraphrase_prompts": ["Paris lies in", "Paris is a city of"],
    }

    data = sc.load_dataset("counterfact", source=[record])
    frame = data.to_pandas()

    assert frame["id"].tolist() == ["1 | rewrite", "1 | paraphrase 1", "1 | paraphrase 2"]
    assert frame["references"].tolist() == [["France"]] * 3
    assert frame["case_id"].tolist() == [1] * 3
    texts = dict(zip(frame["id"], ["France", "Japan", "France"], strict=True))
    outcomes = sc.score_predictions(data, texts, model="m")
    assert outcomes["first_correct"].tolist() == [True, True]
    assert outcomes["second_correct"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        (
            "redirectqaa",
            {},
            DataError,
            r"did you mean 'redirectqa'\?\); the data sets are redirectqa, slaq",
        ),
        ("WueNLP/SLAQQ", {}, DataError, r"did you mean 'WueNLP/SLAQ'\?"),
        (
            *("lmlm-audit", {}, SourceNotFoundError),
            r'LMLMAudit \(arXiv 2607\.00605\) and pass source="FOLDER", or pass source="sample"',
        ),
        ("pararel", {}, SourceNotFoundError, r"download it from https://github\.com/yanaiela"),
        (
            *("klar", {"source": "sample"}, DataError),
            r"no sample of these data is bundled; pass .* as './sample'",
        ),
        ("slaq", {"source": [{"ShortQ1": "x"}]}, ColumnNotFoundError, "has no column for"),
        (
            "slaq",
            {"source": SAMPLES / "slaq", "split": "train"},
            SourceNotFoundError,
            "not found in .*; splits",
        ),
        (
            "slaq",
            {"source": "sample", "split": "train"},
            ValueError,
            "split='train' belongs to .* but the source is slaq-sample; omit it",
        ),
        ("slaq", {"source": "smaple"}, SourceNotFoundError, r"did you mean 'sample'\?"),
        ("slaq", {"clean_htm": True}, ValueError, r"slaq has no option.*did you mean 'clean_html'"),
        (
            "klar",
            {"source": "x", "preset": "y"},
            ValueError,
            "no option 'preset'; its options: reference_separator, wordi",
        ),
        ("lmlm-audit", {"source": "x", "style": "y"}, ValueError, r"did you mean 'styles'\?"),
        ("lmlm-audit", {"source": [{"a": 1}]}, TypeError, "from a folder of databases .* got list"),
        (
            "lmlm-audit",
            {"source": "x", "split": "test"},
            ValueError,
            "the layout of lmlm-audit is fixed; omit",
        ),
    ],
)
def test_load_dataset_raises_an_error(name, options, error, message):
    with pytest.raises(error, match=message):
        sc.load_dataset(name, **options)


def test_example_has_the_labelled_answers():
    """46 of 480 facts are correct by the labels in the folder of the answers."""
    answers = sc.load_example()

    lines = (SAMPLES / "slaq_answers" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [label for line in lines for label in json.loads(line)["labels"]]
    assert len(answers) == len(labels) == 480
    assert answers["correct"].sum() == sum(label["correct"] for label in labels) == 46
    assert not answers.duplicated(["item", "form"]).any()
    assert (answers["item"].nunique(), answers["topic"].nunique()) == (120, 24)
    assert set(answers["form"]) == {"short", "long 1", "long 2", "long 3"}


def test_example_reproduces_the_numbers_of_its_description():
    """Computed from the labels by the unbiased agreement of two random forms, by hand .9139."""
    answers = sc.load_example()

    row = sc.metrics.forms_by(
        answers, item="item", form="form", score="correct", cluster="topic"
    ).iloc[0]

    n_correct = answers.groupby("item")["correct"].sum()
    agreement = 1 - (n_correct * (4 - n_correct) / 6).mean()
    assert row["consistency"] == pytest.approx(agreement)
    assert row["consistency"] == pytest.approx(0.9139, abs=5e-5)
    assert row["all_correct"] == pytest.approx((n_correct == 4).mean())
    assert (row["n_items"], row["n_clusters"]) == (120, 24)


@pytest.mark.parametrize("name", ["redirectqa", "popqa", "lmlm-audit"])
def test_correct_predictions_are_scored_as_correct_in_all_pairs(name):
    data = sc.load_dataset(name, source="sample")
    texts = {row["id"]: row["references"][0] for row in data.to_dataset()}

    outcomes = sc.score_predictions(data, texts, model="m")

    assert outcomes["first_correct"].all()
    assert outcomes["second_correct"].dropna().all()
    assert {"study", "model", "pair", "item"} <= {*outcomes}
    assert outcomes["model"].unique().tolist() == ["m"]


@pytest.mark.parametrize(
    ("name", "column"),
    [("redirectqa", "subject_id"), ("slaq", "topic_id"), ("lmlm-audit", "base_fact")],
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_outcomes_are_clustered_as_the_report_of_their_study(name, column):
    data = sc.load_dataset(name, source="sample")
    texts = {
        row["id"]: row["references"][0] if number % 3 else "x"
        for number, row in enumerate(data.to_dataset())
    }

    outcomes = sc.score_predictions(data, texts, model="m")

    scored = outcomes.dropna(subset=["first_correct", "second_correct"])
    for result in (sc.paired(outcomes), sc.consistency(outcomes), sc.compare(outcomes)):
        assert {*result.to_frame()["n_clusters"]} == {scored[column].nunique()}, result.kind


def test_long_answers_of_slaq_are_scored_fact_by_fact():
    """Named entities in a numbered list; other answers have no score by the default rule."""
    data = sc.load_dataset("slaq", source="sample")
    texts = {
        row["id"]: "\n".join(f"{slot}. {text}" for slot, text in enumerate(row["references"], 1))
        for row in data.to_dataset()
    }

    with pytest.warns(UnscoredWarning, match="have no score"):
        outcomes = sc.score_predictions(data, texts, model="m")

    assert len(outcomes) == 600
    assert outcomes["second_correct"].dropna().all()
    assert outcomes["second_correct"].notna().sum() == 405


def test_predictions_of_every_kind_give_the_same_outcomes(redirectqa, canonical_only, tmp_path):
    expected = sc.score_predictions(redirectqa, canonical_only, model="m")
    rows = redirectqa.to_dataset().map(lambda row: {"prediction": canonical_only[row["id"]]})
    shuffled = rows.shuffle(seed=0)
    by_text = dict(zip(rows["question"], rows["prediction"], strict=True))
    published = datasets.Dataset.from_json(str(SAMPLES / "redirectqa" / "test.jsonl"))

    assert expected["first_correct"].all()
    assert not expected["second_correct"].any()
    assert expected["type"].explode().nunique() == 3
    file = tmp_path / "predictions.parquet"
    shuffled.to_parquet(str(file))
    for predictions in (shuffled, shuffled.to_pandas(), list(shuffled), by_text, file, str(file)):
        outcomes = sc.score_predictions(redirectqa, predictions, model="m")
        pd.testing.assert_frame_equal(outcomes, expected)
    in_order = sc.score_predictions(published, rows["prediction"], model="m", in_order=True)
    pd.testing.assert_frame_equal(in_order, expected)


def test_audit_outcomes_have_the_states_of_the_database(audit):
    """One answer per state: correct for FULL and DEL-OFF, incorrect for DEL-ON."""
    texts = {
        row["id"]: "nobody knows" if row["state"] == "DEL-ON" else row["references"][0]
        for row in audit.to_dataset()
    }

    outcomes = sc.score_predictions(audit, texts, model="m")

    assert len(outcomes) == 1_080
    assert outcomes["full"].all()
    assert not outcomes["del_on"].any()
    assert outcomes["del_off"].all()


def test_text_of_a_prompt_does_not_name_a_state_of_the_audit(audit):
    with pytest.raises(DataError, match=r"no prompt .* ids are such as 'countries/noise/"):
        sc.score_predictions(audit, {audit.to_pandas()["question"][0]: "x"}, model="m")


@pytest.mark.parametrize("name", ["redirectqa", "popqa"])
def test_a_renamed_column_is_read_under_the_name_of_its_field(name):
    rows = pd.read_json(SAMPLES / name / "test.jsonl", lines=True)
    columns = {"question": "prompt"}

    renamed = sc.load_dataset(name, rows.rename(columns=columns), columns=columns)

    expected = sc.load_dataset(name, source="sample").to_pandas()["question"]
    assert renamed.to_pandas()["question"].tolist() == expected.tolist()


def test_score_predictions_reads_the_given_columns(redirectqa):
    rows = redirectqa.to_pandas()[["id", "question"]].assign(prediction="x")
    own = rows[["id", "prediction"]].set_axis(["key", "said"], axis=1)

    outcomes = sc.score_predictions(redirectqa, own, model="m", item="key", prediction="said")

    expected = sc.score_predictions(redirectqa, rows, model="m")
    pd.testing.assert_frame_equal(outcomes, expected)


@pytest.mark.parametrize(
    ("predictions", "options", "error", "message"),
    [
        (["x"], {}, DataError, r"1 texts without the ids of their prompts.* or pass in_order=True"),
        (["x"], {"in_order": True}, DataError, "1 predictions for 584 prompts; pass one per"),
        ("x.jsonl", {}, SourceNotFoundError, "file x.jsonl not found; expected a file of"),
        ("x.jsonl", {"in_order": True}, ValueError, "these predictions have ids; omit it"),
        (5, {}, TypeError, "predictions is one int; pass a mapping"),
        ({}, {}, DataError, "0 of 0 predictions belong to no prompt .*'no id'"),
        ({"z": "x"}, {}, DataError, "1 of 1 predictions belong to no prompt .* such as 'z'"),
        ({"z": 1}, {}, TypeError, r"a prediction must be text or None, got int \(1\)"),
        ({1: "x", "1": "y"}, {}, DataError, "two predictions have the id '1'; keep one"),
        ({None: "x"}, {}, TypeError, "the id of a prediction must be text or an integer, got None"),
        ({"z": "x"}, {"in_order": True}, ValueError, "these predictions have ids; omit it"),
        (
            [{"text": "x"}],
            {},
            ColumnNotFoundError,
            "no column identifies the questions; .* name it by `item`",
        ),
        (
            [{"id": "z"}],
            {},
            ColumnNotFoundError,
            "no column of predictions; searched for prediction",
        ),
        (
            *([{"id": "z", "output": "x", "response": "y"}], {}, ColumnNotFoundError),
            "columns 'response' and 'output' could each contain the predictions; name one",
        ),
        (
            [{"id": "z", "prediction": "x"}] * 2,
            {},
            DataError,
            "no prediction belongs to a question",
        ),
    ],
)
def test_score_predictions_raises_an_error(redirectqa, predictions, options, error, message):
    with pytest.raises(error, match=message):
        sc.score_predictions(redirectqa, predictions, model="m", **options)


def test_two_predictions_of_one_prompt_raise_an_error(redirectqa):
    first = redirectqa.to_dataset()[0]

    with pytest.raises(DataError, match="are one prompt, with two predictions; keep one"):
        sc.score_predictions(redirectqa, {first["id"]: "x", first["question"]: "y"}, model="m")


def test_rule_raises_an_error_for_the_audit(audit):
    texts = dict.fromkeys(audit.to_pandas()["id"], "x")

    with pytest.raises(ValueError, match="scores answers by its own equivalence; omit rule"):
        sc.score_predictions(audit, texts, model="m", rule="exact")


def test_rows_of_an_unknown_data_set_raise_an_error():
    with pytest.raises(
        ColumnNotFoundError, match=r"not those of redirectqa, slaq, popqa; pass load"
    ):
        sc.score_predictions([{"a": 1}], {"1": "x"}, model="m")


def test_prompts_without_prediction_are_counted_as_unscored(redirectqa, canonical_only):
    texts = dict(list(canonical_only.items())[:500])

    with pytest.warns(UnscoredWarning, match=r"84 of 584 (prompts .* wrong|answers have no score)"):
        outcomes = sc.score_predictions(redirectqa, texts, model="m")

    assert outcomes["second_correct"].isna().any()


def test_split_of_a_source_without_splits_raises_an_error(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n', encoding="utf-8")

    for source in (path, [{"a": 1}], "sample"):
        with pytest.raises(ValueError, match=r"split='dev' belongs to a repository.*; omit it"):
            sc.load_dataset("slaq", source=source, split="dev")


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_predictions_may_be_tables_of_arrow_and_polars():
    polars = pytest.importorskip("polars")
    data = sc.load_dataset("slaq", source="sample")
    columns = {"id": data.to_pandas()["id"].tolist(), "prediction": ["London"] * len(data)}
    expected = sc.score_predictions(data, pd.DataFrame(columns), model="m")

    for table in (pa.table(columns), polars.DataFrame(columns)):
        pd.testing.assert_frame_equal(sc.score_predictions(data, table, model="m"), expected)
