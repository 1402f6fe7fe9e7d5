"""Output of results as text, table, figure and page."""

import json
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
from matplotlib import pyplot

from surface_consistency.analysis.measures import (
    accuracy,
    alignment,
    consistency,
    paired,
    partial_correlation,
)
from surface_consistency.analysis.models import compare
from surface_consistency.cli.main import main
from surface_consistency.errors import MissingDependencyError
from surface_consistency.tables import Column
from tests.analysis.made_answers import answers, outcomes

LABEL = r"a_b & 50 % #1 {x} \ ~ ^ $ <i>|`"
ONE = answers(n_repeats=1)
LABELLED = ONE.assign(group=ONE["item"].map(lambda item: LABEL if item % 2 else "plain"))
CAPTION = (
    r"Scores of 50 \%. Standard errors are clustered by item. 95 \% confidence intervals in "
    "brackets."
)
LATEX = rf"""\begin{{table}}
\centering
\caption{{{CAPTION}}}
\label{{tab:scores}}
\begin{{tabular}}{{lrrr}}
\toprule
group & Accuracy (\%) & n & clusters \\
\midrule
"""


@pytest.fixture
def result():
    return accuracy(LABELLED, by="group", cluster="item")


def test_repr_begins_with_the_finding_and_fits_100_columns(result):
    lines = repr(result).splitlines()

    assert lines[0].startswith("The accuracy (group: ")
    assert lines[-1] == "[accuracy: 2 rows x 6 columns in .to_frame(), 9 with all=True]"
    for shown in (result, paired(outcomes()), compare({"a": ONE, "b": ONE})):
        assert max(map(len, repr(shown).splitlines())) <= 100


@pytest.mark.parametrize(("n", "counted"), [(3, ""), (5, "2 more in .sentences; ")])
def test_repr_shows_three_sentences_and_the_note_and_counts_the_others(result, n, counted):
    shown = replace(result, sentences=[f"S{k}." for k in range(n)], note="Some note.")
    *lines, shape = repr(shown).splitlines()

    assert lines == ["S0.", "S1.", "S2.", "Some note."]
    assert shape.startswith(f"[accuracy: {counted}2 rows x 6 columns")


@pytest.mark.parametrize(("n", "counted"), [(60, False), (61, True)])
def test_html_shows_60_rows_and_counts_all(result, n, counted):
    """Further rows are counted but not shown."""
    shown = replace(result, frame=result.frame.iloc[[0] * n])._repr_html_()

    assert shown.count("<td>") == 60 * shown.count("<th>")
    assert ("The first 60 of 61 rows; to_frame() has all." in shown) is counted


def test_to_frame_is_short_unless_all_columns_are_requested(result):
    short = ["group", "accuracy", "accuracy_low", "accuracy_high", "n", "n_clusters"]

    assert list(result.to_frame()) == short
    assert {*short, "n_missing", "not_inferred"} <= {*result.to_frame(all=True)}
    copy = result.to_frame(all=True)
    copy["n"] = 0
    assert result.to_frame()["n"].min() > 0


def test_to_dict_survives_json_with_undefined_numbers():
    few = accuracy(ONE[ONE["item"] < 3].assign(whole=1), cluster="whole")

    values = json.loads(json.dumps(few.to_dict(), allow_nan=False))

    assert values["kind"] == "accuracy"
    assert values["rows"][0]["accuracy_low"] is None
    assert values["sentences"] == few.sentences
    assert "cannot be inferred" in few.sentences[0]


def test_result_can_be_pickled(result, tmp_path):
    files = [tmp_path / name for name in ("a.parquet", "b.parquet")]
    for file in files:
        ONE.loc[ONE["form"] == "a", ["item", "article", "correct"]].to_parquet(file)
    for one in (result, compare({"a": ONE, "b": ONE}), compare(*files), paired(outcomes())):
        again = pickle.loads(pickle.dumps(one))

        pd.testing.assert_frame_equal(again.to_frame(), one.to_frame())
        assert again.sentences == one.sentences


def test_bool_raises_with_the_attribute_to_use(result):
    with pytest.raises(TypeError, match=r"no truth value; test a number of to_frame\(\)"):
        bool(result)


def test_markdown_has_its_labels_and_six_columns_and_escapes_labels(result):
    heads = paired(outcomes(), by="type").to_markdown().splitlines()[0]

    assert heads.count("|") == 9
    assert "| `` a_b & 50 % #1 {x} \\ ~ ^ $ <i>\\|` `` |" in result.to_markdown()


def test_latex_escapes_all_special_characters(result):
    text = result.to_latex(caption="Scores of 50 %", label="tab:scores")

    assert text.startswith(LATEX)
    escaped = r"a\_b \& 50 \% \#1 \{x\} \textbackslash{} \textasciitilde{} \textasciicircum{} \$"
    assert escaped in text
    assert text.endswith("\\\\\n\\bottomrule\n\\end{tabular}\n\\end{table}")


WHOLE = {"cluster": "whole"}
RESULTS = {
    "article": (accuracy, ONE, {}),
    "pair": (consistency, outcomes(), {"cluster": "pair"}),
    "item": (accuracy, ONE.drop(columns="article").assign(topic=ONE["item"] % 20), {}),
    "topic": (alignment, outcomes().assign(topic=outcomes()["item"]), {}),
    "whole": (compare, dict.fromkeys("ab", ONE.rename(columns={"article": "whole"})), WHOLE),
    "": (partial_correlation, ONE, {"x": "item", "y": "correct"}),
}
"""A result by its clusters."""


@pytest.mark.parametrize(("confidence", "level"), [(0.95, 95), (0.9, 90)])
@pytest.mark.parametrize("cluster", RESULTS)
def test_captions_state_clusters_and_level_without_remedies(cluster, confidence, level):
    function, data, given = RESULTS[cluster]
    shown = function(data, **given, confidence=confidence)

    fact = f"Standard errors are clustered by {cluster}."
    fact = fact if cluster else "Rows are assumed to be independent."
    brackets = f"{level} % confidence intervals in brackets."
    caption = shown.to_latex().partition("caption{")[2].partition("}\n")[0].replace("\\", "")
    assert caption.startswith(f"{shown.caption}. ".replace("{", ""))
    assert f"{fact} " in caption
    assert caption.endswith(brackets)
    assert shown.to_markdown().endswith(brackets)
    assert fact in shown._repr_html_()
    assert f"{fact} " in shown.to_text()
    for text in (shown.to_text(), shown._repr_html_().removesuffix("</p>")):
        assert text.endswith(brackets)
    for text in (caption, shown._repr_html_()):
        assert re.search("cluster=|; pass", text) is None
    assert any(part in " ".join(repr(shown).split()) for part in (fact, "Clusters: "))
    assert "in brackets" not in replace(shown, estimates=[Column(key="n", title="n")]).to_latex()


@pytest.mark.parametrize("by", [(), ("group",)])
def test_tables_of_compare_have_both_means(by):
    shown = compare(dict.fromkeys("ab", LABELLED), by=by)

    for text in (shown.to_latex().replace("\\", ""), shown.to_markdown(), shown._repr_html_()):
        assert re.search(r"Mean, ?model ?\(%\)", text)
        assert re.search(r"Mean, ?reference ?\(%\)", text)


@pytest.mark.parametrize("n_groups", [1, 5, 6, 8])
def test_latex_has_as_many_cells_as_columns_for_any_number_of_groups(n_groups):
    by = [f"group_{place}" for place in range(n_groups)]
    frame = outcomes()
    for place, name in enumerate(by):
        frame[name] = ["a & b" if item % 2 == place % 2 else "[c]" for item in range(len(frame))]
    result = paired(frame, by=by)

    lines = result.to_latex().splitlines()

    columns = re.search(r"\\begin\{tabular\}\{(l*)(r*)\}", result.to_latex())
    assert len(columns[1]) == len(result.keys) == n_groups + 1
    rows = [line for line in lines if line.endswith("\\\\")]
    assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {len(columns[1] + columns[2])}
    assert result.to_text().splitlines()[1].startswith("model  group 0  ")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles_and_is_not_wider_than_an_article(result, tmp_path):
    pairs = outcomes().assign(topic=lambda frame: frame["item"])
    both = alignment(pairs, short="first_correct", long="second_correct", by="type")
    models = compare(dict.fromkeys(("Llama-3.1-8B", "Qwen2.5-7B", "gpt-4o"), ONE))
    repeated = consistency(answers(), repeat="run")
    tables = [result, paired(outcomes(), by="type"), both, models, repeated]
    body = "\n".join(one.to_latex() for one in tables)
    text = (
        rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{body}\end{{document}}"
    )
    (tmp_path / "page.tex").write_text(text, "utf-8")

    words = ["pdflatex", "-halt-on-error", "-interaction=batchmode", "page.tex"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert "Overfull" not in (tmp_path / "page.log").read_text("latin-1")
    assert r"F\_L (" in both.to_latex()


def test_html_has_sentences_and_an_escaped_table(result):
    shown = result._repr_html_()

    assert shown.startswith("<p>The accuracy (group: ")
    assert "<caption>Accuracy</caption>" in shown
    assert "&lt;i&gt;" in shown
    for tag in ("<i>", "<script", "<iframe"):
        assert tag not in shown


def test_plot_draws_on_the_current_axes(result):
    figure, axes = pyplot.subplots()

    drawn = result.plot()

    assert drawn is axes
    assert drawn.figure.number in pyplot.get_fignums()
    labels = [label.get_text() for label in drawn.get_yticklabels()]
    assert labels == result.to_frame()["group"].tolist()
    pyplot.close(figure)


def test_plot_without_matplotlib_raises_an_error_with_the_extra(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[plot\]"):
        result.plot()


def test_save_writes_a_page_and_the_table(result, tmp_path):
    page = result.save(tmp_path / "page")

    assert result.sentences[0].split(" (")[0] in page.read_text("utf-8")
    table = pd.read_csv(tmp_path / "page" / "tables" / "accuracy.csv")
    assert table["accuracy"].tolist() == pytest.approx(result.to_frame()["accuracy"].tolist())
    bare = replace(result, estimates=[replace(result.estimates[0], unit="")])
    for one, axis in ((result, "Accuracy, %"), (bare, "Accuracy")):
        assert f'er">{axis}</span>' in one.save(tmp_path / "page").read_text("utf-8")


def tables_of(folder):
    """The CSV tables of a page by name."""
    return {path.name: path.read_text("utf-8") for path in sorted(folder.glob("tables/*.csv"))}


def test_save_writes_the_tables_that_the_command_line_writes(tmp_path):
    one = outcomes()
    one = one[one["model"] == "ada"].drop(columns=["study", "model", "topic_id"])
    one.to_csv(tmp_path / "pairs.csv", index=False)
    words = ["--first", "first_correct", "--second", "second_correct", "--by", "type"]
    out = ["--out", str(tmp_path / "cli")]
    main(["paired", str(tmp_path / "pairs.csv"), *words, *out])

    paired(one, by=["type"]).save(tmp_path / "own")

    own, other = tables_of(tmp_path / "own"), tables_of(tmp_path / "cli")
    assert list(own) == list(other)
    for name, text in own.items():
        assert text.replace("a data frame", "") == other[name].replace("pairs.csv", ""), name


def test_save_of_compare_writes_its_page(tmp_path):
    other = ONE.assign(correct=1 - ONE["correct"])

    page = compare({"a": ONE, "b": other}).save(tmp_path / "page")

    assert page == tmp_path / "page" / "report.html"
    assert {"differences.csv", "models.csv", "by_form.csv"} <= {*tables_of(tmp_path / "page")}
