"""The RedirectQA sample that the package carries: its facts, its surfaces and its generator."""
