"""Records to prompts: what is asked of the model, and in which company."""
