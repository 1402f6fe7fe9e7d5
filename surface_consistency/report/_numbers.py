"""Numbers as people read them: fractions become percentages here and nowhere else."""

import math

__all__ = ["NOTHING", "count", "interval", "number", "p_value", "percent", "with_interval"]

NOTHING = "–"
"""Stands where nothing defines a value."""

_SMALL_P = 0.001


def percent(value: float, *, signed: bool = False) -> str:
    """Write a fraction in percent with one decimal, without the sign "%"."""
    if math.isnan(value):
        return NOTHING
    shown = f"{100 * value:+.1f}" if signed else f"{100 * value:.1f}"
    if shown in {"-0.0", "+0.0"}:
        shown = "0.0"
    return shown.replace("-", "−")


def interval(low: float, high: float, *, signed: bool = False) -> str:
    """Write the bounds of an interval of fractions in percent; empty where undefined."""
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{percent(low, signed=signed)}, {percent(high, signed=signed)}]"


def with_interval(value: float, low: float, high: float) -> str:
    """Write a rate and its interval for running text, such as "23.7 % [23.0, 24.4]"."""
    return f"{percent(value)}\u00a0% {interval(low, high)}".rstrip()


def count(value: float) -> str:
    """Write a count with thousands separators."""
    return NOTHING if math.isnan(value) else f"{int(value):,}"


def p_value(value: float) -> str:
    """Write a p-value with three decimals, or as a bound below 0.001."""
    if math.isnan(value):
        return NOTHING
    return f"< {_SMALL_P}" if value < _SMALL_P else f"{value:.3f}"


def number(value: float) -> str:
    """Write any other number: whole ones with separators, the rest with four digits."""
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    shown = f"{int(value):,}" if value == int(value) else f"{value:.4g}"
    return shown.replace("-", "−", 1) if shown.startswith("-") else shown
