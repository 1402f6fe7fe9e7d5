"""Metrics of factual consistency, from verdicts or arrays to numbers with intervals.

The common metrics can be imported from here; all others, and the types of options such as
`McNemarMethod`, from the module that the reference names. `paired_*`, `mcnemar_tests`
and `effect_sizes` are about two conditions, `form*` about more, `alignment`, `positions` and
`momentum_curves` about SLAQ, `forgetting*` and `audit_checks` about the audit. Needs numpy, scipy
and, for functions over frames, pandas; `predict_correctness` and `predict_alignment` need
scikit-learn, `correctness_regression` statsmodels.

Options have one name everywhere: `intervals` is how intervals that take clusters whole are made
(`Intervals`: confidence, method, resamples, seed), `confidence` the nominal coverage of other
intervals, `seed` a seed, a generator or None for fresh entropy, `missing` what to do without a
value. The interval of x is in `x_low` and `x_high`. Importing this package loads none of these
libraries: its names are loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
