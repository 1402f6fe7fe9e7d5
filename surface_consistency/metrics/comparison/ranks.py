"""Which ranks the data allow: simultaneous intervals from decisions about all pairs at once."""

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import Integers, check_confidence_level
from surface_consistency.metrics.paired.multiplicity import adjust_p_values


def rank_intervals(
    p_above: npt.ArrayLike, *, confidence_level: float = 0.95
) -> tuple[Integers, Integers]:
    """Bound the ranks of all models at once.

    Model j is surely above model k where the one-sided test of that is rejected after Holm's
    correction for all n(n - 1) such tests. The rank of j then lies in
    [1 + number surely above j, n - number surely below j].

    Args:
        p_above: One-sided p-values, shape `(n_models, n_models)`: in row j and column k that of the
            hypothesis that j is not above k. The diagonal is not read; NaN where there is no test.
        confidence_level: Probability that all intervals hold their ranks, in (0, 1).

    Returns:
        Lower and upper bounds, each of shape `(n_models,)`; rank 1 is that of the largest mean.

    Raises:
        ValueError: When `p_above` is not square, a p-value is not in [0, 1] or `confidence_level`
            not in (0, 1).

    Notes:
        All intervals hold together with that probability, whatever the dependence of the tests.
        Models of equal means have all ranks between them. A test that could not be made decides
        nothing, so the interval is wide; it does not count as a test.

    References:
        M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, Review of Economic Studies 91, 2024,
        section 3 (ranks from simultaneous pairwise decisions); S. Holm, Scandinavian Journal of
        Statistics 6, 1979.

    Examples:
        >>> p_above = [[1, 0.001, 0.3], [0.999, 1, 0.99], [0.7, 0.01, 1]]
        >>> low, high = rank_intervals(p_above)
        >>> low.tolist(), high.tolist()
        ([1, 3, 1], [2, 3, 2])
    """
    check_confidence_level(confidence_level)
    tests = np.array(p_above, dtype=np.float64)
    if tests.ndim != 2 or tests.shape[0] != tests.shape[1]:
        raise ValueError(f"p_above must be square, a row a model; got shape {tests.shape}")
    np.fill_diagonal(tests, np.nan)
    adjusted = adjust_p_values(tests.ravel()).reshape(tests.shape)
    is_above = adjusted < 1.0 - confidence_level
    return 1 + is_above.sum(axis=0), len(tests) - is_above.sum(axis=1)
