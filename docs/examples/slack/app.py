"""Slack's `/workspace new TEMPLATE`, `list`, `extend`, over Cloneyard's public API.

    pip install cloneyard-client slack-bolt gunicorn
    gunicorn --threads 8 --bind 127.0.0.1:3000 app:application    # behind TLS

Each person acts with a token of their own, which `/workspace connect` asks for on a
page of this program: Slack never sees it. It is kept in TOKENS_DIR, one file a person.
SLACK_SIGNING_SECRET is the app's, PUBLIC_URL this program's address.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from urllib.parse import parse_qs, urlencode

import httpx
from cloneyard_client import AuthenticatedClient
from cloneyard_client.api.templates import templates_list
from cloneyard_client.api.workspaces import (
    workspaces_create,
    workspaces_extend,
    workspaces_list,
    workspaces_retrieve,
)
from cloneyard_client.errors import UnexpectedStatus
from cloneyard_client.models import (
    Error,
    LeaseExtendRequest,
    Workspace,
    WorkspaceCreateRequest,
    WorkspaceState,
)
from cloneyard_client.types import UNSET
from slack_bolt import Ack, App, Respond
from slack_bolt.adapter.wsgi import SlackRequestHandler
from slack_bolt.authorization import AuthorizeResult

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

SERVER = os.environ["CLONEYARD_SERVER"].rstrip("/")
PUBLIC_URL = os.environ["PUBLIC_URL"].rstrip("/")
SIGNING_SECRET = os.environ["SLACK_SIGNING_SECRET"]
TOKENS_DIR = Path(os.environ["TOKENS_DIR"])
HELD_SECONDS = 60
# Slack takes answers to a command for 30 minutes.
# Source: https://docs.slack.dev/interactivity/handling-user-interaction
ANSWERED_WITHIN_SECONDS = 25 * 60
LINK_HOLDS_SECONDS = 600
LONGEST_FORM = 10_000
MOST_HOURS = 24 * 365
HELP = (
    "`/workspace new TEMPLATE [NAME]` gets a workspace, `list` lists yours, "
    "`extend NAME [HOURS]` extends a lease, `connect` takes your API token."
)

P = ParamSpec("P")
T = TypeVar("T")


class Refused(Exception):
    """Why there is no answer, as a sentence for the person."""


# --- the command


def nobody(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
    """Let Bolt ask Slack for nothing: a command brings all that its answer needs."""
    return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id)


app = App(
    signing_secret=SIGNING_SECRET,
    authorize=nobody,
    # One for each person who waits for a workspace.
    listener_executor=ThreadPoolExecutor(max_workers=32),
)


@app.command("/workspace")
def workspace(ack: Ack, respond: Respond, command: Mapping[str, str]) -> None:
    """Answer at once, as Slack waits for three seconds, and then with what became."""
    verb, *words = command["text"].split() or ["help"]
    person = f"{command['team_id']}.{command['user_id']}"
    try:
        match verb, words:
            case "connect", []:
                ack(f"<{link_for(person)}|Enter your API token> within ten minutes.")
            case "new", [template, *name] if len(name) <= 1:
                client = client_of(person)
                ack(f"Requesting a workspace of {escaped(template)} …")
                key = f"slack {command['trigger_id']}"
                respond(new(client, template, name[0] if name else None, key=key))
            case "list", []:
                client = client_of(person)
                ack()
                respond(listed(client))
            case "extend", [name, *hours] if len(hours) <= 1:
                client = client_of(person)
                ack()
                respond(extended(client, name, hours=hours[0] if hours else None))
            case _:
                ack(HELP)
    except Refused as refused:
        # Each is an answer, also to a command that was acknowledged.
        ack()
        respond(escaped(str(refused)))


def new(client: AuthenticatedClient, template: str, name: str | None, key: str) -> str:
    asked = WorkspaceCreateRequest(template=template, name=name or UNSET)
    got = ask(
        workspaces_create.sync,
        client=client,
        body=asked,
        wait=HELD_SECONDS,
        idempotency_key=key,
    )
    ends = time.monotonic() + ANSWERED_WITHIN_SECONDS
    while got.state is WorkspaceState.PROVISIONING and time.monotonic() < ends:
        time.sleep(1)
        got = ask(workspaces_retrieve.sync, got.id, client=client, wait=HELD_SECONDS)
    return line_of(got)


def listed(client: AuthenticatedClient) -> str:
    page = ask(workspaces_list.sync, client=client, retired=False)
    living = [w for w in page.results if w.state is not WorkspaceState.TRASHED]
    return "\n".join(map(line_of, living)) or "You have no workspaces."


def extended(client: AuthenticatedClient, name: str, hours: str | None) -> str:
    if hours is not None and not (hours.isdecimal() and 0 < int(hours) <= MOST_HOURS):
        raise Refused(f"Give the hours as a number from 1 to {MOST_HOURS}.")
    body = LeaseExtendRequest(seconds=int(hours) * 3600 if hours else UNSET)
    page = ask(workspaces_list.sync, client=client, name=name, retired=False)
    if len(page.results) != 1:
        raise Refused(f"You have no workspace “{name}”, or several.")
    [there] = page.results
    return line_of(ask(workspaces_extend.sync, there.id, client=client, body=body))


def line_of(it: Workspace) -> str:
    name = f"*<{SERVER}/workspaces/{it.id}/|{it.name}>*"
    if it.state is not WorkspaceState.READY:
        return f"{name} of {it.template}: {it.state}. {escaped(it.status_message)}"
    return f"{name} of {it.template}: `{it.path}` `{it.client}` {it.lease.sentence}"


def ask(call: Callable[P, Error | T | None], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the server answers. Raises: Refused."""
    try:
        got = call(*args, **kwargs)
    except (UnexpectedStatus, httpx.HTTPError) as error:
        raise Refused("Cloneyard does not answer. Try again later.") from error
    if isinstance(got, Error):
        raise Refused(got.detail)
    assert got is not None  # other statuses raise
    return got


def escaped(text: str) -> str:
    """Return text that Slack shows as it is.

    Source: https://docs.slack.dev/messaging/formatting-message-text, “Escaping text”
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# --- people and their tokens


def client_of(person: str) -> AuthenticatedClient:
    """Return the API as a person. Raises: Refused."""
    try:
        return client_with((TOKENS_DIR / person).read_text())
    except FileNotFoundError:
        raise Refused("You are not connected. Type `/workspace connect`.") from None


def client_with(token: str) -> AuthenticatedClient:
    return AuthenticatedClient(
        base_url=SERVER,
        token=token,
        timeout=httpx.Timeout(HELD_SECONDS + 30),
        raise_on_unexpected_status=True,
    )


def keep(person: str, token: str) -> None:
    """Keep a person's token in place of an earlier one. Raises: Refused."""
    ask(templates_list.sync, client=client_with(token), limit=1)
    coming = TOKENS_DIR / f".{person}"
    coming.unlink(missing_ok=True)
    with os.fdopen(
        os.open(coming, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w"
    ) as it:
        it.write(token)
    coming.rename(TOKENS_DIR / person)


def link_for(person: str) -> str:
    """Return the address of a page that only this person is told."""
    until = str(int(time.time()) + LINK_HOLDS_SECONDS)
    query = {"person": person, "until": until, "signature": signed(person, until)}
    return f"{PUBLIC_URL}/connect?{urlencode(query)}"


def signed(person: str, until: str) -> str:
    said = f"connect {person} {until}".encode()
    return hmac.new(SIGNING_SECRET.encode(), said, hashlib.sha256).hexdigest()


def person_of(query: Mapping[str, str]) -> str:
    """Return whose link this is. Raises: Refused."""
    person, until = query.get("person", ""), query.get("until", "")
    is_ours = hmac.compare_digest(
        signed(person, until).encode(), query.get("signature", "").encode()
    )
    if not is_ours or int(until) < time.time():
        raise Refused("This link has expired. Type /workspace connect again.")
    return person


# --- the page for a token

FORM = """<p>Make a token on the page <a href="{server}/tokens/">API tokens</a>, for
what Slack should do for you, and enter it here. Do so only if you typed
<kbd>/workspace connect</kbd> yourself.</p>
<form method="post"><input name="token" type="password" autocomplete="off" required
aria-label="API token"> <button>Connect</button></form>"""


def connect(environ: WSGIEnvironment) -> tuple[HTTPStatus, str]:
    """Answer the page, or take the token that was entered in it."""
    try:
        person = person_of(first_of_each(environ.get("QUERY_STRING", "")))
        if environ["REQUEST_METHOD"] != "POST":
            return HTTPStatus.OK, FORM.format(server=html.escape(SERVER))
        length = min(int(environ.get("CONTENT_LENGTH") or 0), LONGEST_FORM)
        form = first_of_each(
            environ["wsgi.input"].read(length).decode(errors="replace")
        )
        token = form.get("token", "").strip()
        if not (token.isascii() and token.isalnum()):
            raise Refused("This is not an API token.")
        keep(person, token)
    except Refused as refused:
        return HTTPStatus.FORBIDDEN, f"<p>{html.escape(str(refused))}</p>"
    return HTTPStatus.OK, "<p>Connected. Type <kbd>/workspace list</kbd> in Slack.</p>"


def first_of_each(encoded: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(encoded).items()}


handle_events = SlackRequestHandler(app)


def application(
    environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Serve Slack's requests below /slack/events, and people's at /connect."""
    if environ["PATH_INFO"] != "/connect":
        return handle_events(environ, start_response)
    status, body = connect(environ)
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
        ("Referrer-Policy", "no-referrer"),
    ]
    start_response(f"{status.value} {status.phrase}", headers)
    head = '<!doctype html><html lang="en"><title>Cloneyard</title>'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return [f"{head}<body>{body}</body></html>".encode()]
