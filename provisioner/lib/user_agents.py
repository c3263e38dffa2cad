"""Browsers by their user agents, in plain words."""

from __future__ import annotations

# Most call themselves by the names of others as well: their own comes first here.
_BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
_SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Macintosh": "macOS",
    "Linux": "Linux",
}
LONGEST = 40


def browser_of(user_agent: str) -> str:
    """Return a name such as "Firefox on Linux"; of others, the start of the text.

    Source: https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/User-Agent
    """
    browser, system = (
        next((name for mark, name in names.items() if mark in user_agent), "")
        for names in (_BROWSERS, _SYSTEMS)
    )
    if not browser:
        return user_agent[:LONGEST] or "unknown"
    return f"{browser} on {system}" if system else browser
