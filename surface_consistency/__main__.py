"""Command line as `python -m surface_consistency`, which needs no script on the PATH."""

from surface_consistency.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
