"""p4 depot, depots, counter, counters."""

from __future__ import annotations

from provisioner.lab.perforce.commands.forms import day, read_form, refused
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.identifiers import check_identifier
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import DEPOT
from provisioner.lab.perforce.specstore import (
    all_specs,
    delete_spec,
    find_spec,
    save_spec,
)
from provisioner.lab.perforce.state import new_depot_fields
from provisioner.lab.perforce.wire import Value


def depots(request: Request) -> None:
    """Answer `p4 depots`."""
    for spec in all_specs(request.state.database, kind="depot"):
        record: dict[str, Value] = {
            "name": spec.name,
            "time": spec.updated,
            "type": spec.text("Type"),
            "map": spec.text("Map"),
            "desc": spec.text("Description"),
        }
        request.report(
            record,
            6357,
            type="Depot",
            depotName=spec.name,
            updateDate=day(spec.updated),
            location=spec.text("Type"),
            map=spec.text("Map"),
            description=spec.text("Description").rstrip("\n"),
        )


def depot(request: Request) -> None:
    """Answer `p4 depot -o`, `-i` and `-d`."""
    database = request.state.database
    if request.has("i"):
        _save_depot(request)
        return
    if not request.args:
        raise CommandError(7198, usage=_DEPOT_USAGE)
    name = request.args[0]
    spec = find_spec(database, kind="depot", name=name)
    if request.has("o"):
        fresh = new_depot_fields(name, owner=request.user)
        fresh["Type"] = request.options.get("t", "local")
        request.show_form(spec.fields if spec else fresh, definition=DEPOT)
    elif request.has("d"):
        _check_admin(request)
        if spec is None:
            raise CommandError(6176, depot=name)
        in_use = "SELECT 1 FROM revisions WHERE path>=? AND path<? LIMIT 1"
        if database.execute(in_use, f"//{name}/", f"//{name}0").fetchone():
            raise refused("depot", f"Depot '{name}' has files and can't be deleted.")
        with database.writing():
            delete_spec(database, kind="depot", name=name)
        request.say(6356, depotName=name)
    else:
        raise CommandError(7198, usage=_DEPOT_USAGE)


def _save_depot(request: Request) -> None:
    _check_admin(request)
    fields = read_form(request, DEPOT)
    name = fields.get("Depot", "")
    assert isinstance(name, str)
    if not name:
        raise refused("depot", "Missing required field 'Depot'.")
    if fields.get("Type", "local") not in ("local", "stream", "unload"):
        raise refused(
            "depot", "Only local, stream and unload depots are part of the lab."
        )
    check_identifier(request.state.database, kind="depot", name=name)
    old = find_spec(request.state.database, kind="depot", name=name)
    fresh = new_depot_fields(name, owner=request.user)
    fields = {**fresh, **fields, "Date": old.text("Date") if old else fresh["Date"]}
    save_spec(request.state.database, kind="depot", name=name, fields=fields)
    request.say(6354, depotName=name)


def _check_admin(request: Request) -> None:
    if not request.state.is_super(request.user):
        raise CommandError(6185)


def counter(request: Request) -> None:
    """Answer `p4 counter`: read, set, increment, delete."""
    database = request.state.database
    if not request.args:
        raise CommandError(7198, usage=_COUNTER_USAGE)
    name = request.args[0]
    if request.has("d") or request.has("i") or len(request.args) > 1:
        if name == "change":
            raise CommandError(6185)
        with database.writing():
            if request.has("d"):
                database.execute("DELETE FROM counters WHERE name=?", name)
                request.say(7268, counterName=name)
                return
            if request.has("i"):
                if not database.counter(name).isdecimal():
                    raise CommandError(7591, counterName=name)
                value = str(int(database.counter(name)) + 1)
            else:
                value = request.args[1]
            database.set_counter(name, value)
        if not request.has("i"):
            request.say(7269, counterName=name)
            return
    value = database.counter(name)
    request.report({"counter": name, "value": value}, 7270, counterValue=value)


def counters(request: Request) -> None:
    """Answer `p4 counters`."""
    for name, value in request.state.database.rows(
        "SELECT name, value FROM counters ORDER BY name"
    ):
        request.report(
            {"counter": str(name), "value": str(value)},
            7270,
            counterValue=f"{name} = {value}",
        )


_DEPOT_USAGE = "depot -o | -d name, depot -i"
_COUNTER_USAGE = "counter [-d] [-i] name [value]"

COMMANDS = (
    Command(
        names=("depots",), most_arguments=0, run=depots, usage="depots", absent="te"
    ),
    Command(
        names=("depot",),
        most_arguments=1,
        run=depot,
        usage=_DEPOT_USAGE,
        flags="oidf",
        valued="t",
    ),
    Command(
        names=("counter",),
        most_arguments=2,
        run=counter,
        usage=_COUNTER_USAGE,
        flags="dif",
        absent="um",
    ),
    Command(
        names=("counters",),
        most_arguments=0,
        run=counters,
        usage="counters",
        absent="uem",
    ),
)
