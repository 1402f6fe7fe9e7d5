"""What kinds of redirects a wiki has."""
