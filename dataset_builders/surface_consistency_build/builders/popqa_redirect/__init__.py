"""PopQA's questions under the redirects of their subjects, from PopQA's rows and local dumps."""
