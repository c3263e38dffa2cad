"""p4 job, jobs, fix and fixes, with a new server's job specification."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.lab.perforce.commands.changes import find_change
from provisioner.lab.perforce.commands.forms import day, form_date, read_form, refused
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.filters import parse_jobview
from provisioner.lab.perforce.fixes import (
    CLOSED,
    Fix,
    check_status,
    drop_fix,
    fixes_of,
    get_job,
    put_fix,
)
from provisioner.lab.perforce.identifiers import check_identifier
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import changes_in
from provisioner.lab.perforce.specs import JOB, Fields
from provisioner.lab.perforce.specstore import (
    StoredSpec,
    all_specs,
    delete_spec,
    find_spec,
    save_spec,
)
from provisioner.lab.perforce.wire import Value

_SHORT = 31
_NEW = "new"


def job(request: Request) -> None:
    """Answer `p4 job -o`, `-i` and `-d`."""
    name = request.args[0] if request.args else _NEW
    if request.has("f") and not request.state.is_admin(request.user):
        raise CommandError(6185)
    if request.has("i"):
        _save(request)
    elif request.has("d") and request.args:
        _delete(request, name)
    elif request.has("o"):
        spec = find_spec(request.state.database, kind="job", name=name)
        fields = _shown(spec) if spec else _fresh(request, name)
        request.show_form(fields, definition=JOB)
    else:
        raise CommandError(7198, usage=_JOB_USAGE)


def _fresh(request: Request, name: str) -> Fields:
    return {
        "Job": name,
        "Status": "open",
        "User": request.user,
        "Description": "<enter description here>\n",
    }


def _shown(spec: StoredSpec) -> Fields:
    return {**spec.fields, "Date": form_date(spec.updated)}


def _save(request: Request) -> None:
    fields = read_form(request, JOB)
    name, database = str(fields.get("Job", "")), request.state.database
    if name == "job":
        raise CommandError(6218)
    for tag in ("Job", "Status", "User"):
        if not fields.get(tag):
            raise refused("job", f"Missing required field '{tag}'.")
    fields.setdefault("Description", "")
    check_identifier(database, kind="job", name=name)
    if name == _NEW:
        with database.writing():
            number = int(database.counter("job")) + 1
            database.set_counter("job", str(number))
        name = fields["Job"] = f"job{number:06}"
    changed = save_spec(database, kind="job", name=name, fields=fields)
    request.say(6410 if changed else 6411, job=name)


def _delete(request: Request, name: str) -> None:
    database = request.state.database
    spec = get_job(database, name=name)
    fixes = fixes_of(database, job=spec.name)
    if fixes:
        request.say(6609, job=spec.name, count=len(fixes))
        return
    with database.writing():
        delete_spec(database, kind="job", name=spec.name)
    request.say(6412, job=spec.name)


def jobs(request: Request) -> None:
    """Answer `p4 jobs`: all jobs, those of a jobview, or those fixed in files."""
    limit = request.number("m", default=0)
    passes = parse_jobview(request.options["e"]) if request.has("e") else None
    fixed = {fix.job for fix in _fixes_in_files(request)} if request.args else None
    specs = list(all_specs(request.state.database, kind="job"))
    found = 0
    for spec in reversed(specs) if request.has("r") else specs:
        record: dict[str, Value] = {
            **{tag: str(value) for tag, value in spec.fields.items()},
            "Date": spec.updated,
        }
        if (fixed is not None and spec.name not in fixed) or (
            passes is not None and not passes(record)
        ):
            continue
        request.report(record, 6413, **job_line(spec, is_long=request.has("l")))
        found += 1
        if found == limit:
            return


def job_line(spec: StoredSpec, *, is_long: bool) -> dict[str, Value]:
    """Return the line that describes a job."""
    text = spec.text("Description").rstrip("\n")
    indented = text.replace("\n", "\n\t")
    short = text[:_SHORT].replace("\n", " ").strip()
    return {
        "job": spec.name,
        "date": day(spec.updated),
        "user": spec.text("User"),
        "status": spec.text("Status"),
        "description": f"\n\n\t{indented}\n" if is_long else f" '{short}'",
    }


def fix(request: Request) -> None:
    """Answer `p4 fix -c change job...`."""
    if not request.has("c") or not request.args:
        raise CommandError(7198, usage=_FIX_USAGE)
    status = request.options.get("s", CLOSED)
    check_status(status)
    change = int(str(find_change(request, request.options["c"])[0]))
    database = request.state.database
    for typed in request.args:
        name = get_job(database, name=typed).name
        said = {"job": name, "change": f"change {change}"}
        with database.writing():
            if request.has("d"):
                if not drop_fix(database, job=name, change=change):
                    raise CommandError(6184)
            else:
                put_fix(request, job=name, change=change, status=status)
        if request.has("d"):
            request.say(6382, **said)
        else:
            request.say(6380, **said, status=status)


def fixes(request: Request) -> None:
    """Answer `p4 fixes`."""
    limit = request.number("m", default=0)
    database = request.state.database
    found = _fixes_in_files(request) if request.args else iter(fixes_of(database))
    if request.has("c"):
        change = int(str(find_change(request, request.options["c"])[0]))
        found = (each for each in found if each.change == change)
    if request.has("j"):
        name = get_job(database, name=request.options["j"]).name
        found = (each for each in found if each.job == name)
    for number, each in enumerate(found, start=1):
        record: dict[str, Value] = {
            "Job": each.job,
            "Change": str(each.change),
            "Date": each.time,
            "User": each.user,
            "Client": each.client,
            "Status": each.status,
        }
        request.report(
            record,
            6383,
            job=each.job,
            change=f"change {each.change}",
            date=day(each.time),
            user=each.user,
            client=each.client,
            status=each.status,
        )
        if number == limit:
            return


def _fixes_in_files(request: Request) -> Iterator[Fix]:
    """Yield the fixes by submitted changes that made revisions of the files."""
    database = request.state.database
    chosen: set[int] = set()
    for wanted in file_sets(request):
        chosen |= changes_in(database, wanted)
    return (each for each in fixes_of(database) if each.change in chosen)


_JOB_USAGE = "job -o [name] | -i [-f] | -d name"
_FIX_USAGE = "fix [-d] [-s status] -c change job..."

COMMANDS = (
    Command(
        names=("job",),
        most_arguments=1,
        run=job,
        usage=_JOB_USAGE,
        flags="oidf",
    ),
    Command(
        names=("jobs",),
        run=jobs,
        usage="jobs [-l] [-r] [-m max] [-e jobview] [file...]",
        flags="lr",
        valued="me",
        absent="iR",
    ),
    Command(
        names=("fix",),
        run=fix,
        usage=_FIX_USAGE,
        flags="d",
        valued="sc",
    ),
    Command(
        names=("fixes",),
        run=fixes,
        usage="fixes [-m max] [-c change] [-j job] [file...]",
        flags="",
        valued="mcj",
        absent="i",
    ),
)
