"""Light or dark, as chosen in a browser."""

from __future__ import annotations

from django.http import HttpRequest

COOKIE = "theme"
THEMES = ("light", "dark")


def chosen_theme(request: HttpRequest | None) -> str:
    """Return the theme chosen in a browser, "" where it follows the system."""
    chosen = request.COOKIES.get(COOKIE, "") if request else ""
    return chosen if chosen in THEMES else ""
