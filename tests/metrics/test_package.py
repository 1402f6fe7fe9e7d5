import dataclasses
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

from surface_consistency import metrics

HEAVY = ("numpy", "pandas", "scipy", "torch", "transformers", "datasets", "pydantic")
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(metrics.__path__, f"{metrics.__name__}.")
    if not module.ispkg
)


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import surface_consistency.metrics", []),
        ("from surface_consistency.metrics import mcnemar", ["numpy"]),
        ("from surface_consistency.metrics import PairedTable, design_effect", ["numpy"]),
    ],
)
def test_metrics_import_is_light(code, loaded):
    """Importing the metrics loads no library, and a name of them only what its module needs."""
    code = f"import sys\n{code}\nprint([name for name in {HEAVY!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == str(loaded)


def test_names_are_loaded_on_first_use():
    assert set(metrics.__all__) <= set(dir(metrics))
    with pytest.raises(AttributeError, match=r"No surface_consistency\.metrics attribute median"):
        _ = metrics.median


# Helpers of the other modules.
HELPERS = {
    *("checked_orders", "response_codes", "slot_counts", "topic_counts", "topic_shares"),
    *("slot_contrast", "finite_array"),
    *("check_table", "count_matrix", "pair_counts", "quantiles", "table_of", "share_of_cells"),
    *("GroupValue", "check_seed", "cluster_sums", "group_values"),
    *("Part", "ShareStatistic", "of_shares", "statistic_bounds"),
    *("ClusterT", "cluster_t", "cluster_ts", "parts_of", "tested_columns"),
    *("mean_difference", "matched_difference", "run_statistics", "slot_statistics"),
    *("split_difference", "area_under_curve"),
    *("StudentBounds", "jackknife", "t_p_value", "t_quantile"),
    *("are_enough", "too_few_clusters", "worth_of_clusters"),
    *("TEST_COLUMNS", "check_test", "run_test", "design_effect_of"),
    *("fact_sums", "form_rates", "widened", "squared_totals", "expected_range"),
    "fact_counts",
    *("SUBSETS", "FrequencyRows", "read_rows", "take_subset", "warn_missing"),
    *("distinct_names", "number_column"),
}


def _public(name):
    """The functions and classes of a module but the helpers of other modules."""
    module = importlib.import_module(name)
    return [
        value
        for public, value in vars(module).items()
        if not public.startswith("_")
        and public not in HELPERS
        and getattr(value, "__module__", None) == name
        and (isinstance(value, type) or inspect.isfunction(value))
    ]


PUBLIC = [member for name in MODULES if "._" not in name for member in _public(name)]


def test_exports_are_at_most_eighty():
    assert len(metrics.__all__) <= 80


@pytest.mark.parametrize("member", PUBLIC, ids=lambda member: member.__name__)
def test_public_functions_and_classes_are_documented(member):
    """Every public function says what it takes, gives, refuses and rests on, with an example."""
    text = member.__doc__
    if member.__name__.endswith("Result"):
        source = inspect.getsource(member)
        assert text
        assert source.count('"""') >= 2 * (1 + len(dataclasses.fields(member)))
        return

    sections = ["Args:", "Raises:", "References:", "Examples:"]
    if not isinstance(member, type):
        sections += ["Returns:", "Notes:"]
    assert [section for section in sections if section not in text] == []
