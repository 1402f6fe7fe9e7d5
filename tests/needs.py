"""Marks of tests with optional requirements."""

from importlib.util import find_spec

import pytest

NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
