"""Two conditions: tables, rates, tests, contrasts."""
