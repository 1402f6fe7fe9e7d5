"""Marks of tests that need what may not be installed."""

from importlib.util import find_spec

import pytest

NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
