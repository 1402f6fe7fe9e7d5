"""`python -m surface_consistency`: the command line of this Python, wherever its scripts lie."""

from surface_consistency.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
