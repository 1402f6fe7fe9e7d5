"""Tables in the form of the papers, compared with published and planted numbers."""

import re

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.report import report_runs
from surface_consistency.report.texts import Texts
from surface_consistency.studies.audit.conditions import condition_label
from surface_consistency.tables.latex import latex_table
from surface_consistency.tables.numbers import format_cell
from surface_consistency.tables.table import Table
from surface_consistency.taxonomy import TYPES
from tests.claims import check_page
from tests.made_runs import make_manifest, make_outcomes, make_run, random_outcomes  # noqa: F401


def texts_of(table):
    """Return the cells as texts: rows of columns in order."""
    return [
        [" ".join(filter(None, format_cell(row, column))) for column in table.columns]
        for row in table.frame.to_dict("records")
    ]


def papers(study, **frames):
    """Make the paper's tables of a study from frames of its tables."""
    tables = {name: Table(frame=frame, caption=name, columns=[]) for name, frame in frames.items()}
    return Texts(f"surface_consistency.studies.{study}").papers(tables)


@pytest.fixture
def golden(data_files):
    return lambda name: pd.read_csv(data_files / "golden" / f"{name}.csv")


def starred(value, significant):
    return f"{value:.3f}".replace("-", "−").replace("−0.000", "0.000") + "*" * int(significant)


def wide(rows, keys, name, value):
    """Put statistics side by side with p-values that have the stars of the paper."""
    rows = rows.assign(p=np.where(rows["significant_p01"] == 1, 0.001, 0.2))
    values = rows.pivot(index=keys, columns=name, values=value)
    p_values = rows.pivot(index=keys, columns=name, values="p")
    p_values = p_values.add_suffix("_p_value_independent")
    frame = pd.concat([values, p_values], axis=1).reset_index()
    order = {model: place for place, model in enumerate(rows["model"].unique())}
    return frame.sort_values("model", key=lambda models: models.map(order), kind="stable")


def test_tables_2_5_and_6_of_redirectqa_print_the_published_correlations(golden):
    partial = golden("redirectqa_table2_partial_correlations")
    plain = golden("redirectqa_table5_correlations")
    controlled = golden("redirectqa_table6_low_frequency_control")
    controlled["statistic"] = controlled["statistic"].str.removeprefix("pearson_")
    keys = ["model", "subset"]

    made, _ = papers(
        "redirectqa",
        frequency_partial=wide(partial, keys, "partial", "partial_r"),
        frequency_correlations=wide(plain, keys, "frequency", "pearson_r"),
    )
    for name, rows, kind, value in (
        ("paper_table_2", partial, "partial", "partial_r"),
        ("paper_table_5", plain, "frequency", "pearson_r"),
    ):
        table = made[name]
        assert [one.title for one in table.columns][2:] == ["Overall", "Canonical", "Redirect"]
        found = texts_of(table)
        assert [row[0] for row in found[::2]] == rows["model"].unique().tolist()
        kinds = list(rows[kind].unique())
        for place, row in enumerate(found):
            chosen = rows[(rows["model"] == row[0]) & (rows[kind] == kinds[place % 2])]
            by_subset = chosen.set_index("subset")
            assert row[2:] == [
                starred(by_subset.loc[one, value], by_subset.loc[one, "significant_p01"])
                for one in ("overall", "canonical", "redirect")
            ]
    assert [row[1] for row in texts_of(made["paper_table_2"])[:2]] == [
        "ρ(Ent, Acc | Surf)",
        "ρ(Surf, Acc | Ent)",
    ]

    both = wide(controlled, keys, "statistic", "value")
    names = ("entity_given_surface", "surface_given_entity")
    is_partial = [column.startswith(names) for column in both]
    made, _ = papers(
        "redirectqa",
        frequency_correlations=both.loc[:, [not one for one in is_partial]],
        frequency_partial=both[[*keys, *both.columns[is_partial]]],
    )
    table = made["paper_table_6"]
    assert [one.group for one in table.columns][1::4] == [
        "Full redirect-only subset",
        "High-frequency subset",
    ]
    cells = controlled.set_index(["model", "subset", "statistic"])
    for row in texts_of(table):
        wanted = [
            cells.loc[(row[0], subset, one)]
            for subset in ("redirect", "redirect_high_frequency")
            for one in ("entity", "surface", *names)
        ]
        assert row[1:] == [starred(one["value"], one["significant_p01"]) for one in wanted]


def test_table_7_of_redirectqa_prints_the_published_accuracies_with_their_denominators(golden):
    rows = golden("redirectqa_table7_entity_linking")
    labels = ["all", *(kind.title for kind in TYPES.values()), "from initialisms"]
    counts = {"positive_right": 3, "positive_wrong": 4, "negative_right": 5, "negative_wrong": 9}
    frame = rows.assign(label=[*labels, "from long names"], model="m", **counts)
    shuffled = frame.sample(frac=1, random_state=0)

    table = papers("linking", linking=shuffled)[0]["paper_table_7"]

    names = ["raw_accuracy", "balanced_accuracy", "positive_accuracy", "negative_accuracy"]
    expected = [
        [row["group"], *(f"{row[name]:.3f}" for name in names), "7", "14"]
        for row in rows.to_dict("records")
    ]
    assert texts_of(table) == expected


def test_tables_1_and_2_of_lexical_popularity_have_the_published_changes(golden):
    rows = golden("lexical_tables1_2_perturbation")
    tasks = {
        "LAMBADA": "lambada",
        "PIQA": "piqa",
        "COPA": "copa",
        "WinoGrande": "winogrande",
        "Det.-Noun Agr.": "determiner_noun_agreement",
        "Subj.-Verb Agr.": "subject_verb_agreement",
        "Anaphor Agr.": "anaphor_agreement",
        "Arg. Structure": "argument_structure",
    }
    rows[["task", "measure"]] = rows["metric"].str.rsplit(n=1, expand=True)
    rows["name"] = rows["configuration"].replace("delta_percent", "change")
    rows["name"] += np.where(rows["measure"] == "perplexity", "_perplexity", "")
    is_percent = (rows["measure"] == "accuracy") | (rows["configuration"] == "delta_percent")
    rows["value"] = np.where(is_percent, rows["value"] / 100, rows["value"])
    source = rows.assign(task=rows["task"].map(tasks))
    source = source.pivot(index=["model", "task"], columns="name", values="value").reset_index()

    made, lacking = papers("lexical", lexical=source)

    first, second = (made[name] for name in ("paper_table_1", "paper_table_2"))
    assert [one.title for one in first.columns][2:4] == ["Perplexity", "Accuracy"]
    assert [one.group for one in first.columns][3:] == [*tasks][:4]
    assert [one.group for one in second.columns][2:] == [*tasks][4:]
    whole = first.frame.merge(second.frame, on=["model", "line"]).set_index(["model", "line"])
    lines = {"original": "Original", "perturbed": "Lex. Perturb.", "delta_percent": "Δ (%)"}
    for row in rows.to_dict("records"):
        key = tasks[row["task"]] + ("_perplexity" if row["measure"] == "perplexity" else "")
        is_change = key == "lambada_perplexity" and row["configuration"] == "delta_percent"
        wanted = row["value"] * (100 if is_change else 1)
        found = whole.loc[(row["model"], lines[row["configuration"]]), key]
        assert found == pytest.approx(wanted, abs=0.006 if is_change else 1e-9)
    assert texts_of(first)[2][2:4] == ["413.8", "−26.2"]
    assert lacking == [
        "Table 3 of the paper needs counts of the n-grams, from the analysis `popularity`."
    ]


def test_table_3_of_lexical_popularity_has_a_column_pair_per_model():
    rows = [("a", "piqa", "lost", 12, 5.27, 2.73, 2.56, 1.65), ("b", "piqa", "all", 9, 1, 1, 1, 1)]
    rows += [
        ("b", "piqa", "lost", 4, 3.39, 2.34, 1.8, 1.19),
        ("a", "lambada", "lost", 2, 1, 1, 1, 1),
    ]
    names = ("model", "task", "pairs", "n", "original", "original_deviation", "perturbed")
    frame = pd.DataFrame(rows, columns=[*names, "perturbed_deviation"])

    table = papers("lexical", popularity_shift=frame)[0]["paper_table_3"]

    assert [one.group for one in table.columns] == ["", *["a"] * 3, *["b"] * 3]
    assert [[cell.replace("\xa0", " ") for cell in row] for row in texts_of(table)] == [
        ["LAMBADA", "1.00 (± 1.00)", "1.00 (± 1.00)", "2", "–", "–", "–"],
        ["PIQA", "5.27 (± 2.73)", "2.56 (± 1.65)", "12", "3.39 (± 2.34)", "1.80 (± 1.19)", "4"],
    ]


def audit_frames(golden, data_files):
    cells = golden("audit_contingencies").rename(
        columns={"variant": "topology", "prompt_style": "style"}
    )
    cells["topology"] = cells["topology"].str.lower()
    is_released = cells["domain"] == "released"
    cells["database"] = np.where(is_released, "released", cells["domain"] + "/" + cells["topology"])
    names = ["n", "a", "b", "c", "d", "artifact"]
    frames = {"by_condition": cells}
    frames["by_topology"] = cells.groupby("topology", sort=False)[names].sum().reset_index()
    # The text says that figures 4 and 5 are over all databases; their numbers are of the custom
    # ones.
    custom = cells[~is_released]
    frames["by_style"] = custom.groupby("style", sort=False)[names].sum().reset_index()
    made = {}
    for name, frame in frames.items():
        made[name] = frame.assign(
            model="m",
            leakage=(frame["a"] + frame["c"]) / frame["n"],
            retrieval_mediated=frame["b"] / frame["n"],
            artifact_rate=frame["artifact"] / frame["n"],
            first_only=frame["b"],
            second_only=frame["c"],
            mcnemar_p_value=0.5,
        )
    states = pd.read_csv(data_files / "lmlm_audit/outputs/audit/per_state_metrics.csv")
    labels = [condition_label(file) for file in states["prompt_file"]]
    for name in ("database", "topology", "style"):
        states[name] = [getattr(label, name) for label in labels]
    states["n"] = states["count"]
    made["states_by_condition"] = states.assign(model="m")
    for name in ("topology", "style"):
        part = states if name == "topology" else states[states["database"] != "released"]
        weighted = part.assign(**{s: part[s] * part["n"] for s in ("exact_match", "f1")})
        sums = weighted.groupby([name, "state"])[["exact_match", "f1", "n"]].sum()
        sums = sums.assign(exact_match=sums["exact_match"] / sums["n"], f1=sums["f1"] / sums["n"])
        made[f"states_by_{name}"] = sums.reset_index().assign(model="m")
    return made


def test_tables_5_and_6_and_figures_of_the_audit_print_the_published_numbers(golden, data_files):
    made, lacking = papers("audit", **audit_frames(golden, data_files))

    assert not lacking
    published = golden("audit_table6_cross_state").astype({"n": str})
    rates = ["leakage", "retrieval_mediated", "artifact"]
    expected = [
        [row["database"], row["prompt_set"], row["n"], *(f"{row[name]:.3f}" for name in rates)]
        for row in published.to_dict("records")
    ]
    found = texts_of(made["paper_table_6"])
    # The one cell in which the paper (4 of 158) and its published metrics (3 of 158) disagree.
    place = expected.index(
        ["Sports Collision", "Contextual Questions", "158", "0.000", *["0.025"] * 2]
    )
    expected[place][4:] = ["0.019", "0.019"]
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        # The paper rounds halves up and down.
        pairs = zip(row[3:], wanted[3:], strict=True)
        assert all(abs(float(a) - float(b)) < 0.0011 for a, b in pairs)

    states = {tuple(row[:2]): row[2:] for row in texts_of(made["paper_table_5"])}
    assert len(states) == 78
    # Table 5 of arXiv 2607.00605: P, R and F1 in the three states. The paper rounds otherwise.
    for place, row in {
        ("Released LMLM", "Direct Questions"): "474 477 475 022 022 021 015 024 016",
        ("Countries Alias", "Cloze Prompts"): "511 516 512 113 115 112 004 028 007",
        ("Countries Noise", "Continuations"): "878 878 878 354 354 354 025 128 041",
        ("Politicians Alias", "Continuations"): "729 726 727 087 083 084 002 008 003",
    }.items():
        wanted = [int(one) / 1000 for one in row.split()]
        assert [float(one) for one in states[place]] == pytest.approx(wanted, abs=0.0011)
    # The caption of figure 3, and of figure 4; figure 7: b is 69 on Base and 418 on Noise.
    stacks = {row[0]: row[3] for row in texts_of(made["paper_figure_3"])}
    assert [*stacks.items()] == [
        ("Base", "3.7"),
        ("Alias", "6.2"),
        ("Collision", "7.2"),
        ("Noise", "13.6"),
        ("Released LMLM", "0.7"),
    ]
    stacks = [row[3] for row in texts_of(made["paper_figure_4"])]
    assert stacks == ["9.9", "7.9", "8.7", "6.1", "8.7", "6.7"]
    counts = {row[0]: row[1:4] for row in texts_of(made["paper_figure_7"])}
    assert counts["Base"] == ["69", "2", "1,920"]
    assert counts["Noise"] == ["418", "3", "3,120"]
    # Figures 5 and 6 are described in words: F1 of continuations, exact match of the released.
    scores = {row[0]: row[1::2] for row in texts_of(made["paper_figure_5"])}
    assert 56 < float(scores["Continuations"][0]) < 58
    scores = {row[0]: row[1::2] for row in texts_of(made["paper_figure_6"])}
    assert 45 < float(scores["Released LMLM"][0]) < 47
    assert 13 < float(scores["Noise"][1]) < 14.5


def test_figures_of_slaq_average_the_models_and_count_the_slots():
    rows = [
        ("b", "iou", 30, 29, 0.4, 0.2),
        ("a", "iou", 30, 30, 0.2, 0.1),
        ("a", "pearson_mlp", 3, 4, 0.5, 0.4),
    ]
    names = ["model", "feature", "n_aligned", "n_misaligned", "aligned", "misaligned"]
    curve = [
        ("a", null, s, k, 9 - k, 0.1 * k + s / 2)
        for null in ("topic", "topic-and-slot")
        for s in (1, 0)
        for k in range(3)
    ]
    curves = pd.DataFrame(curve, columns=["model", "null", "streak", "length", "n", "probability"])

    made, lacking = papers(
        "slaq", mechanism_similarity=pd.DataFrame(rows, columns=names), momentum=curves
    )

    assert texts_of(made["paper_figure_4"]) == [
        ["IoU", "0.300", "0.150", "60", "59"],
        ["Pearson, MLPs", "0.500", "0.400", "3", "4"],
    ]
    assert texts_of(made["paper_figure_3"]) == [
        ["(a) Trailing 1-streak", "a", "50.0", "9", "60.0", "8", "70.0", "7"],
        ["(b) Trailing 0-streak", "a", "0.0", "9", "10.0", "8", "20.0", "7"],
    ]
    assert [one.group for one in made["paper_figure_3"].columns][2::2] == ["0", "1", "2"]
    assert lacking == [
        "Figure 2 of the paper needs facts with scores in short and in long answers."
    ]


def test_table_2_of_the_japanese_paper_is_reproduced_from_its_pairs(golden, make_run, tmp_path):
    rows = golden("redirectqa_ja_contingencies")
    verdicts, labels = [], []
    category = {
        "alternative_names_and_abbreviations": "Redirects_from_former_names",
        "spelling_variants": "Redirects_from_titles_without_diacritics",
    }
    rows = rows[(rows["dataset"] == "redirectqa_v0") & rows["group"].isin([*category])]
    for row in rows.to_dict("records"):
        cells = {
            (True, True): row["both_correct"],
            (True, False): row["canonical_only_correct"],
            (False, True): row["redirect_only_correct"],
            (False, False): row["both_incorrect"],
        }
        for pair, n in cells.items():
            verdicts += [pair] * n
            labels += [[category[row["group"]]]] * n
    run = make_run("run", make_outcomes(verdicts, categories=labels), make_manifest())

    table = report_runs([run], tmp_path / "out").tables["paper_japanese_table_2"]

    # Table 2 (b) and (c) of the paper.
    found = [[cell.replace("\xa0", " ") for cell in row] for row in texts_of(table)]
    assert found[2:6] == [
        ["(b) Alternative names and abbreviations", "Correct", "766 (68.6 %)", "215 (5.9 %)"],
        ["(b) Alternative names and abbreviations", "Incorrect", "351 (31.4 %)", "3,399 (94.1 %)"],
        ["(c) Spelling variants", "Correct", "2,550 (84.2 %)", "235 (5.8 %)"],
        ["(c) Spelling variants", "Incorrect", "478 (15.8 %)", "3,841 (94.2 %)"],
    ]


@pytest.fixture
def reported(make_run, tmp_path):
    """Two models in two templates, reported to a folder."""
    frames = {}
    for seed, model in enumerate(("a", "b")):
        parts = [
            random_outcomes(150, seed=10 * seed + place, model=model, template=template)
            for place, template in enumerate(("original", "paraphrase"))
        ]
        frames[model] = pd.concat(parts, ignore_index=True)
    runs = [make_run(model, one, make_manifest(model)) for model, one in frames.items()]
    made = report_runs(runs, tmp_path / "out")
    return pd.concat(frames.values(), ignore_index=True), made, tmp_path / "out"


def test_consistency_given_the_title_agrees_with_pandas(reported):
    outcomes, made, folder = reported
    rows = pd.read_csv(folder / "tables" / "consistency.csv")
    exploded = {
        "all": outcomes.assign(label="all"),
        "type": outcomes.assign(label=outcomes["types"]).explode("label"),
        "category": outcomes.assign(label=outcomes["categories"]).explode("label"),
    }

    assert len(rows) == 2 * 2 * 2 * sum(part["label"].nunique() for part in exploded.values())
    for row in rows.to_dict("records"):
        part = exploded[row["group"]]
        for name in ("model", "template", "label"):
            part = part[part[name] == row[name]]
        given = part[part["first_correct"] == (row["given"] == "correct")]
        same = given["first_correct"] == given["second_correct"]
        assert row["n"] == len(given)
        assert row["n_clusters"] == given["subject_id"].nunique()
        assert row["redirect_correct"] == given["second_correct"].sum()
        assert row["consistency"] == pytest.approx(same.mean(), nan_ok=True)

    figure = pd.read_csv(folder / "tables" / "paper_figure_2.csv")
    wanted = rows.pivot(
        index=["template", "label", "model"], columns="given", values=["n", "consistency"]
    )
    for row in figure.to_dict("records"):
        cells = wanted.loc[(row["template"], row["label"], row["model"])]
        for given in ("correct", "incorrect"):
            assert row[f"{given}_n"] == cells["n", given]
            consistent = cells["consistency", given]
            assert row[f"{given}_consistency"] == pytest.approx(consistent, nan_ok=True)
            assert row[f"{given}_inconsistency"] == pytest.approx(1 - consistent, nan_ok=True)
    assert figure["label"].iloc[0] == "all"
    assert figure["template"].unique().tolist() == ["original", "paraphrase"]
    assert made.tables["paper_figure_2"].frame.shape == figure.shape


def test_page_reports_the_main_result_with_its_denominators_and_copies_the_tables(reported):
    outcomes, made, folder = reported
    html = (folder / "report.html").read_text("utf-8")
    lead = re.search(r'<section id="consistency".*?<p class="lead">(.*?)</p>', html, re.S)[1]
    lead = re.sub(r"<[^>]*>", "", lead)

    original = outcomes[outcomes["template"] == "original"]
    for (model, is_correct), part in original.groupby(["model", "first_correct"]):
        given = "correctly" if is_correct else "incorrectly"
        n_subjects = part["subject_id"].nunique()
        sentence = f"The consistency of {model} given a title answered {given} (template: original)"
        assert sentence in lead
        assert f"{len(part)} pairs, {n_subjects} subjects)" in lead
    assert check_page(folder)

    section = html[html.index('<section id="paper"') :]
    assert '<details class="folded">' in section.partition("</summary>")[0]
    assert "Table 2 of the paper, Table 5 of the paper and Table 6 of the paper need the" in section
    table = made.tables["paper_figure_2"]
    latex = latex_table(table, caption=table.caption, label=table.label)
    escaped = latex.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f'data-latex="{escaped}"' in section


def test_latex_of_grouped_columns_has_as_many_cells_as_columns(reported):
    table = reported[1].tables["paper_figure_2"]

    lines = latex_table(table, caption="50 % & more", label="tab:x").splitlines()

    assert lines[2] == r"\caption{50 \% \& more}"
    assert lines[5] == r"\begin{tabular}{lllrrrrrr}"
    spans = re.findall(r"\\multicolumn\{(\d)\}", lines[7])
    assert sum(map(int, spans)) == 9
    assert lines[8] == r"\cmidrule(lr){4-6}\cmidrule(lr){7-9}"
    rows = [line for line in lines if line.endswith(r"\\")][1:]
    assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {9}
