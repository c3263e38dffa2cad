"""p4 stream, streams."""

from __future__ import annotations

from provisioner.lab.perforce import streams as stream_views
from provisioner.lab.perforce.commands.forms import form_date, read_form, refused
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filters import parse_filter
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.paths import pattern_matches
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import STREAM, Fields
from provisioner.lab.perforce.specstore import (
    all_specs,
    delete_spec,
    find_spec,
    save_spec,
)
from provisioner.lab.perforce.views import split_words
from provisioner.lab.perforce.wire import Value

_OPTIONS = "allsubmit unlocked toparent fromparent mergedown"


def stream(request: Request) -> None:
    """Answer `p4 stream -o`, `-i` and `-d`."""
    if request.has("i"):
        _save(request)
        return
    if not request.args:
        raise CommandError(7198, usage=_USAGE)
    name = request.args[0]
    database = request.state.database
    if request.has("o"):
        _show(request, name)
    elif request.has("d"):
        stream_views.get_stream(database, name=name)
        for client in all_specs(database, kind="client"):
            if client.text("Stream") == name:
                raise refused("stream", f"Stream '{name}' has active clients.")
        with database.writing():
            delete_spec(database, kind="stream", name=name)
        request.say(6372, domainType="Stream", domainName=name)
    else:
        raise CommandError(7198, usage=_USAGE)


def _show(request: Request, name: str) -> None:
    spec = find_spec(request.state.database, kind="stream", name=name)
    fields: Fields
    if spec is None:
        fields = {
            "Stream": name,
            "Owner": request.user,
            "Name": name.rpartition("/")[2],
            "Parent": request.options.get("P", "none"),
            "Type": request.options.get("t", "mainline"),
            "Description": f"Created by {request.user}.\n",
            "Options": _OPTIONS,
            "ParentView": "inherit",
            "Paths": ["share ..."],
        }
    else:
        fields = {
            **spec.fields,
            "Update": form_date(spec.updated),
            "Access": form_date(spec.accessed),
        }
    request.show_form(fields, definition=STREAM)


def _save(request: Request) -> None:
    fields = read_form(request, STREAM)
    name = str(fields.get("Stream", ""))
    database = request.state.database
    depot, _, rest = name.removeprefix("//").partition("/")
    found = find_spec(database, kind="depot", name=depot)
    if not name.startswith("//") or not rest or found is None:
        raise refused("stream", f"'{name}' is not in a stream depot.")
    if found.text("Type") != "stream":
        raise refused("stream", f"Depot '{depot}' is not a stream depot.")
    if fields.get("Type") not in stream_views.TYPES:
        kinds = ", ".join(stream_views.TYPES)
        raise refused("stream", f"Of stream types only {kinds} are part of the lab.")
    parent = str(fields.get("Parent", "none"))
    if (parent == "none") != (fields["Type"] == "mainline"):
        raise refused("stream", "A mainline has no parent, and others have one.")
    if parent != "none":
        stream_views.get_stream(database, name=parent)
    _check_lines(fields)
    fields.setdefault("Owner", request.user)
    fields.setdefault("Options", _OPTIONS)
    changed = save_spec(database, kind="stream", name=name, fields=fields)
    request.say(6370 if changed else 6371, domainType="Stream", domainName=name)


def _check_lines(fields: Fields) -> None:
    for text in fields.get("Paths", []):
        words = split_words(text)
        if not words:
            continue  # a comment
        if len(words) not in (2, 3) or words[0] not in stream_views.PATH_TYPES:
            raise refused("stream", f"Path line is not part of the lab: {text}")
    for tag, size in (("Remapped", 2), ("Ignored", 1)):
        for text in fields.get(tag, []):
            if len(split_words(text)) not in (0, size):
                raise refused("stream", f"{tag} line is malformed: {text}")


def streams(request: Request) -> None:
    """Answer `p4 streams`. Source: p4 help streams."""
    passes = (
        parse_filter(request.options["F"], command="streams")
        if request.has("F")
        else None
    )
    fields = request.options.get("T", "").replace(",", " ").split()
    limit, shown = request.number("m", default=0), 0
    for spec in all_specs(request.state.database, kind="stream"):
        if request.args and not any(
            pattern_matches(argument, spec.name) for argument in request.args
        ):
            continue
        record: dict[str, Value] = {
            "Stream": spec.name,
            "Update": spec.updated,
            "Access": spec.accessed,
            **{
                tag: spec.text(tag)
                for tag in ("Owner", "Name", "Parent", "Type", "Options")
            },
            "desc": spec.text("Description"),
        }
        if passes is not None and not passes(record):
            continue
        if shown and shown == limit:
            break
        shown += 1
        if request.is_tagged:
            if fields:
                record = {tag: record[tag] for tag in record if tag in fields}
            request.record(record)
        else:
            request.info(
                f"Stream {spec.name} {spec.text('Type')} {spec.text('Parent')}"
                f" '{spec.text('Name')}'"
            )


_USAGE = "stream -o [-t type] [-P parent] name | -i | -d name"

COMMANDS = (
    Command(
        names=("stream",),
        most_arguments=1,
        run=stream,
        usage=_USAGE,
        flags="oidf",
        valued="tP",
        absent="v",
    ),
    Command(
        names=("streams",),
        run=streams,
        usage="streams [-F filter] [-T fields] [-m max] [stream...]",
        valued="FTm",
        absent="aUu",
        long=(),
    ),
)
