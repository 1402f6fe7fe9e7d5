"""The analysis of mechanism: do two answers to one fact use the same parts of the model?"""
