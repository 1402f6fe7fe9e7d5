"""RedirectQA: questions about the same fact by the title and by a redirect."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
