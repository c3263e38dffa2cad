"""Whom a provider or a directory vouches for, and the accounts that they get."""
