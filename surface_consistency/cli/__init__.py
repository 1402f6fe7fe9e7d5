"""The subcommands of the command line: one module each, with its options and what it does."""

__all__: list[str] = []
