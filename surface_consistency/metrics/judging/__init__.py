"""Agreement of an LLM judge with human labels, and rates corrected for its errors."""
