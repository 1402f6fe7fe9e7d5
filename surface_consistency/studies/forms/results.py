"""Verdicts and answers that are there already, with a row an item and form: the page of forms."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import pandas as pd
from pydantic import AfterValidator

from surface_consistency.analysis.compare import find_clusters, judged_by_rule
from surface_consistency.engine.compare.verdicts import write_outcomes
from surface_consistency.engine.design import Report
from surface_consistency.engine.settings import check_rule
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError, SurfaceConsistencyWarning, UndefinedMetricWarning
from surface_consistency.metrics.forms.repeats import repeats_by
from surface_consistency.reading import first_names
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import Results, read_results
from surface_consistency.runs.frames import make_frame
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Flag
from surface_consistency.studies.forms.layouts import Wordings
from surface_consistency.studies.forms.study import FormOutcome, target_pairs
from surface_consistency.tables.table import Table
from surface_consistency.text import did_you_mean

_GIVEN: Final = "verdicts as given"


class FormResults(ResultColumns):
    """Which columns hold what, where a file does not say it, and how its forms are compared."""

    cluster: Annotated[Items[str], Flag("--cluster-column")] = ()
    """Columns that group items, the same in all forms of an item; the usual names by default."""

    reference: str | None = None
    """Form that the others are held against; the first by default."""

    wordings: Wordings | None = None
    """What a form is: the same for all items (shared), a template of the item's relation, which
    `cluster` names (templates), or the item's own wording (own); by default shared, unless each
    form is of one item."""

    rule: Annotated[str | None, AfterValidator(lambda name: name and check_rule(name))] = None
    """Matching rule that judges answers with references, in the place of the file's scores."""


class FormsAnalysis(Analysis):
    """Items in several forms, from result files of any tool: verdicts, or answers to judge."""

    name = "forms"
    title = "Forms"
    settings = FormResults
    studies = ("forms",)

    def prepare(
        self, paths: Sequence[Any], out: Path, settings: FormResults
    ) -> Sequence[str | Path]:
        """Make a folder of verdicts of each model; see `Analysis`.

        Raises:
            DataError: If `out` holds a run, no item has two forms, a score is no verdict, there are
                several metrics, or the reference form is unknown.
        """
        if (out / "manifest.json").is_file():
            raise DataError(
                f"{out} holds a run, whose page these results would replace; choose another `out`"
            )
        results = read_results([Path(path) for path in paths], settings)
        for note in results.notes:
            warnings.warn(note, SurfaceConsistencyWarning, stacklevel=2)
        frame = _verdicts(results, settings)
        wordings = settings.wordings or _wordings(frame)
        outcomes = _outcomes(frame, settings, wordings)
        of_model = dict(iter(frame.groupby("model", observed=True)))
        questions = frame.drop_duplicates(["model", "item", "form"])
        asked = questions.groupby("model", observed=True).size()
        judged_by = _GIVEN if settings.rule is None else settings.rule
        origin = ", ".join(map(str, paths))
        return [
            write_outcomes(
                make_frame({str(name): part[name] for name in part}, FormOutcome),
                FormOutcome,
                out / "models" / str(place),
                study="forms",
                model=str(model),
                origin=origin,
                settings={"reference": str(part["first_condition"].iat[0]), "wordings": wordings},
                judged_by=judged_by,
                n_questions=int(asked[model]),
                checks=_noise_floor(of_model[model]),
            ).path
            for place, (model, part) in enumerate(
                outcomes.groupby("model", sort=False, observed=True), start=1
            )
        ]

    def tables(self, report: Report, settings: FormResults) -> Mapping[str, Table]:
        """Add nothing: the tables are those of the study."""
        return {}


def _verdicts(results: Results, settings: FormResults) -> pd.DataFrame:
    """Keep one verdict an item, form and repeat of each model, and name what is taken whole."""
    frame = results.frame
    if settings.rule is not None:
        frame = judged_by_rule(frame, settings.rule)
    metrics = [str(name) for name in frame["metric"].unique()]
    if len(metrics) > 1:
        raise DataError(
            f"there are scores of {len(metrics)} metrics ({first_names(metrics)}), and a form is "
            "right or wrong by one; name it by `metrics`"
        )
    if metrics == [""]:
        raise DataError(
            "there are answers and no scores; judge them by `rule`, such as `rule=popqa`"
        )
    if frame["form"].nunique() < 2:
        raise DataError(
            f"every item has one form; name the column of forms by `form`; "
            f"there are {first_names(results.frame.columns)}"
        )
    scored = frame.loc[frame["score"].notna() & ~frame["score"].isin((0.0, 1.0))]
    if len(scored):
        row = scored.iloc[0]
        raise DataError(
            f"{row['file']}: {row['score']:g} of item {row['item']!r} by {row['metric']} is no "
            "verdict, which is 0 or 1; choose another metric by `metrics`, judge the answers by "
            "`rule`, or compare scores by `surface-consistency compare`"
        )
    several = frame["task"].nunique() > 1
    item = frame["item"].astype(str)
    frame = frame.assign(item=frame["task"].astype(str) + " " + item if several else item)
    return frame.assign(
        form=frame["form"].astype(str),
        sample=frame["repeat"].rank(method="dense").astype(int),
        verdict=frame["score"].map({0.0: False, 1.0: True}).astype(object),
        item_cluster=_item_clusters(frame, results, settings),
    )


def _noise_floor(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Compute the test-retest flip rate of a model, and count flips; nothing without repeats."""
    scored = frame[frame["verdict"].notna()]
    scored = scored.assign(cluster=scored["item_cluster"].where(
        scored["item_cluster"].notna(), scored["item"]))  # fmt: skip
    prompts = scored.assign(text=scored["prediction"].fillna("")).groupby(
        ["item", "form", "cluster"], as_index=False
    )
    counts = prompts.agg(
        n_answers=("verdict", "size"), n_right=("verdict", "sum"), n_texts=("text", "nunique")
    )
    counts = counts[counts["n_answers"] > 1]
    if counts.empty:
        return {}
    n, right = counts["n_answers"], counts["n_right"].astype(float)
    counts = counts.assign(n=1, n_flips=2 * right * (n - right) / (n * (n - 1)))
    with warnings.catch_warnings():
        # The cells of numbers that cannot be inferred are NaN.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        floor = repeats_by(
            scored, prompt=["item", "form"], repeat="sample", score="verdict", cluster="cluster"
        )
    rates = {f"flip_rate{end}": floor[f"test_retest_flip_rate{end}"]
             for end in ("", "_low", "_high")}  # fmt: skip
    floor = floor.assign(
        stratum="all",
        model=str(frame["model"].iloc[0]),
        n_repeated=len(counts),
        n_verdict_flips=int((counts["n_flips"] > 0).sum()),
        **rates,
        n_text_changes=int((counts["n_texts"] > 1).sum()),
    )
    names = ["stratum", "n_repeated", "n_verdict_flips", *rates, "n_text_changes", "model"]
    flips = counts.groupby(["item", "cluster"], as_index=False)[["n", "n_flips"]].sum()
    return {"noise_floor": floor[names], "repeated_verdicts": flips}


def _item_clusters(
    frame: pd.DataFrame, results: Results, settings: FormResults
) -> pd.Series | None:
    """Name what is taken whole of each item; None for the item itself."""
    pairs = pd.factorize(results.pairs[frame.index])[0]
    clusters = find_clusters(
        frame.assign(_unit=results.items[frame.index], _pair=pairs), results, settings
    )
    if not clusters.names:
        return None
    names = [name for name in clusters.names if frame[name].nunique() > 1] or list(clusters.names)
    joined = frame[names].astype(str).agg(" ".join, axis=1)
    return joined.groupby(frame["item"]).transform("first")


def _wordings(frame: pd.DataFrame) -> Wordings:
    """Tell forms that items share from wordings of each item's own."""
    return "own" if frame.groupby("form")["item"].nunique().eq(1).all() else "shared"


def _outcomes(frame: pd.DataFrame, settings: FormResults, wordings: Wordings) -> pd.DataFrame:
    """Hold each form of an item against the reference."""
    known = list(dict.fromkeys(frame["form"]))
    reference = settings.reference or known[0]
    if reference not in known:
        raise DataError(
            f"no form {reference!r}{did_you_mean(reference, known)}; there are {first_names(known)}"
        )
    if wordings == "templates" and frame["item_cluster"].isna().any():
        raise DataError(
            "templates are those of a relation; name its column by `cluster`, or give "
            "`wordings=shared` or own"
        )
    keys = ["model", "item", "sample"]
    is_alone = frame.groupby(keys, observed=True)["form"].transform("size") == 1
    frame_of_one, frame = frame[is_alone], frame[~is_alone]
    if frame.empty:
        raise DataError(
            "no item has two forms; name the columns of items and forms by `item` and `form`"
        )
    if n_alone := frame_of_one["item"].nunique():
        warnings.warn(
            f"{n_alone} {'item' if n_alone == 1 else 'items'} with a single form "
            f"{'is' if n_alone == 1 else 'are'} left out",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )
    several = frame["sample"].nunique() > 1
    number = " | sample " + frame["sample"].astype(str) if several else ""
    names = frame["item"] + " | " + frame["form"] + number
    # Nothing is held against each other where there are no answers.
    is_known = bool(frame["prediction"].isna().all()) | (frame["references"].map(len) > 0)
    targets = frame.assign(
        target_id=names,
        kind=None,
        relation=frame["item_cluster"] if wordings == "templates" else None,
        is_reference=frame["form"] == reference,
        cluster=frame["item_cluster"].where(frame["item_cluster"].notna(), frame["item"]),
        question=frame["question"].where(frame["question"].notna(), frame["item"]),
        accepted=frame["references"],
        is_known=is_known,
    )
    return pd.concat(
        [
            _of_model(part, reference, wordings)
            for _, part in targets.groupby("model", sort=False, observed=True)
        ],
        ignore_index=True,
    )


def _of_model(targets: pd.DataFrame, reference: str, wordings: Wordings) -> pd.DataFrame:
    """Put the verdicts of a model beside each other."""
    pairs = target_pairs(targets, reference, wordings)
    by_target = targets.set_index("target_id")
    first, second = (by_target.reindex(pairs[f"{side}_target"]) for side in ("first", "second"))
    is_known = (first["is_known"].ne(False) & second["is_known"].to_numpy()).to_numpy()
    return pairs.drop(columns=["first_target", "second_target"]).assign(
        study="forms",
        model=str(targets["model"].iloc[0]),
        is_same_answer=pairs["is_same_answer"] & is_known,
        first_correct=first["verdict"].to_numpy(dtype=object),
        second_correct=second["verdict"].to_numpy(dtype=object),
        first_prediction=first["prediction"].to_numpy(dtype=object),
        second_prediction=second["prediction"].to_numpy(dtype=object),
    )
