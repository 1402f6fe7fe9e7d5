"""Published sources to records: RedirectQA, PopQA, SLAQ, audits, benchmarks; records as Parquet."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
