"""SLAQ as a study: `study` says what is asked and compared, `judges` who judges."""
