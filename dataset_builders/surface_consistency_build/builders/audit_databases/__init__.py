"""Build databases of the audit of forgetting: fact tables, topologies and prompt styles."""
