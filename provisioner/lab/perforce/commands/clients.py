"""p4 client, clients."""

from __future__ import annotations

from collections.abc import Callable

from provisioner.lab.perforce import case
from provisioner.lab.perforce import clients as client_specs
from provisioner.lab.perforce.commands.client_removal import delete_client
from provisioner.lab.perforce.commands.forms import (
    day,
    form_date,
    read_form,
    refused,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.holdings import opened_by
from provisioner.lab.perforce.identifiers import check_identifier
from provisioner.lab.perforce.kinds import check_bound, server_of_clients
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.paths import pattern_matches
from provisioner.lab.perforce.replication import (
    check_bound_elsewhere,
    publish_client,
)
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import CLIENT, Fields
from provisioner.lab.perforce.specstore import (
    StoredSpec,
    all_specs,
    find_spec,
    save_spec,
)
from provisioner.lab.perforce.state import touch_client
from provisioner.lab.perforce.streams import get_stream, stream_view
from provisioner.lab.perforce.views import (
    format_view_line,
    is_well_formed,
    parse_view_line,
    split_words,
)


def client(request: Request) -> None:
    """Answer `p4 client -o`, `-i`, `-d` and `-s`."""
    if request.has("d"):
        delete_client(request, usage=_USAGE)
    elif request.has("s"):
        _switch(request)
    elif request.has("o"):
        _show(request)
    elif request.has("i"):
        _save(request)
    else:
        raise CommandError(7198, usage=_USAGE)


def _named(request: Request) -> str:
    return request.args[0] if request.args else request.client_name


def _find(request: Request, name: str) -> StoredSpec | None:
    """Return a client's spec, or None. Naming it updates its access date."""
    touch_client(request.state, name=name)
    return find_spec(request.state.database, kind="client", name=name)


def _show(request: Request) -> None:
    name = _named(request)
    spec = _find(request, name)
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
        if spec is not None and spec.text("Stream") != request.options["S"]:
            raise CommandError(6965, client=name)
        fields.update(_from_stream(request, name=name))
    if request.has("t"):
        fields.update(_from_template(request, name=name))
    if request.has("T"):
        fields.update(_typed(request, spec))
    request.show_form(fields, definition=CLIENT)


def _typed(request: Request, spec: StoredSpec | None) -> Fields:
    """Return the type that `-T` gives a new client; an existing one keeps its type.

    Source: p4 help client.
    """
    wanted = request.options["T"]
    if wanted not in client_specs.TYPES:
        raise CommandError(7198, usage=_USAGE)
    _check_storage(request, wanted)
    kept = "writeable" if spec is None else spec.text("Type") or "writeable"
    if spec is not None and wanted != kept:
        raise CommandError(7038)
    return {"Type": wanted} if wanted != "writeable" else {}


def _check_storage(request: Request, wanted: str) -> None:
    if wanted not in ("writeable", "graph") and not (
        request.state.configurables.text("client.readonly.dir")
    ):
        raise CommandError(7030, type=wanted)


def _switch(request: Request) -> None:
    """Give a client another view: that of a stream, or of another client (-s).

    Source: p4 help client.
    """
    name = _named(request)
    spec = _find(request, name)
    if request.has("S") == request.has("t"):
        raise CommandError(7198, usage=_USAGE)
    if spec is None:
        raise CommandError(6178, type="Client", name=name)
    request.check_usable(client_specs.client_of(spec, view=[]))
    is_forced = request.has("f")
    if not is_forced and opened_by(request.state.database, client=name):
        raise CommandError(6751, client=name)
    if request.has("t"):
        new: Fields = {"View": _from_template(request, name=name)["View"]}
        kept = {tag: text for tag, text in spec.fields.items() if tag != "Stream"}
    else:
        if not (spec.text("Stream") or is_forced):
            raise CommandError(6829, client=name)
        get_stream(request.state.database, name=request.options["S"])
        new = {"Stream": request.options["S"]}
        kept = {tag: text for tag, text in spec.fields.items() if tag != "View"}
    save_spec(request.state.database, kind="client", name=name, fields={**kept, **new})
    request.say(6752, domainType="Client", domainName=name)


def _from_template(request: Request, *, name: str) -> Fields:
    """Return what `-t` copies from another client: its view and options only."""
    template = request.options["t"]
    spec = _find(request, template)
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
    """Return what `-S` gives a client: the stream and its view."""
    stream = request.options["S"]
    view = stream_view(request.state.database, stream=stream, client=name)
    return {"Stream": stream, "View": view}


def _save(request: Request) -> None:
    fields = read_form(request, CLIENT)
    name = fields.get("Client", "")
    assert isinstance(name, str)
    database = request.state.database
    if not name:
        raise refused("client", "Missing required field 'Client'.")
    check_identifier(database, kind="client", name=name)
    check_bound(request, name)
    if request.state.config.follows_and_binds:
        check_bound_elsewhere(request.state, name=name)
    old = find_spec(database, kind="client", name=name)
    if find_spec(database, kind="unloaded", name=name):
        raise CommandError(6846, domainType="Client", domain=name)
    if not fields.get("ServerID") and (server := server_of_clients(request)):
        fields["ServerID"] = server
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
    _check_storage(request, str(fields.get("Type", "writeable")))
    for tag in ("ChangeView", "StreamAtChange"):
        if fields.get(tag):
            raise NotInLab(f"{tag} of a client")
    if fields.get("Type") == "writeable":
        del fields["Type"]
    if old is not None:
        _check_may_change(request, old, fields)
    changed = save_spec(database, kind="client", name=name, fields=fields)
    if request.state.config.follows_and_binds:
        publish_client(request.state, name=name)
    request.say(6370 if changed else 6371, domainType="Client", domainName=name)


def _complete_options(fields: Fields) -> str:
    """Return all options in order, with defaults for those not named."""
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
    texts = fields.get("View")
    if texts is None:
        texts = client_specs.default_view(request.state.database, client=name)
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
        if not case.begins(line.right, f"//{name}/"):
            raise CommandError(6188, depotFile=line.right, prefix=f"//{name}/")
        lines.append(text if "##" in text else format_view_line(line))
    return lines


def _check_may_change(request: Request, old: StoredSpec, fields: Fields) -> None:
    is_forced = request.has("f") and request.state.is_admin(request.user)
    is_locked = "locked" in old.text("Options").split()
    owner = old.text("Owner")
    if is_locked and owner != request.user and not is_forced:
        raise CommandError(6212, type="client", name=old.name, user=owner)
    _check_type_may_change(
        request, old, was=old.text("Type"), wanted=str(fields.get("Type") or "")
    )


def _check_type_may_change(
    request: Request, old: StoredSpec, *, was: str, wanted: str
) -> None:
    """Refuse a type that an existing client cannot get.

    Source: p4 help client: readonly becomes partitioned; writeable and graph may be
    swapped while nothing is opened.

    Raises: CommandError.
    """
    if was == wanted or (was, wanted) == ("readonly", "partitioned"):
        return
    if {was, wanted} != {"", "graph"}:
        raise CommandError(7038)
    if opened_by(request.state.database, client=old.name):
        raise CommandError(7102)


def clients(request: Request) -> None:
    """Answer `p4 clients`, which updates no access date."""
    limit = request.number("m", default=0)
    found = 0
    kind = "unloaded" if request.has("U") else "client"
    is_listed = _filter(request)
    for spec in all_specs(
        request.state.database, kind=kind, is_wanted=_filter_of_names(request)
    ):
        if not is_listed(spec):
            continue
        _list_one(request, spec)
        found += 1
        if found == limit:
            break


def _filter_of_names(request: Request) -> Callable[[str], bool]:
    """Return a filter of clients' names from the options. Source: p4 help clients."""
    exact, in_any_case = request.options.get("e"), request.options.get("E")

    def is_wanted(name: str) -> bool:
        return (exact is None or pattern_matches(exact, name)) and (
            in_any_case is None or pattern_matches(in_any_case.lower(), name.lower())
        )

    return is_wanted


def _filter(request: Request) -> Callable[[StoredSpec], bool]:
    """Return a filter of clients from the other options. Source: as above."""
    options = request.options
    any_case = request.has("user-case-insensitive")
    config = request.state.config
    usable = {config.server_id, *([] if config.services == "edge-server" else [""])}

    def matches(pattern: str, text: str, *, ignores_case: bool) -> bool:
        if ignores_case:
            pattern, text = pattern.lower(), text.lower()
        return pattern_matches(pattern, text)

    def is_listed(spec: StoredSpec) -> bool:
        owner, stream, server = (
            spec.text(tag) for tag in ("Owner", "Stream", "ServerID")
        )
        tests = (
            "u" not in options or matches(options["u"], owner, ignores_case=any_case),
            "S" not in options or matches(options["S"], stream, ignores_case=False),
            "s" not in options or options["s"] == server,
            # Those of other servers are listed with -a or by the server's name.
            bool({"a", "s"} & options.keys()) or server in usable,
        )
        return all(tests)

    return is_listed


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
        description=spec.text("Description").replace("\n", " "),
    )


_USAGE = (
    "client -o [-t template] [-T type] [-S stream] [name] | -i [-f]"
    " | -d [-f [-Fs|-Fd] [--serverid=X]] name | -s [-f] -S stream|-t template [name]"
)

COMMANDS = (
    Command(
        names=("client", "workspace"),
        most_arguments=1,
        run=client,
        usage=_USAGE,
        flags="oidfs",
        valued="tFST",
        absent="c",
        long=("serverid",),
    ),
    Command(
        names=("clients", "workspaces"),
        most_arguments=0,
        run=clients,
        usage=(
            "clients [-t -U] [-u user [--user-case-insensitive]] [-e|-E filter]"
            " [-m max] [-S stream] [-a|-s serverID]"
        ),
        flags="taU",
        valued="ueEmSs",
        long=("user-case-insensitive",),
    ),
)
