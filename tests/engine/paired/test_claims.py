"""Pages claim only directions that are statistically significant."""

import re
import warnings

import numpy as np
import pytest

from surface_consistency.engine.design import Design, Report
from surface_consistency.engine.paired.page import PageSpec
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.report.page import MosaicPlots
from surface_consistency.tables.numbers import Claim, sentence_text
from tests.made_runs import make_outcomes, memory_run

CLAIM = re.compile(r"points (?:higher|lower)")
SEEDS = 40
DESIGN = Design(title="Case", conditions=("plain", "capitals"))


def simulated_runs(rates, *, seed, n=200, known=0.5):
    """Make runs on the same pairs from accuracies by model and condition."""
    rng = np.random.default_rng(seed)
    runs = []
    shared = rng.random(n // 2).repeat(2) < known
    for label, chances in rates.items():
        # Pairs of a fact are correlated, as are the answers of both models.
        sides = [
            np.where(shared, rng.random(n) < 0.9, rng.random(n) < one).tolist() for one in chances
        ]
        runs.append(memory_run(make_outcomes(list(zip(*sides, strict=True))), label))
    return runs


def page_of(runs):
    spec = PageSpec()
    report = Report(runs=runs, design=DESIGN, settings=ReportSettings(answers=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurfaceConsistencyWarning)
        tables = spec.compute(report)
        return spec.page(report, tables), tables


def claims(page):
    """Sentences of a page that claim a direction."""
    parts = [page.finding.sentence, page.finding.summary]
    parts += [check.text for check in page.checks]
    for section in page.sections:
        parts += [block.note for block in section.blocks if isinstance(block, MosaicPlots)]
    return CLAIM.findall(" ".join(map(sentence_text, parts)))


def test_simulations_without_an_effect_claim_no_more_than_the_error_rate():
    """Each page has four sentences that claim with probability 0.05; two SD are added."""
    found = [
        len(claims(page_of(simulated_runs({"ada": (0.5, 0.5), "bob": (0.5, 0.5)}, seed=seed))[0]))
        for seed in range(SEEDS)
    ]

    most = 4 * SEEDS * 0.05
    assert sum(found) <= most + 2 * most**0.5


def test_large_effects_are_reported_with_their_direction():
    for seed in range(5):
        page, _ = page_of(simulated_runs({"ada": (0.95, 0.05), "bob": (0.95, 0.95)}, seed=seed))

        finding, summary = map(sentence_text, (page.finding.sentence, page.finding.summary))
        assert re.match(
            r"The flip rate between “plain” and “capitals” is [\d.]+\spoints higher for ada than "
            r"for bob \(95 % CI ",
            finding,
        )
        assert re.search(
            r"accuracy of ada is [\d.]+\spoints lower under “capitals” than under “plain”", summary
        )


def test_finding_of_two_models_reports_difference_and_detectable_difference():
    page, tables = page_of(simulated_runs({"ada": (0.5, 0.5), "bob": (0.5, 0.5)}, seed=1))

    row = tables["contrasts"].frame.set_index("rate").loc["flip_rate"]
    finding, summary = map(sentence_text, (page.finding.sentence, page.finding.summary))
    assert finding.startswith(
        "The flip rate between “plain” and “capitals” does not differ significantly between "
        "bob and ada"
    )
    width = 100 * (row["difference_high"] - row["difference_low"])
    stated = re.search(r"; minimum detectable difference ([\d.]+)\spoints at 80 % power", finding)
    assert float(stated[1]) == pytest.approx(width / 2 * 2.8016 / 1.96, abs=0.06)
    assert summary.startswith("The flip rate of ada between “plain” and “capitals” is ")
    assert "The flip rate of bob between “plain” and “capitals” is " in summary


@pytest.mark.parametrize(("models", "n_pairs"), [("abcd", 6), ("abcdef", 5)])
def test_at_most_four_differences_between_models_are_reported_below_the_squares(models, n_pairs):
    """The table has all pairs of up to four models, or the pairs with the first model."""
    page, tables = page_of(simulated_runs(dict.fromkeys(models, (0.5, 0.9)), seed=1))

    assert (tables["contrasts"].frame["rate"] == "flip_rate").sum() == n_pairs
    [squares] = [one.blocks[0] for one in page.sections if one.anchor == "squares"]
    assert sum(isinstance(part, Claim) for part in squares.note) == 4


def test_numbers_without_an_interval_are_not_quoted():
    """All pairs are of one fact, so that no interval is defined."""
    (run,) = simulated_runs({"m": (0.5, 0.5)}, seed=3, n=40)
    run.outcomes["item"] = "one"

    page, tables = page_of([run])

    assert tables["overall"].frame["flip_rate_low"].isna().all()
    assert sentence_text(page.finding.sentence) == (
        "The flip rate of m between “plain” and “capitals” cannot be inferred: 40 pairs in 1 fact "
        "are too few (effective number of clusters 1, minimum 4)."
    )
    assert not re.search(r"\d", sentence_text(page.finding.summary))
    [square] = page.sections[0].blocks[0].squares
    assert all(value.kind == "p_value" for _, value, _ in square.facts)
    counts = tables["overall"].frame.iloc[0][["both", "first_only", "second_only", "neither"]]
    assert [getattr(square, cell) for cell in counts.index] == counts.tolist()
    assert counts.nunique() == 4


def test_the_page_of_a_toy_model_has_a_warning():
    (run,) = simulated_runs({"toy_model": (0.5, 0.5)}, seed=0)
    (other,) = simulated_runs({"gpt2": (0.5, 0.5)}, seed=0)

    assert page_of([run])[0].finding.warning.startswith(
        "This page tests the method: a small model was"
    )
    assert page_of([other])[0].finding.warning == ""
