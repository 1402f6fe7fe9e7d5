"""Rates of correct answers about deleted facts, by mechanism: L, R, I and A."""

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics import _inputs
from surface_consistency.metrics.paired.paired_tables import proportion_of_cells


def leakage(del_off: npt.ArrayLike, *, missing: _inputs.MissingPolicy = "raise") -> float:
    """Return L, the proportion of deleted facts answered correctly without retrieval.

    Args:
        del_off: Correctness labels with the fact deleted and retrieval off, shape `(n_facts,)`:
            True or False, 1 or 0, and None, NaN or `pandas.NA` if an answer was not scored.
        missing: "raise" raises an error if a label is missing; "drop" excludes such facts, with an
            `UnscoredWarning`.

    Returns:
        L = mean [Y(DEL-OFF) = o], in [0, 1], where Y is the answer and o the object of the fact;
        lower means that fewer facts are in the parameters.

    Raises:
        ValueError: If the input is not one-dimensional, a value is not a correctness label, or
            (under "raise") missing.

    Notes:
        The accuracy with retrieval on is L + R - I, not L + R. Without a fact the result is NaN,
        with an `UndefinedMetricWarning`. For intervals and groups use `forgetting_by`.

    References:
        arXiv 2607.00605, section 3.

    Examples:
        >>> leakage([1, 0, 0, 0])
        0.25
    """
    names = ("del_off", "del_off")
    return proportion_of_cells((0,), del_off, del_off, missing=missing, names=names)


def retrieval_mediated(
    del_on: npt.ArrayLike, del_off: npt.ArrayLike, *, missing: _inputs.MissingPolicy = "raise"
) -> float:
    """Return R, the proportion of deleted facts answered correctly only with retrieval.

    Args:
        del_on: Correctness labels with the fact deleted and retrieval on, shape `(n_facts,)`, as in
            `leakage`.
        del_off: Labels of the same facts with retrieval off.
        missing: As in `leakage`.

    Returns:
        R = mean [Y(DEL-ON) = o and Y(DEL-OFF) != o], in [0, 1].

    Raises:
        ValueError: As in `leakage`, and if the lengths differ.

    Notes:
        As in `leakage`.

    References:
        arXiv 2607.00605, section 3.

    Examples:
        >>> retrieval_mediated([1, 1, 0, 0], [1, 0, 1, 0])
        0.25
    """
    return proportion_of_cells((1,), del_on, del_off, missing=missing, names=("del_on", "del_off"))


def interference(
    del_on: npt.ArrayLike, del_off: npt.ArrayLike, *, missing: _inputs.MissingPolicy = "raise"
) -> float:
    """Return I, the proportion of deleted facts answered correctly only without retrieval.

    Args:
        del_on: As in `retrieval_mediated`.
        del_off: As in `retrieval_mediated`.
        missing: As in `leakage`.

    Returns:
        I = c / n = mean [Y(DEL-ON) != o and Y(DEL-OFF) = o], in [0, 1].

    Raises:
        ValueError: As in `retrieval_mediated`.

    Notes:
        As in `leakage`. The paper gives the formula c / n without a name; a later audit by the same
        authors reports it.

    References:
        arXiv 2607.00605, proposition C.1.

    Examples:
        >>> interference([1, 1, 0, 0], [1, 0, 1, 0])
        0.25
    """
    return proportion_of_cells((2,), del_on, del_off, missing=missing, names=("del_on", "del_off"))


def artifact_rate(
    del_on: npt.ArrayLike,
    gold_retrieved: npt.ArrayLike,
    *,
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return A, the proportion of deleted facts correct without a gold-equivalent candidate.

    Args:
        del_on: Correctness labels with the fact deleted and retrieval on, as in `leakage`.
        gold_retrieved: G(f) of each fact: whether a retained candidate of the trace of the DEL-ON
            answer was gold-equivalent.
        missing: As in `leakage`.

    Returns:
        A = mean [Y(DEL-ON) = o] (1 - G), in [0, 1].

    Raises:
        ValueError: As in `retrieval_mediated`.

    Notes:
        As in `leakage`. If no fact leaks and no retained candidate is gold-equivalent, R = A for
        each fact, so that A carries no additional information.

    References:
        arXiv 2607.00605, proposition 6.1.

    Examples:
        >>> artifact_rate([1, 1, 0, 0], [0, 1, 0, 0])
        0.25
    """
    names = ("del_on", "gold_retrieved")
    return proportion_of_cells((1,), del_on, gold_retrieved, missing=missing, names=names)


def fact_counts(
    del_on: npt.ArrayLike,
    del_off: npt.ArrayLike,
    full: npt.ArrayLike | None,
    gold_retrieved: npt.ArrayLike | None,
    *,
    missing: _inputs.MissingPolicy,
    names: tuple[str, str, str, str],
) -> tuple[_inputs.Integers, _inputs.Flags]:
    """Read the labels of facts; return their counts, and which facts have no missing value.

    The counts have shape `(n_facts, 10)`, each 0 or 1: a, b, c, d and artifacts, then the same for
    facts correct under FULL; zeros if not scored.
    """
    cells = _inputs.outcome_cells(del_on, del_off, missing=missing, names=(names[0], names[1]))
    is_scored = cells != _inputs.MISSING
    is_known = np.zeros(cells.size, dtype=np.bool_)
    is_traced = np.ones(cells.size, dtype=np.bool_)
    if full is not None:
        codes = _codes(full, names[2], names[0], cells.size, missing)
        is_scored &= codes != _inputs.MISSING
        is_known = codes == 1
    if gold_retrieved is not None:
        codes = _codes(gold_retrieved, names[3], names[0], cells.size, missing)
        is_scored &= codes != _inputs.MISSING
        is_traced = codes == 1
    counts = np.zeros((cells.size, 10), dtype=np.int64)
    counts[:, :4] = cells[:, None] == np.arange(4)
    # Cells 0 and 1 are correct under DEL-ON.
    counts[:, 4] = (cells <= 1) & ~is_traced
    counts[~is_scored] = 0
    counts[:, 5:] = counts[:, :5] * is_known[:, None]
    return counts, is_scored


def _codes(
    values: npt.ArrayLike, name: str, like: str, n_facts: int, missing: _inputs.MissingPolicy
) -> _inputs.Codes:
    """Read a vector with one value per fact."""
    codes = _inputs.verdict_codes(values, name)
    if codes.size != n_facts:
        raise ValueError(
            f"{name} must have one value per fact, as {like}; got {codes.size} and {n_facts}"
        )
    _inputs.check_complete(codes == _inputs.MISSING, name, missing, rows="facts")
    return codes
