"""The stages composed, one module a study: what the command line runs."""

__all__: list[str] = []
