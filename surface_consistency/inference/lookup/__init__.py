"""Models that look facts up in a store while they write."""

from surface_consistency.inference.lookup.lookup_runner import LookupRunner
from surface_consistency.inference.lookup.settings import LookupSettings
from surface_consistency.inference.lookup.source import LookupMode, LookupRequest, LookupSource

__all__ = ["LookupMode", "LookupRequest", "LookupRunner", "LookupSettings", "LookupSource"]
