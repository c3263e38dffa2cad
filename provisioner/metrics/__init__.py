"""Figures for Prometheus, read from the database at each scrape."""
