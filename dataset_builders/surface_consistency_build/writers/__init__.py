"""Topics and paraphrases written by a model and reviewed by a person."""
