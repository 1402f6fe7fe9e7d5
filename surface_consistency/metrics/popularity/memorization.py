"""Memorization scores: verbatim extraction, and membership inference from token likelihoods."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics import _inputs


def _token_rows(log_likelihoods: Sequence[Sequence[float | None]]) -> list[_inputs.Floats]:
    """Return one array per text; only the first token may lack a value, and is then NaN."""
    rows = []
    for index, tokens in enumerate(log_likelihoods):
        values = [np.nan if _inputs.is_missing(value) else value for value in tokens]
        row = np.asarray(_inputs.plain(values), dtype=np.float64)
        if row.ndim != 1:
            raise ValueError(
                f"log_likelihoods[{index}] must have one number per token; got shape {row.shape}"
            )
        if np.isnan(row[1:]).any() or (row > 1e-6).any():
            raise ValueError(
                f"log_likelihoods[{index}] must be natural logarithms of probabilities, so at "
                "most 0, and only the first token may be missing"
            )
        rows.append(row)
    return rows


_Continuation = str | Sequence[int] | Sequence[str]


def extraction_accuracy(
    generated: Sequence[_Continuation | None],
    expected: Sequence[_Continuation],
    *,
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return the proportion of instances whose second half a model generates verbatim.

    Args:
        generated: Text or tokens that the model generated after the first half of each instance,
            truncated to the length of the second half; None if it generated nothing.
        expected: The second halves, as texts or tokens like `generated`.
        missing: "raise" raises an error for None; "drop" excludes such instances, with an
            `UnscoredWarning`.

    Returns:
        The proportion of instances completed verbatim, in [0, 1]; for an interval see
        `wilson_interval`.

    Raises:
        ValueError: If lengths differ, there is no instance, a continuation is missing under
            "raise", or an option is out of range.
        TypeError: If one of the two is a text and the other its tokens.

    Notes:
        Texts are not normalised: a different space or capital letter is a failure. A list and a
        tuple of equal tokens are equal.

    References:
        Carlini et al., USENIX Security 2021; Ruzzetti, Zanzotto and Caselli, Lexical Popularity,
        section 6 (TDE Accuracy).

    Examples:
        >>> extraction_accuracy([[5, 7, 7], [9, 1, 4]], [(5, 7, 7), (9, 1, 3)])
        0.5
    """
    _inputs.check_missing(missing)
    if len(generated) != len(expected):
        raise ValueError(
            f"generated and expected must be equally long; got {len(generated)} and {len(expected)}"
        )
    n_missing = sum(text is None for text in generated)
    if n_missing and missing == "raise":
        index = next(i for i, text in enumerate(generated) if text is None)
        raise ValueError(f"generated[{index}] is missing: pass missing='drop' to exclude it")
    n = len(expected) - n_missing
    if n == 0:
        raise ValueError("there is no continuation to compare; pass at least one")
    n_extracted = sum(
        _same(text, wanted, index)
        for index, (text, wanted) in enumerate(zip(generated, expected, strict=True))
        if text is not None
    )
    _inputs.warn_unscored(
        n_missing, len(expected), what="instances", lack="a continuation", stacklevel=2
    )
    return n_extracted / n


def extraction_log_likelihood(
    log_likelihoods: Sequence[Sequence[float | None]],
    *,
    prefix_lengths: Sequence[int] | None = None,
) -> npt.NDArray[np.float64]:
    """Return the log-likelihood of the second half of each instance, given the first half.

    Args:
        log_likelihoods: For each instance, the natural log-likelihood of each of its tokens given
            the previous ones; the first token may be None, as many servers return it.
        prefix_lengths: Number of tokens of each first half; None means half of the tokens, rounded
            down.

    Returns:
        One sum per instance, at most 0, shape `(n_instances,)`; higher means more memorized.

    Raises:
        ValueError: If a log-likelihood exceeds 0 or is missing after the first token, the number of
            prefix lengths is not that of instances, or a prefix is longer than its instance.
        TypeError: If a prefix length is not an integer.

    Notes:
        The value is NaN, with an `UndefinedMetricWarning`, if an instance has no second half, or if
        its second half includes a first token without a value.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 6 (TDE Likelihood).

    Examples:
        >>> extraction_log_likelihood([[None, -2.0, -0.5, -0.25], [-1.0, -3.0]]).tolist()
        [-0.75, -3.0]
    """
    rows = _token_rows(log_likelihoods)
    lengths = [row.size // 2 for row in rows] if prefix_lengths is None else list(prefix_lengths)
    if len(lengths) != len(rows):
        raise ValueError(
            f"prefix_lengths must have one length per instance: got {len(lengths)} for {len(rows)}"
        )
    totals = np.full(len(rows), np.nan)
    for index, (row, given) in enumerate(zip(rows, lengths, strict=True)):
        length = _inputs.check_count(given, f"prefix_lengths[{index}]")
        if length > row.size:
            raise ValueError(
                f"prefix_lengths[{index}] is {length}, but the instance has {row.size} tokens"
            )
        if length < row.size:
            totals[index] = row[length:].sum()
    undefined = int(np.count_nonzero(np.isnan(totals)))
    if undefined:
        _inputs.warn_undefined(
            f"{undefined} of {len(rows)} instances have no second half with values; they are NaN"
        )
    return totals


def _same(text: _Continuation, wanted: _Continuation, index: int) -> bool:
    """Compare two texts, or two sequences of tokens."""
    if isinstance(text, str) != isinstance(wanted, str):
        raise TypeError(
            f"generated[{index}] and expected[{index}] must both be texts or both be tokens; got "
            f"{type(text).__name__} and {type(wanted).__name__}"
        )
    return text == wanted if isinstance(text, str) else list(text) == list(wanted)


def membership_loss(log_likelihoods: Sequence[Sequence[float | None]]) -> npt.NDArray[np.float64]:
    """Return the loss of each text, its mean negative log-likelihood per token.

    Args:
        log_likelihoods: For each text, the natural log-likelihood of each of its tokens given the
            previous ones; a first token without a value (None or NaN) is excluded.

    Returns:
        One loss per text, at least 0, shape `(n_texts,)`; lower suggests membership. exp(loss) is
        the perplexity.

    Raises:
        ValueError: If a log-likelihood exceeds 0 or is missing after the first token.

    Notes:
        A text without tokens is NaN, with an `UndefinedMetricWarning`.

    References:
        Mireshghallah et al., EMNLP 2022; Ruzzetti, Zanzotto and Caselli, Lexical Popularity,
        section 6 (MIA Loss).

    Examples:
        >>> membership_loss([[None, -2.0, -1.0], [-0.5]]).tolist()
        [1.5, 0.5]
    """
    rows = [row[~np.isnan(row)] for row in _token_rows(log_likelihoods)]
    return _with_warning([-row.mean() if row.size else np.nan for row in rows], "tokens")


def min_k_probability(
    log_likelihoods: Sequence[Sequence[float | None]], *, k: float = 0.2
) -> npt.NDArray[np.float64]:
    """Return Min-K %, the mean log-likelihood of the least likely tokens of each text.

    The study of lexical popularity does not use this score, but cites its authors.

    Args:
        log_likelihoods: As for `membership_loss`.
        k: Proportion of the tokens that is averaged, in (0, 1]: rounded down, at least one token.

    Returns:
        One mean per text, at most 0, shape `(n_texts,)`; higher suggests membership. With k = 1 it
        is `membership_loss` with the opposite sign.

    Raises:
        ValueError: If `k` is out of range, or a log-likelihood exceeds 0 or is missing after the
            first token.

    Notes:
        A text without tokens is NaN, with an `UndefinedMetricWarning`.

    References:
        Shi et al., ICLR 2024, arXiv 2310.16789.

    Examples:
        >>> min_k_probability([[None, -1.0, -5.0, -2.0, -4.0]], k=0.5).tolist()
        [-4.5]
    """
    rows = [row[~np.isnan(row)] for row in _token_rows(log_likelihoods)]
    return _with_warning([_lowest_mean(row, k) for row in rows], "tokens")


def min_k_plus_plus(
    log_likelihoods: Sequence[Sequence[float | None]],
    means: Sequence[Sequence[float | None]],
    deviations: Sequence[Sequence[float | None]],
    *,
    k: float = 0.2,
) -> npt.NDArray[np.float64]:
    """Return Min-K %++: the mean of the lowest standardised log-likelihoods of each text.

    The log-likelihood of a token is standardised by the mean and standard deviation of the
    log-likelihoods of all tokens of the vocabulary at its position, weighted by their
    probabilities. The study of lexical popularity does not use this score.

    Args:
        log_likelihoods: As for `membership_loss`.
        means: Means over the vocabulary at each position, per token; None if the log-likelihood is
            None.
        deviations: Standard deviations over the vocabulary at each position.
        k: As for `min_k_probability`.

    Returns:
        One mean per text, shape `(n_texts,)`; higher suggests membership.

    Raises:
        ValueError: If `k` is out of range, a log-likelihood exceeds 0, the lengths differ, or a
            deviation is negative.

    Notes:
        If the model is certain (deviation 0), the standardised value is 0. A text without tokens is
        NaN, with an `UndefinedMetricWarning`.

    References:
        Zhang et al., ICLR 2025, arXiv 2404.02936.

    Examples:
        >>> min_k_plus_plus([[-1.0, -6.0]], [[-2.0, -3.0]], [[1.0, 1.5]], k=0.5).tolist()
        [-2.0]
    """
    means_of_lowest = []
    for index, (row, mean, deviation) in enumerate(
        zip(_token_rows(log_likelihoods), means, deviations, strict=True)
    ):
        centre, spread = (
            np.asarray([np.nan if _inputs.is_missing(x) else x for x in values], dtype=np.float64)
            for values in (mean, deviation)
        )
        if not row.shape == centre.shape == spread.shape or (spread < 0.0).any():
            raise ValueError(
                f"means[{index}] and deviations[{index}] must have one number per token, and "
                f"deviations at least 0; got {centre.size} and {spread.size} for {row.size} tokens"
            )
        known = ~np.isnan(row)
        above, width = row[known] - centre[known], spread[known]
        scores = np.divide(above, width, out=np.zeros(above.shape), where=width > 0.0)
        means_of_lowest.append(_lowest_mean(scores, k))
    return _with_warning(means_of_lowest, "tokens")


def _lowest_mean(values: _inputs.Floats, k: float) -> float:
    """Return the mean of the lowest proportion of some values."""
    if not 0.0 < k <= 1.0:
        raise ValueError(f"k must be a proportion above 0 and at most 1; got {k!r}")
    return float(np.sort(values)[: max(1, int(k * values.size))].mean()) if values.size else np.nan


def neighbourhood_score(
    losses: npt.ArrayLike, neighbour_losses: Sequence[npt.ArrayLike]
) -> npt.NDArray[np.float64]:
    """Return the loss of each text minus the mean loss of perturbed versions, its neighbours.

    Args:
        losses: Loss of each text, shape `(n_texts,)`.
        neighbour_losses: For each text, the losses of its neighbours: versions with some words
            replaced.

    Returns:
        The differences, shape `(n_texts,)`. A negative difference suggests membership: the text is
        more likely than its neighbours.

    Raises:
        ValueError: If the numbers of texts differ, or a loss is not finite.

    Notes:
        For a text without neighbours the result is NaN, with an `UndefinedMetricWarning`. Adding a
        constant to all losses of a text does not change the result.

    References:
        Mattern et al., Findings of ACL 2023; Ruzzetti, Zanzotto and Caselli, Lexical Popularity,
        section 6 (MIA Neighbors).

    Examples:
        >>> neighbourhood_score([2.0, 3.0], [[2.5, 3.5], [3.0]]).tolist()
        [-1.0, 0.0]
    """
    own = np.asarray(_inputs.plain(losses), dtype=np.float64)
    if own.ndim != 1 or own.size != len(neighbour_losses):
        raise ValueError(
            "losses must have one loss per text, and neighbour_losses one row per text; got shape "
            f"{own.shape} and {len(neighbour_losses)} rows"
        )
    rows = [np.asarray(_inputs.plain(row), dtype=np.float64) for row in neighbour_losses]
    for index, row in enumerate(rows):
        if not (np.isfinite(own[index]) and np.isfinite(row).all()):
            raise ValueError(f"text {index} has a loss that is not finite: drop the text first")
    means = _with_warning([row.mean() if row.size else np.nan for row in rows], "neighbours")
    return np.asarray(own - means)


def _with_warning(values: list[float], lacking: str) -> _inputs.Floats:
    """Return the values, and warn of the number of NaN and of the missing input."""
    scores = np.asarray(_inputs.plain(values), dtype=np.float64)
    undefined = int(np.count_nonzero(np.isnan(scores)))
    if undefined:
        _inputs.warn_undefined(
            f"{undefined} of {scores.size} texts have no {lacking}; their score is NaN",
            stacklevel=3,
        )
    return scores
