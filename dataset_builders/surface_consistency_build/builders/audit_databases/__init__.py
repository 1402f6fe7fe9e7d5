"""Databases of the audit of forgetting: builder, card, and how they differ from the published."""
