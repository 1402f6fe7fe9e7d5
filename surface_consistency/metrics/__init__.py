"""Metrics of factual consistency, computed from arrays or data frames, with confidence intervals.

Common metrics can be imported from here. Import all others, and types of options such as
`McNemarMethod`, from the module named in the reference. `paired` has metrics of two conditions,
`forms` of any number of forms, `positions` those of SLAQ, `forgetting` those of the audit. The
package requires numpy, scipy and, for functions of frames, pandas. `predict_correctness` and
`predict_alignment` also require scikit-learn, and `correctness_regression` statsmodels.

Options have the same name in all functions. `intervals` contains the options of cluster-robust
intervals (`Intervals`: confidence, method, resamples, seed), and `confidence` is the nominal
coverage of other intervals. `seed` is a seed, a generator, or None for fresh entropy. `missing` is
the treatment of missing values. The interval of x is in `x_low` and `x_high`. Importing this
package does not import these libraries: its names are loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
