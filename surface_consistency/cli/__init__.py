"""The subcommands of the command line: one module per command, with its options."""

__all__: list[str] = []
