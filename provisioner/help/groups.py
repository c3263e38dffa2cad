"""The navigation of the documentation: below /help/ and of the site of `make docs`.

Each reader finds how to do something first, then what is looked up, then why.
"""

from __future__ import annotations

# A document that is not named comes under the last one.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Begin here", ("glossary", "comparison")),
    ("Developers", ("work", "cli", "flex")),
    ("Scripts and CI", ("api", "examples", "client")),
    (
        "Administrators: how to",
        (
            *("install", "sign-in", "mounts", "monitoring", "scale", "backup"),
            *("high-availability", "mirrors"),
            *("sandboxes", "server-logs", "qualification"),
        ),
    ),
    (
        "Administrators: look up",
        ("configuration", "storage", "insight", "storage-advice", "changelog"),
    ),
    ("Contributors: how to", ("contributing", "lab", "traces")),
    ("How it is made, and why", ("architecture", "security", "adr")),
    ("More", ()),
)
# Documents at the root of the project, by path.
AT_THE_ROOT = {"CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing"}
