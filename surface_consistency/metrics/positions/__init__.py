"""Metrics of long queries: accuracy by slot, momentum, and alignment with short queries."""
