"""Integrations with other tools: lm-evaluation-harness and inspect_ai.

Every integration presents a study as a `PairedTask`; prompts, scores and metrics are those of the
study. Importing this package does not import any of the tools.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
