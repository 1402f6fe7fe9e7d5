import sys

import pandas as pd
import pytest

from surface_consistency.errors import MissingDependencyError
from surface_consistency.report.audit import (
    attribution_figure,
    audit_figures,
    discordant_figure,
    state_figure,
    write_audit_figures,
)
from surface_consistency.schemas.audit import AuditOutcome
from surface_consistency.studies.audit.tables import audit_tables

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def golden_rows(shared_dir):
    """One row a published fact, of the verdicts that the published means were recovered to."""
    cells = pd.read_csv(shared_dir / "golden" / "audit_contingencies.csv")
    rows = []
    for cell in cells.itertuples():
        variant = cell.variant.lower()
        for count, first, second in (
            (cell.a, True, True),
            (cell.b, True, False),
            (cell.c, False, True),
            (cell.d, False, False),
        ):
            rows += [(cell.domain, variant, cell.prompt_style, first, second)] * count
    names = ["domain", "variant", "style", "first_correct", "second_correct"]
    frame = pd.DataFrame(rows, columns=names)
    frame["fact_id"] = frame.index.astype(str)
    frame["database"] = frame["domain"] + "/" + frame["variant"]
    absent = [name for name in AuditOutcome.model_fields if name not in frame]
    frame = frame.assign(**dict.fromkeys(absent))
    scores = {f"{name}_f1": frame[f"{name}_correct"].astype(float) for name in ("first", "second")}
    return frame.assign(model="lmlm", n_surviving=0, n_deleted=1, has_gold=False, **scores)


def heights(figure, panel=0):
    """Return what is drawn in a panel, by label of group and part, in percent or counts."""
    ax = figure.axes[panel]
    labels = [text.get_text() for text in ax.get_xticklabels()]
    found = {}
    for container in ax.containers:
        for bar in container:
            place = round(bar.get_x() + bar.get_width() / 2)
            found[labels[place], container.get_label()] = bar.get_height()
    return found


# Published metrics, recomputed: L + R by variant (arXiv 2607.00605, figure 3).
STACKS = {"base": 3.698, "alias": 6.250, "collision": 7.169, "noise": 13.558, "released": 0.667}


def test_attribution_figure_agrees_with_the_published_stacks(golden_rows):
    drawn = heights(attribution_figure(audit_tables(golden_rows, n_resamples=20)))

    for variant, stack in STACKS.items():
        total = drawn[variant, "L, leakage"] + drawn[variant, "R, retrieval-mediated"]
        assert total == pytest.approx(stack, abs=5e-4)
    assert drawn["noise", "A, artifact"] == pytest.approx(100 * 420 / 3120)


def test_discordant_figure_agrees_with_the_published_counts(golden_rows):
    figure = discordant_figure(audit_tables(golden_rows, n_resamples=20))

    drawn, [ax] = heights(figure), figure.axes
    assert ax.get_yscale() == "log"
    assert ax.get_ylabel() == "answers, log scale"
    # Figure 7: b and c by variant; p of the recommended test for the released database.
    assert drawn["noise", "b, DEL-ON only"] == 418
    assert drawn["noise", "c, DEL-OFF only"] == 3
    assert drawn["released", "c, DEL-OFF only"] == 0
    notes = [text.get_text() for text in ax.texts]
    assert "exact p = 0.125\nclustered p = 0.046" in notes
    assert sum(note.startswith("corrected p < 0.001") for note in notes) == 4
    assert {"418", "0"} <= set(notes)


def test_attribution_figure_stacks_the_known_attributions(audit_frame):
    frame = audit_frame(
        [
            {"first_correct": True, "attribution": "same_object"},
            {"first_correct": True, "attribution": "same_object", "second_correct": True},
            {"first_correct": True, "attribution": "no_candidate"},
            {"second_correct": True},
        ]
    )

    drawn = heights(attribution_figure(audit_tables(frame, n_resamples=20)))

    assert drawn["base", "same object elsewhere"] == 50
    assert drawn["base", "no entry"] == 25
    assert drawn["base", "echo of the prompt"] == 0
    assert drawn["base", "L, leakage"] == 50
    assert drawn["base", "R, retrieval-mediated"] == 50


def test_attribution_figure_has_no_third_bar_without_attributions(audit_frame):
    untraced = {"has_gold": None, "n_lookups": None}
    frame = audit_frame([{"first_correct": True, **untraced}, untraced])

    drawn = heights(attribution_figure(audit_tables(frame, n_resamples=20)))

    assert {part for _, part in drawn} == {"L, leakage", "R, retrieval-mediated"}


def test_state_figure_draws_each_state_of_each_model(random_audit):
    frames = [random_audit(5, seed=seed, model=f"model {seed}") for seed in (1, 2)]
    frame = pd.concat(frames)

    figure = state_figure(audit_tables(frame, n_resamples=20), by="style", score="f1")

    assert [ax.get_title() for ax in figure.axes] == ["model 1", "model 2"]
    drawn = heights(figure, panel=1)
    rows = frames[1][frames[1]["style"] == "cloze"]
    assert drawn["cloze", "FULL"] == pytest.approx(100 * rows["full_f1"].mean())
    assert {group for group, _ in drawn} == {"cloze", "direct", "few-shot"}


def test_figures_of_what_was_not_asked_say_so(audit_frame, tmp_path):
    frame = audit_frame([{"second_correct": None, "second_f1": None}, {"second_correct": None}])
    tables = audit_tables(frame, n_resamples=20)

    with pytest.raises(ValueError, match="hold no rates by variant: L and R need the states"):
        attribution_figure(tables)
    with pytest.raises(ValueError, match="b and c need the states"):
        discordant_figure(tables)
    with pytest.raises(ValueError, match=r"no token F1 by style \(states_by_style\)"):
        state_figure({}, by="style", score="f1")

    written = write_audit_figures(tables, tmp_path)

    assert {path.stem for path in written} == {"exact-match-by-variant", "f1-by-style"}


def test_write_audit_figures_writes_equal_files_for_equal_tables(random_audit, tmp_path):
    tables = audit_tables(random_audit(4, seed=1), n_resamples=20)
    one = {"states_by_variant": tables["states_by_variant"]}

    first, second = (write_audit_figures(one, tmp_path / name) for name in "ab")

    names = ["exact-match-by-variant.png", "exact-match-by-variant.svg"]
    assert [path.name for path in first] == [path.name for path in second] == names
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))


def test_several_runs_have_a_figure_that_compares_them(random_audit):
    other = "owner/model (retriever minilm, threshold 0.4)"
    frame = pd.concat([random_audit(4, seed=1), random_audit(4, seed=2, model=other)])
    figures = audit_figures(audit_tables(frame, n_resamples=20))

    drawn = heights(figures["attribution-by-run"]())

    wrapped = "owner/model\n(retriever minilm,\nthreshold 0.4)"
    assert {group for group, _ in drawn} == {"organism", wrapped}
    alone = audit_figures(audit_tables(random_audit(4, seed=1), n_resamples=20))
    assert "attribution-by-run" not in alone


def test_figures_name_the_extra_when_matplotlib_is_missing(random_audit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(MissingDependencyError, match=r"pip install 'surface-consistency\[plot\]'"):
        attribution_figure(audit_tables(random_audit(3, seed=1), n_resamples=20))
