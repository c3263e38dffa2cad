"""The commands of a probe: read-only ones from a list, cheap by default."""

from __future__ import annotations

import shlex

from provisioner.lib.refusals import InvalidRequest

USUAL = (
    "info",
    "dirs //*",
    "opened",
    "changes -m 10 -s submitted",
    "clients -m 10",
)
"""What a developer's tools ask all day. `info` takes no lock: it shows the network."""

ALLOWED = frozenset(
    {
        *("branches", "changes", "clients", "counters", "depots", "describe", "dirs"),
        *("filelog", "files", "fstat", "groups", "have", "info", "integrated"),
        *("interchanges", "jobs", "labels", "opened", "protects", "sizes", "streams"),
        *("sync -n", "users", "where"),
    }
)
"""None of them changes anything at the server."""

MOST = 10
LONGEST = 500
# Whatever follows: a revision, or the end of the files' names.
_WHOLE_DEPOT = ("//...", "//*/...")
# It rebuilds the table of jobs.
_REBUILDING = "R"


def read_commands(text: str, *, field: str) -> str:
    """Return commands as typed, one a line, without `p4`, blank lines and repetitions.

    Raises: InvalidRequest at the field.
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    lines = [line.removeprefix("p4 ") for line in lines if line]
    lines = list(dict.fromkeys(lines))
    if not lines:
        raise InvalidRequest.at(field, "Name at least one command.")
    if len(lines) > MOST:
        raise InvalidRequest.at(field, f"Name {MOST} commands at most.")
    for line in lines:
        if refusal := _refusal(line):
            raise InvalidRequest.at(field, refusal)
    return "\n".join(lines)


def words_of(command: str) -> list[str]:
    """Return the words of a command, as a shell would split them."""
    return shlex.split(command)


def _refusal(line: str) -> str:
    """Return why a command is not accepted, "" if it is."""
    if len(line) > LONGEST or not line.isprintable():
        return f"A command has {LONGEST} printable characters at most."
    try:
        words = words_of(line)
    except ValueError:
        return f"“{line}” has a quotation mark too many or too few."
    is_preview = words[:2] == ["sync", "-n"]
    if words[0] not in ALLOWED and not is_preview:
        return (
            f"“{words[0]}” is not accepted: it may change something. Choose from "
            f"{', '.join(sorted(ALLOWED))}."
        )
    options = [word for word in words[1:] if word.startswith("-")]
    if words[0] == "jobs" and any(_REBUILDING in option for option in options):
        return "“jobs -R” is not accepted: it rebuilds the table of jobs."
    is_wide = any(word.startswith(_WHOLE_DEPOT) for word in words[1:])
    if is_wide and not any(option.startswith("-m") for option in options):
        return f"“{line}” reads the whole depot. Name a narrower path, or add -m 10."
    return ""
