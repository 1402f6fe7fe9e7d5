"""Write topics and paraphrases with a model, for review by a person."""
