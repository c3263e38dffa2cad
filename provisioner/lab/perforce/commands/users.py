"""p4 user, users, login, logout, passwd."""

from __future__ import annotations

from provisioner.lab.perforce import auth, replies
from provisioner.lab.perforce.commands.forms import (
    day,
    form_date,
    read_form,
    refused,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.identifiers import check_identifier
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.paths import pattern_matches
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import USER, Fields
from provisioner.lab.perforce.specstore import (
    all_specs,
    delete_spec,
    find_spec,
    save_spec,
)
from provisioner.lab.perforce.unmangle import new_password
from provisioner.lab.perforce.wire import Value


def users(request: Request) -> None:
    """Answer `p4 users`."""
    database = request.state.database
    found = 0
    limit = request.number("m", default=0)
    for spec in all_specs(database, kind="user"):
        if request.args and not any(
            pattern_matches(a, spec.name) for a in request.args
        ):
            continue
        record: dict[str, Value] = {
            "User": spec.name,
            "Update": spec.updated,
            "Access": spec.accessed,
            "FullName": spec.text("FullName"),
            "Email": spec.text("Email"),
            "Type": spec.text("Type") or "standard",
        }
        if auth.find_password_hash(database, user=spec.name):
            record |= {"Password": "enabled"}
        request.report(
            record,
            6505,
            user=spec.name,
            email=spec.text("Email"),
            fullName=spec.text("FullName"),
            accessDate=day(spec.accessed),
        )
        found += 1
        if found == limit:
            break
    if not found:
        request.say(6510, argc=" ".join(request.args))


def user(request: Request) -> None:
    """Answer `p4 user -o`, `-i` and `-d`."""
    if request.has("o"):
        _show(request)
    elif request.has("i"):
        _save(request)
    elif request.has("d"):
        _delete(request)
    else:
        raise CommandError(7198, usage="user -o | -i | -d [-f] [name]")


def _show(request: Request) -> None:
    name = request.args[0] if request.args else request.user
    spec = find_spec(request.state.database, kind="user", name=name)
    fields: Fields
    if spec is None:
        fields = {
            "User": name,
            "Email": f"{name}@{request.client_name}",
            "FullName": name,
        }
    else:
        fields = {
            **spec.fields,
            "Update": form_date(spec.updated),
            "Access": form_date(spec.accessed),
        }
        if auth.find_password_hash(request.state.database, user=name):
            fields["Password"] = "******"  # noqa: S105 - what the form shows
    request.show_form(fields, definition=USER)


def _save(request: Request) -> None:
    fields = read_form(request, USER)
    name = fields.get("User", "")
    assert isinstance(name, str)
    for tag in ("User", "Email", "FullName"):
        if not fields.get(tag):
            raise refused("user", f"Missing required field '{tag}'.")
    if name != request.user and not (
        request.has("f") and request.state.is_super(request.user)
    ):
        raise CommandError(6228, user=request.user)
    password = fields.pop("Password", "")
    assert isinstance(password, str)
    fields.setdefault("Type", "standard")
    fields.setdefault("AuthMethod", "perforce")
    database = request.state.database
    check_identifier(database, kind="user", name=name)
    changed = save_spec(database, kind="user", name=name, fields=fields)
    if password.strip("*"):
        auth.set_password_hash(database, user=name, password_hash=auth.md5(password))
        changed = True
    request.say(6500 if changed else 6501, user=name)


def _delete(request: Request) -> None:
    name = request.args[0] if request.args else request.user
    database = request.state.database
    if find_spec(database, kind="user", name=name) is None:
        raise CommandError(6502, user=name)
    if name != request.user:
        if not request.state.is_super(request.user):
            raise CommandError(6185)
        if not request.has("f"):
            raise CommandError(6230, user=name)
    with database.writing():
        delete_spec(database, kind="user", name=name)
        database.execute("DELETE FROM passwords WHERE user=?", name)
        database.execute("DELETE FROM tickets WHERE user=?", name)
    request.say(6504, user=name)


def login(request: Request) -> None:
    """Answer `p4 login`: status, another user's ticket, or the password prompt."""
    name = request.args[0] if request.args else request.user
    database = request.state.database
    if find_spec(database, kind="user", name=name) is None and not (
        name == request.user and request.state.creates_users
    ):
        raise CommandError(7205, user=name)
    password_hash = auth.find_password_hash(database, user=name)
    if request.has("s"):
        _login_status(request, name)
        return
    if name != request.user:
        request.authenticate()
        if not request.state.is_super(request.user):
            raise CommandError(6185)
    elif password_hash is None:
        request.say(7481, user=name)
        return
    else:
        _check_password(request, name, password_hash)
    _hand_out_ticket(request, name)


def _check_password(request: Request, name: str, password_hash: str) -> None:
    token = auth.new_token()
    answer = request.ask(
        "client-Prompt",
        {"data": "Enter password: ", "noecho": "", "digest": token, "user": name},
        confirm=replies.LOGIN,
    )
    expected = auth.prompt_answer(
        password_hash, token=token, address=answer.text("daddr") if answer else ""
    )
    if answer is None or not auth.same(answer.text("data"), expected):
        raise CommandError(7206)


def _hand_out_ticket(request: Request, name: str) -> None:
    ticket = auth.issue_ticket(
        request.state.database,
        user=name,
        lifetime_seconds=request.state.ticket_lifetime(name),
    )
    request.send(
        "client-SetPassword",
        {
            "data": ticket.ticket,
            "user": name,
            "serverAddress": request.server_address,
            "data2": "login",
            **({"output": ""} if request.has("p") else {}),
            "confirm": replies.ANSWER,
        },
    )
    request.settle()
    record: dict[str, Value] = {"User": name, "TicketExpiration": ticket.seconds_left}
    request.report(record, 7493, user=name)
    if name == request.user:
        request.login_changed = True


def _login_status(request: Request, name: str) -> None:
    database = request.state.database
    if name == request.user:
        proof = request.authenticate()
        if proof is None:
            request.say(7481, user=name)
            return
        tickets = [t for t in auth.tickets_of(database, user=name) if t.ticket == proof]
        if not tickets:
            request.say(7495, user=name)
            return
    else:
        request.authenticate()
        if not request.state.is_super(request.user):
            raise CommandError(6185)
        tickets = [t for t in auth.tickets_of(database, user=name) if t.seconds_left]
        if not tickets:
            raise CommandError(7480)
    left = tickets[0].seconds_left
    record: dict[str, Value] = {"User": name, "TicketExpiration": left}
    request.report(
        record,
        7494,
        user=name,
        hours=left // 3600,
        minutes=left // 60 % 60,
    )


def logout(request: Request) -> None:
    """Answer `p4 logout`."""
    auth.end_tickets(request.state.database, user=request.user)
    request.send(
        "client-SetPassword",
        {
            "data": "",
            "user": request.user,
            "serverAddress": request.server_address,
            "data2": "logout",
            "confirm": replies.ANSWER,
        },
    )
    request.settle()
    request.say(7483, user=request.user)
    request.login_changed = True


def passwd(request: Request) -> None:
    """Answer `p4 passwd`: one's own with the old password, another's as super.

    -O and -P give both without a prompt. With dm.user.setinitialpasswd=0 only a super
    user with a password sets a first one.

    Source: p4 help passwd; "Configurables for security" of the P4 Server
    administrator's guide. Inferred: the words of that refusal.
    """
    if request.has("O") and not request.has("P"):
        raise CommandError(7198, usage="passwd [-O old -P new] [user]")
    name = request.args[0] if request.args else request.user
    database = request.state.database
    if find_spec(database, kind="user", name=name) is None:
        raise CommandError(7205, user=name)
    old = auth.find_password_hash(database, user=name)
    sets_own = request.state.configurables.number("dm.user.setinitialpasswd")
    if name != request.user:
        mine = auth.find_password_hash(database, user=request.user)
        if not request.state.is_super(request.user) or not (mine or sets_own):
            raise CommandError(6185)
    elif old is None and not sets_own:
        raise CommandError(6185)
    elif old is not None and request.has("O"):
        if not auth.same(auth.md5(request.options["O"]), old):
            raise CommandError(7206)
    elif old is not None:
        token = auth.new_token()
        answer = request.ask(
            "client-Prompt",
            {
                "data": "Enter old password: ",
                "noecho": "",
                "digest": token,
                "user": name,
            },
            confirm=replies.NEW_PASSWD,
        )
        address = answer.text("daddr") if answer else ""
        expected = auth.prompt_answer(old, token=token, address=address)
        if answer is None or not auth.same(answer.text("data"), expected):
            raise CommandError(7206)
    if request.has("P"):
        new = auth.md5(request.options["P"]) if request.options["P"] else ""
    else:
        new = _ask_twice(request, name)
    if not new and request.state.security_level:
        raise CommandError(7711, size=_SHORTEST_PASSWORD)
    auth.set_password_hash(database, user=name, password_hash=new)
    request.say(7289 if new else 7290)
    request.login_changed = True


# Source: dm.password.minlength in p4 help configurables.
_SHORTEST_PASSWORD = 8


def _ask_twice(request: Request, name: str) -> str:
    """Return the digest of a new password; "" for none.

    Clients encrypt it, with a token and with what was typed before; P4Java sends none
    in another way.

    Raises: CommandError if the two differ.
    """
    database = request.state.database
    known = (
        auth.find_password_hash(database, user=who) for who in (name, request.user)
    )
    secrets = [secret for secret in known if secret]
    typed = []
    for prompt, more in (("Enter", {}), ("Re-enter", {"data2": ""})):
        token = auth.new_token()
        answer = request.ask(
            "client-Prompt",
            {
                "data": f"{prompt} new password: ",
                "noecho": "",
                "mangle": token,
                "user": name,
                **more,
            },
            confirm=replies.NEW_PASSWD,
        )
        if answer is None:
            raise CommandError(7197)
        found: str | None = ""
        if data := answer.text("data"):
            found = new_password(data, token=token, user=name, secrets=secrets)
        if found is None:
            raise CommandError(7206)
        typed.append(found)
    if typed[0] != typed[1]:
        raise CommandError(7207)
    return auth.md5(typed[0]) if typed[0] else ""


COMMANDS = (
    Command(
        names=("users",),
        run=users,
        usage="users [-m max] [user...]",
        flags="a",
        valued="m",
        absent="lrc",
    ),
    Command(
        names=("user",),
        most_arguments=1,
        run=user,
        usage="user -o | -i | -d [-f] [name]",
        flags="oidf",
        absent="FyD",
    ),
    Command(
        names=("login",),
        most_arguments=1,
        run=login,
        usage="login [-a -p -s] [user]",
        flags="aps",
        absent="hr",
        is_open=True,
    ),
    Command(
        names=("logout",), most_arguments=0, run=logout, usage="logout [-a]", flags="a"
    ),
    Command(
        names=("passwd", "password"),
        most_arguments=1,
        run=passwd,
        usage="passwd [-O old -P new] [user]",
        valued="OP",
    ),
)
