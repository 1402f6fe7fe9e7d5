"""Build PopQA's questions with their subjects' redirects, from PopQA's rows and local dumps."""
