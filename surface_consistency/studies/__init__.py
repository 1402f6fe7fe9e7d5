"""Studies end to end: the engine that runs any of them, what a study is, and those that come along.

`Study` and `Analysis` are what others extend; `run_study`, `score_run` and `report_runs` are the
stages of any study. Importing this package loads none of its modules.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
