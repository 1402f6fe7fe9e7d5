"""Metrics of factual consistency, from correctness labels or arrays to numbers with intervals.

Import common metrics from here, and all others, with the types of options such as `McNemarMethod`,
from the module given in the reference. `paired` has metrics of two conditions, `forms` of any
number, `positions` those of SLAQ, `forgetting` those of the audit. Requires numpy, scipy and, for
functions of frames, pandas; `predict_correctness` and `predict_alignment` require scikit-learn,
`correctness_regression` statsmodels.

Options have the same name in all functions: `intervals` has the options of cluster-robust intervals
(`Intervals`: confidence, method, resamples, seed), `confidence` is the nominal coverage of other
intervals, `seed` is a seed, a generator or None for fresh entropy, and `missing` is the treatment
of missing values. The interval of x is in `x_low` and `x_high`. Importing this package does not
import these libraries: its names are loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
