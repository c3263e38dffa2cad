"""Client specs as text, and the rules for what people may enter in one.

No server is asked. The form is what a snapshot's pin stores and `p4 client -i` reads.

Source: p4 client, p4 help views,
https://help.perforce.com/helix-core/server-apps/cmdref/current/Content/CmdRef/p4_client.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib.storable import as_named, storable

ONE_LINE_FIELDS = (
    ("Client", "name"),
    ("Owner", "owner"),
    ("Host", "host"),
    ("Root", "root"),
    ("Options", "options"),
    ("SubmitOptions", "submit_options"),
    ("LineEnd", "line_end"),
    ("Stream", "stream"),
    ("Type", "type"),
)
_LINE_ENDS = ("local", "unix", "mac", "win", "share")
_SUBMIT_OPTIONS = (
    "submitunchanged",
    "submitunchanged+reopen",
    "revertunchanged",
    "revertunchanged+reopen",
    "leaveunchanged",
    "leaveunchanged+reopen",
)
_OPTION_PAIRS = (
    ("noallwrite", "allwrite"),
    ("noclobber", "clobber"),
    ("nocompress", "compress"),
    ("unlocked", "locked"),
    ("nomodtime", "modtime"),
    ("normdir", "rmdir"),
)
_OPTIONS_REFUSED = {
    "locked": "only its owner can use a locked client, so Cloneyard could not set its "
    "have list; use unlocked.",
    "altsync": "altsync leaves syncing to another program, which a cloned workspace "
    "does not have; use noaltsync.",
}
_WILDCARD = re.compile(r"\.\.\.|\*|%%[0-9]")
_NOT_IN_ONE_LINE = re.compile(r'[\x00-\x1f\x7f#"]')  # in a form, # begins a comment
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STREAM = re.compile(r"//[^/\x00-\x20\x7f]+(?:/[^/\x00-\x20\x7f]+)+")
_WORD = re.compile(r'([-+&]?)"([^"]*)"(?=[ \t]|$)|([^ \t"]+)(?=[ \t]|$)')


class SpecRefused(ValueError):
    """Part of a client spec that a person entered cannot be used.

    `code` is stable; `sentence` gives the reason and what to do.
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


class ViewRefused(SpecRefused):
    """The server would refuse this view, or it would map too much."""


@dataclass(frozen=True, kw_only=True)
class ViewLine:
    """One mapping, without quotes. `flag` is "", "-", "+" or "&"."""

    flag: str
    depot: str
    client: str

    def __str__(self) -> str:
        return f"{_quoted(self.flag + self.depot)} {_quoted(self.client)}"


def render_client_spec(spec: ClientSpec) -> str:
    """Return the form, as text that can be stored.

    Names that are not UTF-8 are written as by `storable`; `as_named` gives the form
    that a server reads. Times are left out, as the server maintains them.

    Raises: ValueError (a value would break out of its line of the form).
    """
    fields = []
    for tag, attribute in ONE_LINE_FIELDS:
        value = getattr(spec, attribute)
        if _NOT_IN_ONE_LINE.search(value):
            raise ValueError(
                f'{tag} of a client spec must be one printable line without # and ".'
            )
        if (
            value or tag == "Host"
        ):  # without Host, the server would fill in the caller's
            fields.append(f"{tag}:\t{value}")
    if description := spec.description.rstrip("\n"):
        fields.append(_block("Description", description.split("\n")))
    if spec.view:
        if any(_CONTROL.search(line.replace("\t", " ")) for line in spec.view):
            raise ValueError("Each line of a view must be one printable line.")
        fields.append(_block("View", spec.view))
    return storable("\n\n".join(fields) + "\n")


def parse_client_spec(text: str) -> ClientSpec:
    """Return the client spec of a form; the exact inverse of render_client_spec.

    Fields that ClientSpec lacks are dropped. So are trailing line breaks of the
    description, and Update and Access, which a form gives in the server's local time.

    Raises: ValueError (not a client form).
    """
    values = form_fields(as_named(text))
    if not values.get("Client"):
        raise ValueError("The form does not name a client.")
    one_line = {
        attribute: " ".join(values[tag])
        for tag, attribute in ONE_LINE_FIELDS
        if tag in values
    }
    return replace(
        ClientSpec(name="", owner="", root=""),
        **one_line,  # type: ignore[arg-type]  # none of the tags is a time
        description="\n".join(values.get("Description", [])).rstrip("\n"),
        view=tuple(line for line in values.get("View", []) if line.strip()),
    )


def form_fields(text: str) -> dict[str, list[str]]:
    """Return the lines of each field of a form.

    Raises: ValueError (not a form).
    """
    values: dict[str, list[str]] = {}
    tag = ""
    for line in text.split("\n"):
        if line.startswith("\t") and tag:
            values[tag].append(line[1:])
        elif line and not line.startswith("#"):
            tag, colon, value = line.partition(":")
            if not colon or not tag.isalnum():
                raise ValueError(f"Not a line of a form: {line!r}")
            values[tag] = [value.strip()] if value.strip() else []
    return values


def split_view_line(line: str) -> ViewLine:
    """Split a mapping into its parts. A trailing ` ## comment` is dropped.

    Raises: ViewRefused (not two words).
    """
    words = _view_words(line)
    if len(words) > 2:
        raise ViewRefused(
            "view_unquoted_spaces",
            f"This view line has more than two parts: {line.strip()} — put a path "
            "with spaces in double quotes.",
        )
    if len(words) < 2:
        raise ViewRefused(
            "view_line_incomplete",
            f"This view line needs a depot path and a client path: {line.strip()} — "
            "write it like //depot/main/... //client/main/...",
        )
    depot, client = words
    flag = depot[0] if depot[0] in "-+&" else ""
    return ViewLine(flag=flag, depot=depot[len(flag) :], client=client)


def rename_view(view: tuple[str, ...], *, old: str, new: str) -> tuple[str, ...]:
    """Return the view of client `old`, rewritten for client `new`.

    Raises: ViewRefused (a line that is not of client `old`).
    """
    renamed = []
    for text in view:
        line = split_view_line(text)
        prefix = f"//{old}/"
        # A case-sensitive server accepts only its own spelling, so this is safe.
        if not line.client.lower().startswith(prefix.lower()):
            raise ViewRefused(
                "view_other_client",
                f"The right side of this view line is not below {prefix}: {text}",
            )
        moved = f"//{new}/{line.client[len(prefix) :]}"
        renamed.append(
            str(ViewLine(flag=line.flag, depot=line.depot, client=moved)),
        )
    return tuple(renamed)


def check_view(lines: tuple[str, ...]) -> None:
    """Refuse a view that the server would refuse or that maps a whole server.

    Raises: ViewRefused.
    """
    parsed = [split_view_line(line) for line in lines if line.strip()]
    if all(line.flag == "-" for line in parsed):
        raise ViewRefused(
            "view_empty",
            "The view maps no file; add a line like //depot/main/... //client/main/...",
        )
    for line in parsed:
        _check_side(line.depot)
        _check_side(line.client)
        _check_wildcards(line)
        _check_depot_name(line)
    _check_one_client(parsed)


def check_stream(stream: str) -> None:
    """Refuse anything but the path of a single stream.

    Raises: SpecRefused.
    """
    is_plain = not re.search(r'[@#"]', stream) and not _WILDCARD.search(stream)
    if not _STREAM.fullmatch(stream) or not is_plain:
        raise SpecRefused(
            "stream_syntax",
            f"{stream!r} is not the path of a stream; write it like //depot/main.",
        )


def check_client_options(options: str) -> None:
    """Refuse options that are unknown, incomplete, contradictory or unusable here.

    Raises: SpecRefused.
    """
    words = options.split()
    known = {word for pair in _OPTION_PAIRS for word in pair}
    for word in words:
        if word in _OPTIONS_REFUSED:
            raise SpecRefused(
                "client_option_unusable",
                f"The client option {word} cannot be used: {_OPTIONS_REFUSED[word]}",
            )
        if word not in known | {"noaltsync"}:
            raise SpecRefused(
                "client_option_unknown",
                f"{word} is not a client option; use "
                + ", ".join(" or ".join(pair) for pair in _OPTION_PAIRS)
                + ".",
            )
    for pair in _OPTION_PAIRS:
        if sum(words.count(word) for word in pair) != 1:
            raise SpecRefused(
                "client_option_pair",
                f"The client options must say either {pair[0]} or {pair[1]}, once.",
            )


def check_submit_options(options: str) -> None:
    """Refuse unknown submit options.

    Raises: SpecRefused.
    """
    if options not in _SUBMIT_OPTIONS:
        raise SpecRefused(
            "submit_options_unknown",
            f"{options!r} are not submit options; use one of "
            f"{', '.join(_SUBMIT_OPTIONS)}.",
        )


def check_line_end(line_end: str) -> None:
    """Refuse an unknown line ending.

    Raises: SpecRefused.
    """
    if line_end not in _LINE_ENDS:
        raise SpecRefused(
            "line_end_unknown",
            f"{line_end!r} is not a line ending; use one of {', '.join(_LINE_ENDS)}.",
        )


def _block(tag: str, lines: tuple[str, ...] | list[str]) -> str:
    return "\n".join([f"{tag}:", *(f"\t{line}" for line in lines)])


def _quoted(path: str) -> str:
    return f'"{path}"' if set(path) & set(" \t") else path


def _view_words(line: str) -> list[str]:
    words: list[str] = []
    rest = line.strip(" \t")
    while rest and not rest.startswith("##"):
        match = _WORD.match(rest)
        if match is None:
            raise ViewRefused(
                "view_quotes",
                f"The double quotes of this view line do not match: {line.strip()} — "
                "put each whole path in one pair.",
            )
        flag, quoted, bare = match.groups()
        words.append(bare if bare is not None else flag + quoted)
        rest = rest[match.end() :].lstrip(" \t")
    return [word for word in words if word]


def _check_side(path: str) -> None:
    parts = path.removeprefix("//").split("/")
    if not path.startswith("//") or len(parts) < 2 or "" in parts:
        if path == "//...":
            return  # _check_depot_name explains this one better
        raise ViewRefused(
            "view_syntax",
            f"{path} is not a path in depot syntax; write it like //depot/main/... "
            "with no empty parts.",
        )
    if "." in parts or ".." in parts or _CONTROL.search(path):
        raise ViewRefused(
            "view_syntax",
            f"{path!r} has a part that no depot path can have (., .. or a control "
            "character); write the full path.",
        )
    if "@" in path or "#" in path:
        raise ViewRefused(
            "view_revision",
            f"{path} has @ or #, which stand for revisions; leave the revision out, or "
            "write %40 for @ and %23 for # where they belong to a name.",
        )


def _check_wildcards(line: ViewLine) -> None:
    left = sorted(_WILDCARD.findall(line.depot))
    if left != sorted(_WILDCARD.findall(line.client)):
        raise ViewRefused(
            "view_wildcards",
            f"The wildcards (..., *, %%1 to %%9) differ between {line.depot} and "
            f"{line.client}; use the same ones on both sides.",
        )
    numbered = [wildcard for wildcard in left if wildcard.startswith("%%")]
    if len(set(numbered)) < len(numbered):
        raise ViewRefused(
            "view_wildcards",
            f"A numbered wildcard appears twice in {line.depot}; use each once.",
        )
    for path in (line.depot, line.client):
        if re.search(rf"(?:{_WILDCARD.pattern}){{2}}", path):
            raise ViewRefused(
                "view_wildcards",
                f"{path} has two wildcards side by side; leave one of them out.",
            )


def _check_depot_name(line: ViewLine) -> None:
    depot = line.depot.removeprefix("//").split("/")[0]
    if line.flag != "-" and _WILDCARD.search(depot):
        raise ViewRefused(
            "view_whole_server",
            f"{line.depot} maps every depot of the server, so a template would hold "
            "all of it; name a depot and a path instead.",
        )


def _check_one_client(lines: list[ViewLine]) -> None:
    names = sorted({line.client.removeprefix("//").split("/")[0] for line in lines})
    if len(names) > 1 or _WILDCARD.search(names[0]):
        raise ViewRefused(
            "view_other_client",
            "Every line of a view must have the same client on its right side, "
            f"not {' and '.join(names)}.",
        )
