"""Many runs from one place: a sweep of one study, and a suite of studies and models."""
