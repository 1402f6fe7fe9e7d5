"""Inside other tools: lm-evaluation-harness and inspect_ai.

Every integration lays a study out as a `PairedTask` and hands the tool what it asks for; prompts,
judgement and numbers are those of the study. Importing this package loads none of the tools.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
