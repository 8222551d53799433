"""Small helpers that every package may use; internal."""
