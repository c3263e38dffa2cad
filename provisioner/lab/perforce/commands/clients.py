"""p4 client, clients."""

# ruff: noqa: S608 - statements are composed of our own constants; values are bound
from __future__ import annotations

from provisioner.lab.perforce import clients as client_specs
from provisioner.lab.perforce.commands.forms import (
    day,
    form_date,
    read_form,
    refused,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.paths import pattern_matches
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import CLIENT, Fields
from provisioner.lab.perforce.specstore import (
    StoredSpec,
    all_specs,
    delete_spec,
    find_spec,
    save_spec,
)
from provisioner.lab.perforce.streams import get_stream, stream_view
from provisioner.lab.perforce.views import (
    format_view_line,
    is_well_formed,
    parse_view_line,
    split_words,
)


def client(request: Request) -> None:
    """Answer `p4 client -o`, `-i` and `-d`."""
    if request.has("o"):
        _show(request)
    elif request.has("i"):
        _save(request)
    elif request.has("d"):
        _delete(request)
    else:
        raise CommandError(7198, usage=_USAGE)


def _show(request: Request) -> None:
    name = request.args[0] if request.args else request.client_name
    spec = find_spec(request.state.database, kind="client", name=name)
    if spec is None:
        fields = client_specs.default_fields(
            request.state.database,
            name=name,
            user=request.user,
            host=request.host,
            cwd=request.cwd,
        )
    else:
        fields = {
            **spec.fields,
            "Update": form_date(spec.updated),
            "Access": form_date(spec.accessed),
            "View": list(client_specs.view_lines(request.state.database, spec)),
        }
    if request.has("S"):
        fields.update(_from_stream(request, name=name))
    if request.has("t"):
        fields.update(_from_template(request, name=name))
    request.show_form(fields, definition=CLIENT)


def _from_template(request: Request, *, name: str) -> Fields:
    """Return what `-t` takes from another client: its view and options, no more."""
    template = request.options["t"]
    spec = find_spec(request.state.database, kind="client", name=template)
    if spec is None:
        raise CommandError(6178, type="Client", name=template)
    return {
        "Options": spec.text("Options"),
        "View": client_specs.renamed_view(
            client_specs.view_lines(request.state.database, spec),
            old=template,
            new=name,
        ),
    }


def _from_stream(request: Request, *, name: str) -> Fields:
    """Return what `-S` gives a client: the stream and the view that comes of it."""
    stream = request.options["S"]
    view = stream_view(request.state.database, stream=stream, client=name)
    return {"Stream": stream, "View": view}


def _save(request: Request) -> None:
    fields = read_form(request, CLIENT)
    name = fields.get("Client", "")
    assert isinstance(name, str)
    database = request.state.database
    _check_name(request, name)
    old = find_spec(database, kind="client", name=name)
    if find_spec(database, kind="unloaded", name=name):
        raise CommandError(6846, domainType="Client", domain=name)
    fields.setdefault("Owner", old.text("Owner") if old else request.user)
    fields.setdefault("SubmitOptions", client_specs.DEFAULT_SUBMIT_OPTIONS)
    fields.setdefault("LineEnd", "local")
    fields["Options"] = _complete_options(fields)
    if fields.get("Stream"):
        get_stream(database, name=str(fields["Stream"]))
        fields.pop("View", None)
    else:
        fields["View"] = _checked_view(request, fields, name=name)
    if not fields.get("Root"):
        raise refused("client", "Missing required field 'Root'.")
    if fields.get("Type", "writeable") not in ("writeable", "graph") and not (
        request.state.configurables.text("client.readonly.dir")
    ):
        raise CommandError(7030, type=str(fields["Type"]))
    if fields.get("Type") == "writeable":
        del fields["Type"]
    if old is not None:
        _check_may_change(request, old, fields)
    changed = save_spec(database, kind="client", name=name, fields=fields)
    request.say(6370 if changed else 6371, domainType="Client", domainName=name)


# What a name must not have, with the message that says so.
_FORBIDDEN = ((6151, ("@", "#")), (6155, ("...", "*", "%%")), (6152, ("/",)))


def _check_name(request: Request, name: str) -> None:
    if not name:
        raise refused("client", "Missing required field 'Client'.")
    if name.isdecimal():
        raise CommandError(6156, id=name)
    for number, marks in _FORBIDDEN:
        if any(mark in name for mark in marks):
            raise CommandError(number, id=name)
    for kind in ("depot", "label"):
        if find_spec(request.state.database, kind=kind, name=name):
            raise refused("client", f"{name} is already the name of a {kind}.")


def _complete_options(fields: Fields) -> str:
    """Return all options, in their order, unnamed ones at their default."""
    text = fields.get("Options", "")
    assert isinstance(text, str)
    given = set(text.split())
    chosen = []
    for default in client_specs.DEFAULT_OPTIONS.split():
        opposite = default.removeprefix("no") if default != "unlocked" else "locked"
        chosen.append(opposite if opposite in given else default)
        given -= {default, opposite}
    given -= {"noaltsync"}
    if given:
        raise refused("client", f"Options unknown here: {' '.join(sorted(given))}.")
    return " ".join(chosen)


def _checked_view(request: Request, fields: Fields, *, name: str) -> list[str]:
    texts = fields.get("View") or client_specs.default_view(
        request.state.database, client=name
    )
    assert isinstance(texts, list)
    lines = []
    for text in texts:
        if not split_words(text):
            lines.append(text)  # a comment
            continue
        line = parse_view_line(text)
        if line is None or not is_well_formed(line):
            raise refused("client", f"View line is malformed: {text}")
        if not line.left.startswith("//"):
            raise CommandError(6188, depotFile=line.left, prefix="//")
        depot = line.left[2:].partition("/")[0]
        if find_spec(request.state.database, kind="depot", name=depot) is None:
            raise CommandError(6188, depotFile=line.left, prefix="//depot/...")
        if not line.right.startswith(f"//{name}/"):
            raise CommandError(6188, depotFile=line.right, prefix=f"//{name}/")
        lines.append(text if "##" in text else format_view_line(line))
    return lines


def _check_may_change(request: Request, old: StoredSpec, fields: Fields) -> None:
    is_forced = request.has("f") and request.state.is_super(request.user)
    is_locked = "locked" in old.text("Options").split()
    owner = old.text("Owner")
    if is_locked and owner != request.user and not is_forced:
        raise CommandError(6212, type="client", name=old.name, user=owner)
    if (fields.get("Type") or "") != old.text("Type") and not (
        old.text("Type") == "readonly" and fields.get("Type") == "partitioned"
    ):
        raise CommandError(7038)


def _delete(request: Request) -> None:
    if not request.args:
        raise CommandError(7198, usage=_USAGE)
    name = request.args[0]
    database = request.state.database
    spec = find_spec(database, kind="client", name=name)
    if spec is None:
        raise CommandError(6178, type="Client", name=name)
    _check_may_delete(request, spec)
    have_table = client_specs.client_of(spec, view=[]).have_table
    locks = request.locks.writing({"db.domain": 1, "db.view": 1, have_table: 0})
    with locks, database.writing():
        delete_spec(database, kind="client", name=name)
        for table in ("have", "opened", "resolves"):
            database.execute(f"DELETE FROM {table} WHERE client=?", name)
        if request.options.get("F") == "d":
            database.execute(
                "DELETE FROM shelved WHERE change IN"
                " (SELECT change FROM changes WHERE client=?)",
                name,
            )
        database.execute(
            "DELETE FROM changes WHERE client=? AND status='pending' AND change"
            " NOT IN (SELECT change FROM shelved)",
            name,
        )
    request.say(6372, domainType="Client", domainName=name)


def _check_may_delete(request: Request, spec: StoredSpec) -> None:
    is_admin = request.state.is_super(request.user)
    if request.has("F") and not request.has("f"):
        raise CommandError(7198, usage=_USAGE)
    if request.has("f"):
        if not is_admin:
            raise CommandError(6185)
    elif (
        "locked" in spec.text("Options").split() and spec.text("Owner") != request.user
    ):
        raise CommandError(6214, type="Client", name=spec.name)
    database = request.state.database
    has_shelves = database.execute(
        "SELECT 1 FROM shelved JOIN changes USING (change) WHERE client=?", spec.name
    ).fetchone()
    if has_shelves and request.options.get("F") not in ("s", "d"):
        raise CommandError(6668, client=spec.name)
    if request.has("f"):
        return
    if database.execute("SELECT 1 FROM opened WHERE client=?", spec.name).fetchone():
        raise CommandError(6215, client=spec.name)
    if database.execute(
        "SELECT 1 FROM changes WHERE client=? AND status='pending'", spec.name
    ).fetchone():
        raise CommandError(6591, client=spec.name)


def clients(request: Request) -> None:
    """Answer `p4 clients`."""
    limit = request.number("m", default=0)
    found = 0
    kind = "unloaded" if request.has("U") else "client"
    for spec in all_specs(request.state.database, kind=kind):
        if not _is_listed(request, spec):
            continue
        _list_one(request, spec)
        found += 1
        if found == limit:
            break


def _is_listed(request: Request, spec: StoredSpec) -> bool:
    if request.has("u") and spec.text("Owner") != request.options["u"]:
        return False
    if request.has("S") and spec.text("Stream") != request.options["S"]:
        return False
    if request.has("E"):
        return pattern_matches(request.options["E"].lower(), spec.name.lower())
    return not request.has("e") or pattern_matches(request.options["e"], spec.name)


def _list_one(request: Request, spec: StoredSpec) -> None:
    record: dict[str, str | int] = {
        "client": spec.name,
        "Update": spec.updated,
        "Access": spec.accessed,
    }
    for tag in ("Owner", "Options", "SubmitOptions", "LineEnd", "Root"):
        record[tag] = spec.text(tag)
    for tag in ("Host", "Stream", "ServerID", "Type", "Description"):
        if spec.text(tag):
            record[tag] = spec.text(tag)
    date = form_date(spec.updated) if request.has("t") else day(spec.updated)
    request.report(
        record,
        6373,
        domainType="Client",
        domainName=spec.name,
        updateDate=date,
        domainMount=spec.text("Root"),
        description=spec.text("Description"),
    )


_USAGE = "client -o [-t template] [-S stream] | -i [-f] | -d [-f [-Fs|-Fd]] [name]"

COMMANDS = (
    Command(
        names=("client", "workspace"),
        run=client,
        usage=_USAGE,
        flags="oidf",
        valued="tFS",
        absent="sTc",
    ),
    Command(
        names=("clients", "workspaces"),
        run=clients,
        usage="clients [-t -U] [-u user] [-e|-E filter] [-m max] [-S stream]",
        flags="taU",
        valued="ueEmS",
        absent="s",
    ),
)
