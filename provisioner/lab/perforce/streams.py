"""Streams, as far as clients need them: the view that a stream gives its clients.

Mainline, development, release and task streams; a child inherits what its parent
imports and excludes.

Source: p4 help stream, p4 help streamintro.
"""

from __future__ import annotations

from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.specstore import StoredSpec, find_spec
from provisioner.lab.perforce.views import ViewLine, format_view_line, split_words

TYPES = ("mainline", "development", "release", "task")
PATH_TYPES = ("share", "isolate", "import", "import+", "exclude")
_DEEPEST = 20


def get_stream(database: Database, *, name: str) -> StoredSpec:
    """Return a stream.

    Raises: CommandError if there is none.
    """
    spec = find_spec(database, kind="stream", name=name)
    if spec is None:
        raise CommandError(6178, type="Stream", name=name)
    return spec


def stream_view(database: Database, *, stream: str, client: str) -> list[str]:
    """Return the view lines of a client of a stream.

    Raises: CommandError if the stream or one of its ancestors is missing.
    """
    spec = get_stream(database, name=stream)
    own = [
        (text.startswith(("share", "isolate")), line)
        for text in _without_comments(spec.lines("Paths"))
        if (line := _path_line(spec, text, client=client)) is not None
    ]
    # Later lines win: what the parent takes out stays out of a child that shares all.
    lines = [line for is_shared, line in own if is_shared]
    lines += _inherited(database, spec, client=client, depth=0)
    lines += [line for is_shared, line in own if not is_shared]
    for text in _without_comments(spec.lines("Remapped")):
        source, place = split_words(text)
        lines.append(_line("", f"{stream}/{source}", f"//{client}/{place}"))
    for text in _without_comments(spec.lines("Ignored")):
        [ignored] = split_words(text)
        pattern = ignored if "/" in ignored or "..." in ignored else f"...{ignored}"
        lines.append(_line("-", f"{stream}/{pattern}", f"//{client}/{pattern}"))
    return [format_view_line(line) for line in lines]


def _without_comments(lines: list[str]) -> list[str]:
    return [text for text in lines if split_words(text)]


def _inherited(
    database: Database, spec: StoredSpec, *, client: str, depth: int
) -> list[ViewLine]:
    """Return what the ancestors of a stream import and exclude."""
    parent = spec.text("Parent")
    if parent in ("", "none") or depth > _DEEPEST:
        return []
    above = get_stream(database, name=parent)
    lines = _inherited(database, above, client=client, depth=depth + 1)
    for text in _without_comments(above.lines("Paths")):
        kind, path, *_ = split_words(text)
        if kind == "exclude":
            lines.append(_line("-", f"{spec.name}/{path}", f"//{client}/{path}"))
        elif kind.startswith("import"):
            line = _path_line(above, text, client=client)
            if line is not None:
                lines.append(line)
    return lines


def _path_line(spec: StoredSpec, text: str, *, client: str) -> ViewLine | None:
    kind, path, *source = split_words(text)
    place = f"//{client}/{path}"
    if kind == "exclude":
        return _line("-", f"{spec.name}/{path}", place)
    if kind.startswith("import"):
        parent = spec.text("Parent")
        if not source and parent in ("", "none"):
            return None
        return _line("", source[0] if source else f"{parent}/{path}", place)
    return _line("", f"{spec.name}/{path}", place)


def _line(flag: str, left: str, right: str) -> ViewLine:
    return ViewLine(flag=flag, left=left.partition("@")[0], right=right)
