"""RedirectQA: the same fact under the title and under a redirect."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
