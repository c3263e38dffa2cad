"""p4 label, labels, tag, labelsync; group, groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from provisioner.lab.perforce import case
from provisioner.lab.perforce.commands.forms import day, form_date, read_form, refused
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.holdings import have_in
from provisioner.lab.perforce.identifiers import check_identifier
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.paths import pattern_matches
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import revisions_at, revisions_in
from provisioner.lab.perforce.specs import GROUP, LABEL, Fields, SpecDefinition
from provisioner.lab.perforce.specstore import (
    StoredSpec,
    all_specs,
    delete_spec,
    find_spec,
    save_spec,
)
from provisioner.lab.perforce.wire import Value


def spec_command(
    request: Request, definition: SpecDefinition, *, defaults: Fields
) -> None:
    """Answer `-o`, `-i` and `-d` for specs without rules of their own."""
    key = definition.fields[0].tag
    if request.has("i"):
        fields = read_form(request, definition)
        name = str(fields.get(key, ""))
        if not name:
            raise refused(definition.kind, f"Missing required field '{key}'.")
        _check_owner(request, definition, name)
        database = request.state.database
        check_identifier(database, kind=definition.kind, name=name)
        is_new = find_spec(database, kind=definition.kind, name=name) is None
        changed = save_spec(database, kind=definition.kind, name=name, fields=fields)
        if definition is GROUP:
            done = 6385 if is_new else 6389
            request.say(done if changed else 6388, group=name)
        else:
            done = 6370 if changed else 6371
            request.say(done, domainType=key, domainName=name)
        return
    if not request.args:
        raise CommandError(7198, usage=f"{request.command} -o | -i | -d name")
    name = request.args[0]
    spec = find_spec(request.state.database, kind=definition.kind, name=name)
    if request.has("o"):
        request.show_form(
            {key: name, **defaults} if spec is None else _shown(spec, definition),
            definition=definition,
        )
    elif request.has("d"):
        if spec is None:
            raise CommandError(6178, type=key, name=name)
        _check_owner(request, definition, name)
        with request.state.database.writing():
            delete_spec(request.state.database, kind=definition.kind, name=name)
            if definition is LABEL:
                request.state.database.execute(
                    "DELETE FROM label_files WHERE label=?", name
                )
        if definition is GROUP:
            request.say(6387, group=name)
        else:
            request.say(6372, domainType=key, domainName=name)
    else:
        raise CommandError(7198, usage=f"{request.command} -o | -i | -d name")


def _shown(spec: StoredSpec, definition: SpecDefinition) -> Fields:
    fields = dict(spec.fields)
    if definition.field("Update"):
        fields["Update"] = form_date(spec.updated)
        fields["Access"] = form_date(spec.accessed)
    return fields


def _check_owner(request: Request, definition: SpecDefinition, name: str) -> None:
    """Refuse groups to all but super users, locked labels to all but their owner."""
    if request.state.is_super(request.user):
        return
    spec = find_spec(request.state.database, kind=definition.kind, name=name)
    if definition is GROUP:
        raise CommandError(6185)
    if spec and "locked" in spec.text("Options").split():
        owner = spec.text("Owner")
        if owner != request.user:
            raise CommandError(6212, type="label", name=name, user=owner)


def label(request: Request) -> None:
    """Answer `p4 label -o`, `-i` and `-d`."""
    spec_command(request, LABEL, defaults=_new_label(request))


def _new_label(request: Request) -> Fields:
    depots = [spec.name for spec in all_specs(request.state.database, kind="depot")]
    return {
        "Owner": request.user,
        "Description": f"Created by {request.user}.\n",
        "Options": "unlocked noautoreload",
        "View": [f"//{depot}/..." for depot in depots],
    }


def labels(request: Request) -> None:
    """Answer `p4 labels`. Source: p4 help labels."""
    holding = _labels_with(request) if request.args else None
    for spec in listed_specs(request, kind="label", names=holding):
        record: dict[str, Value] = {
            "label": spec.name,
            "Update": spec.updated,
            "Access": spec.accessed,
            "Owner": spec.text("Owner"),
            "Options": spec.text("Options"),
            "Description": spec.text("Description"),
        }
        if request.is_tagged:
            request.record(record)
        else:
            text = spec.text("Description").replace("\n", " ")
            date = form_date(spec.updated) if request.has("t") else day(spec.updated)
            request.info(f"Label {spec.name} {date} '{text}'")


def listed_specs(
    request: Request, *, kind: str, names: set[str] | None = None
) -> Iterator[StoredSpec]:
    """Yield the specs of a kind that -u, -e, -E and -m choose, all or from `names`."""
    options, limit = request.options, request.number("m", default=0)

    def is_listed(spec: StoredSpec) -> bool:
        name, owner = spec.name, spec.text("Owner")
        return (
            pattern_matches(options.get("u", owner), owner)
            and pattern_matches(options.get("e", name), name)
            and pattern_matches(options.get("E", name).lower(), name.lower())
            and (names is None or name in names)
        )

    specs = filter(is_listed, all_specs(request.state.database, kind=kind))
    return itertools.islice(specs, limit or None)


def _labels_with(request: Request) -> set[str]:
    """Return the labels that have a file of the arguments, at a revision of a range.

    Labels that stand for a revision have no files of their own.
    """
    database = request.state.database
    found = set[str]()
    for wanted in file_sets(request):
        has_range = wanted.lower is not None or wanted.upper.kind != "head"
        revisions = (
            {(r.path, r.revision) for r in revisions_in(database, wanted)}
            if has_range
            else set[tuple[str, int]]()
        )
        in_set = set[str]()
        for label, path, number in database.rows(
            "SELECT label, path, revision FROM label_files"
        ):
            is_meant = (
                (str(path), int(str(number))) in revisions
                if has_range
                else wanted.has_depot_path(str(path)) and wanted.shows(str(path))
            )
            if is_meant:
                in_set.add(str(label))
        found |= in_set
    return found


def tag(request: Request) -> None:
    """Answer `p4 tag -l label`: add revisions to a label, or remove them.

    A label that does not exist is created.

    Source: p4 help tag.
    """
    name = request.options.get("l", "")
    database = request.state.database
    is_new = bool(name) and find_spec(database, kind="label", name=name) is None
    if is_new and not (request.has("d") or request.has("n")):
        check_identifier(database, kind="label", name=name)
        fields: Fields = {"Label": name, **_new_label(request)}
        save_spec(database, kind="label", name=name, fields=fields)
    _tag(request, only_had=False)


def labelsync(request: Request) -> None:
    """Answer `p4 labelsync -l label`: make a label match the client."""
    _tag(request, only_had=True)


def _tag(request: Request, *, only_had: bool) -> None:
    name = request.options.get("l", "")
    database = request.state.database
    if find_spec(database, kind="label", name=name) is None:
        raise CommandError(6178, type="Label", name=name)
    _check_owner(request, LABEL, name)
    for wanted in file_sets(request, default="" if only_had else None):
        if only_had:
            client = request.get_client().name
            found = [
                (h.path, h.revision) for h in have_in(database, wanted, client=client)
            ]
        elif request.has("d"):
            found = _labeled(request, name, wanted)
        else:
            found = [
                (r.path, r.revision)
                for r in revisions_at(database, wanted)
                if not r.is_deleted
            ]
        if not found:
            missing = 6522 if request.has("d") else wanted.nothing_found
            request.say(missing, argc=wanted.typed)
        _put(request, name, found)


def _labeled(request: Request, name: str, wanted: FileSet) -> list[tuple[str, int]]:
    """Return a label's revisions of the files in a set. Source: p4 help tag."""
    rows = request.state.database.rows(
        "SELECT path, revision FROM label_files WHERE label=? ORDER BY path", name
    )
    return [
        (str(path), int(str(number)))
        for path, number in rows
        if wanted.has_depot_path(str(path))
    ]


def _put(request: Request, name: str, found: list[tuple[str, int]]) -> None:
    action = "deleted" if request.has("d") else "added"
    for path, number in found:
        request.report(
            {"depotFile": path, "rev": number, "action": action},
            6417 if request.has("d") else 6416,
            depotFile=path,
            haveRev=f"#{number}",
        )
    if request.has("n"):
        return
    database = request.state.database
    with database.writing():
        database.execute_many(
            "DELETE FROM label_files WHERE label=? AND path=?",
            ((name, path) for path, _ in found),
        )
        if not request.has("d"):
            database.execute_many(
                "INSERT INTO label_files VALUES (?,?,?)",
                ((name, path, number) for path, number in found),
            )


def group(request: Request) -> None:
    """Answer `p4 group -o`, `-i` and `-d`."""
    unset = dict.fromkeys(_LIMITS, "unset")
    spec_command(request, GROUP, defaults={**unset, "Timeout": "43200"})


def groups(request: Request) -> None:
    """Answer `p4 groups [-i] [user]`: a record for each member of each group."""
    wanted = request.args[0] if request.args else None
    specs = list(all_specs(request.state.database, kind="group"))
    having = {
        spec.name
        for spec in specs
        if any(case.same(wanted or "", user) for user in spec.lines("Users"))
    }
    if request.has("i"):
        having |= _groups_above(specs, having)
    for spec in specs:
        members = spec.lines("Users")
        owners = spec.lines("Owners")
        if wanted is not None and spec.name not in having:
            continue
        if not request.is_tagged:
            request.info(spec.name)
            continue
        subgroups = spec.lines("Subgroups")
        for member in sorted({*members, *owners, *subgroups}):
            request.record(
                {
                    "user": member,
                    "group": spec.name,
                    "isSubGroup": str(int(member in subgroups)),
                    "isOwner": str(int(member in owners)),
                    "isUser": str(int(member in members)),
                    "maxResults": spec.text("MaxResults") or "0",
                    "maxScanRows": spec.text("MaxScanRows") or "0",
                    "maxLockTime": spec.text("MaxLockTime") or "0",
                    "timeout": spec.text("Timeout") or "0",
                }
            )


def _groups_above(specs: list[StoredSpec], below: set[str]) -> set[str]:
    """Return the groups that contain one of these as a subgroup, at any depth."""
    above = {spec.name for spec in specs if below & set(spec.lines("Subgroups"))}
    return above if above <= below else above | _groups_above(specs, above | below)


_LIMITS = ("MaxResults", "MaxScanRows", "MaxLockTime", "MaxOpenFiles")

COMMANDS = (
    Command(
        names=("label",),
        most_arguments=1,
        run=label,
        usage="label -o | -i | -d name",
        flags="oidf",
        absent="tg",
    ),
    Command(
        names=("labels",),
        run=labels,
        usage="labels [-t] [-u user] [-e|-E filter] [-m max] [file[range]...]",
        flags="t",
        valued="ueEm",
        absent="aRsU",
    ),
    Command(
        names=("tag",),
        run=tag,
        usage="tag [-d -n] -l label file...",
        flags="dn",
        valued="l",
        absent="Ug",
    ),
    Command(
        names=("labelsync",),
        run=labelsync,
        usage="labelsync [-d -n] -l label [file...]",
        flags="dn",
        valued="l",
        absent="agq",
        uses_client=True,
    ),
    Command(
        names=("group",),
        most_arguments=1,
        run=group,
        usage="group -o | -i | -d name",
        flags="oid",
        absent="aAF",
    ),
    Command(
        names=("groups",),
        most_arguments=1,
        run=groups,
        usage="groups [-i] [user]",
        flags="i",
        absent="ugvom",
    ),
)
