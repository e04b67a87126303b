"""One claim a file."""
