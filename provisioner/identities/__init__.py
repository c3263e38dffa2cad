"""People vouched for by a provider or a directory, and their accounts."""
