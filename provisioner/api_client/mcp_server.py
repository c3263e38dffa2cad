"""Tools for an assistant that works in a Perforce workspace: it asks for one itself.

`cloneyard-mcp` speaks the Model Context Protocol on standard input and output. It does
what its token allows, over Cloneyard's API, and nothing else: CLONEYARD_SERVER is the
address, CLONEYARD_TOKEN the token, CLONEYARD_CA_FILE an authority of your own.
Source: https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

from __future__ import annotations

import datetime as dt
import os
import ssl
import time
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx
from cloneyard_client import AuthenticatedClient
from cloneyard_client.api.operations import operations_retrieve
from cloneyard_client.api.templates import templates_list
from cloneyard_client.api.workspaces import (
    workspaces_check,
    workspaces_create,
    workspaces_destroy,
    workspaces_extend,
    workspaces_list,
    workspaces_retrieve,
)
from cloneyard_client.errors import UnexpectedStatus
from cloneyard_client.models import (
    Error,
    ErrorCode,
    LeaseExtendRequest,
    OperationState,
    WorkspaceCreateRequest,
    WorkspacePurpose,
    WorkspacesDestroyUnsubmitted,
    WorkspaceState,
)
from cloneyard_client.models import Workspace as Answer
from cloneyard_client.types import UNSET, Response
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

P = ParamSpec("P")
T = TypeVar("T")

# Longer than the server holds an answer.
ANSWERS_WITHIN_SECONDS = 90
HELD_SECONDS = 60
CHECKED_WITHIN_SECONDS = 120
POLL_EVERY_SECONDS = 1
SAME_MACHINE = ("127.0.0.1", "::1", "localhost")
LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
CHANGES = ToolAnnotations(
    read_only_hint=False,
    destructive_hint=False,
    idempotent_hint=True,
    open_world_hint=False,
)
ENDS = CHANGES.model_copy(update={"destructive_hint": True})
UNDER_WAY = {
    WorkspaceState.PROVISIONING,
    WorkspaceState.RETIRING,
    WorkspaceState.RESTORING,
    WorkspaceState.PURGING,
}
GONE = {WorkspaceState.TRASHED, WorkspaceState.RETIRED, WorkspaceState.PURGING}

server = MCPServer(
    "cloneyard",
    instructions="Cloneyard gives built Perforce workspaces in seconds. Ask for one "
    "per task, with a key that names the task. Work below its path with its P4CLIENT "
    "and P4PORT. Extend its lease while you need it, and retire it when the task is "
    "done. Unsubmitted work stops this: the person decides what becomes of it.",
    log_level="WARNING",
)


class Template(BaseModel):
    """What a workspace is cloned from."""

    name: str
    site: str
    state: str
    description: str
    change: int | None = Field(description="The change it is built at; null: none yet.")


class Workspace(BaseModel):
    """A Perforce workspace, as far as work in it is concerned."""

    id: int
    name: str
    state: str = Field(description="Work in it only while it is “ready”.")
    message: str
    template: str
    change: int
    path: str
    p4client: str = Field(description="Empty: it is for builds, and has no client.")
    p4port: str
    lease: str
    lease_ends_at: dt.datetime | None = Field(description="null: it has no end.")


class UnsubmittedWork(BaseModel):
    """What would be lost with a workspace."""

    is_there: bool
    counts: dict[str, int] = Field(description="Files and changes by kind.")
    findings: dict[str, Any]


class Decision(BaseModel):
    """What a person chooses to do with unsubmitted work."""

    unsubmitted_work: Literal["keep", "rescue", "discard"] = Field(
        title="Unsubmitted work",
        description="keep: the workspace stays. rescue: shelve what is opened, archive "
        "the rest, then retire. discard: retire, and lose it.",
    )


# --- tools


@server.tool(annotations=LOOKS)
def list_templates() -> list[Template]:
    """List the templates that workspaces can be requested of."""
    page = ask(templates_list.sync_detailed, client=api(), limit=200)
    return [
        Template(
            name=each.name,
            site=each.site,
            state=each.state,
            description=each.description or each.title,
            change=each.snapshot.change if each.snapshot else None,
        )
        for each in page.results
    ]


@server.tool(annotations=LOOKS)
def list_workspaces() -> list[Workspace]:
    """List the workspaces that are there, without those in the history."""
    page = ask(workspaces_list.sync_detailed, client=api(), retired=False, limit=200)
    return [told(each) for each in page.results]


@server.tool(annotations=CHANGES)
def get_workspace(
    template: Annotated[str, Field(description="Its name: see list_templates.")],
    key: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="Names your task, such as a ticket. The same key gives the "
            "same workspace again, also after a lost answer.",
        ),
    ],
    name: Annotated[str | None, Field(description="Made up if not given.")] = None,
    purpose: Annotated[
        WorkspacePurpose,
        Field(
            description="development: work that is submitted. build, ci: its contents "
            "are deleted at its end. ci-edit: CI that submits."
        ),
    ] = WorkspacePurpose.DEVELOPMENT,
    lease_hours: Annotated[
        float | None, Field(gt=0, le=8760, description="Default: as the policy says.")
    ] = None,
) -> Workspace:
    """Ask for a workspace and wait up to a minute until it is ready.

    If it is still “provisioning” then, call wait_for_workspace.
    """
    asked = WorkspaceCreateRequest(
        template=template,
        name=name or UNSET,
        purpose=purpose,
        lease=_seconds(lease_hours) or UNSET,
    )
    got = ask(
        workspaces_create.sync_detailed,
        client=api(),
        body=asked,
        wait=HELD_SECONDS,
        idempotency_key=key,
    )
    return told(got)


@server.tool(annotations=LOOKS)
def show_workspace(
    workspace: Annotated[str, Field(description="Name or id.")],
) -> Workspace:
    """Tell a workspace's state, path, client and lease."""
    return told(found(workspace))


@server.tool(annotations=LOOKS)
def wait_for_workspace(
    workspace: Annotated[str, Field(description="Name or id.")],
    seconds: Annotated[int, Field(ge=1, le=600)] = 60,
) -> Workspace:
    """Wait until nothing is in progress in a workspace, at most so many seconds."""
    ends = time.monotonic() + seconds
    now = found(workspace)
    while now.state in UNDER_WAY and (left := ends - time.monotonic()) > 0:
        wait = min(HELD_SECONDS, max(1, round(left)))
        asked = time.monotonic()
        now = ask(workspaces_retrieve.sync_detailed, now.id, client=api(), wait=wait)
        # Where too many answers are held, ours comes at once.
        if time.monotonic() - asked < POLL_EVERY_SECONDS:
            time.sleep(POLL_EVERY_SECONDS)
    return told(now)


@server.tool(annotations=CHANGES)
def extend_workspace(
    workspace: Annotated[str, Field(description="Name or id.")],
    hours: Annotated[
        float | None,
        Field(gt=0, le=8760, description="From now. Default: the policy's length."),
    ] = None,
) -> Workspace:
    """Extend a workspace's lease."""
    body = LeaseExtendRequest(seconds=_seconds(hours) or UNSET)
    there = found(workspace)
    return told(ask(workspaces_extend.sync_detailed, there.id, client=api(), body=body))


@server.tool(annotations=LOOKS)
def check_unsubmitted_work(
    workspace: Annotated[str, Field(description="Name or id.")],
) -> UnsubmittedWork:
    """Look for opened, changed, untracked and shelved files. This changes nothing."""
    return look_for_work(found(workspace))


def decide(
    workspace: str, ctx: Context[Any, Any], rescue_unsubmitted_work: bool = False
) -> Decision | Elicit[Decision]:
    """Ask the person, where there is unsubmitted work that nobody decided about."""
    if rescue_unsubmitted_work:
        return Decision(unsubmitted_work="rescue")
    there = found(workspace)
    work = look_for_work(there) if there.state is WorkspaceState.READY else None
    if work is None or not work.is_there:
        return Decision(unsubmitted_work="keep")
    counts = ", ".join(f"{kind}: {count}" for kind, count in work.counts.items())
    what = f"“{there.name}” has unsubmitted work ({counts})."
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        raise ToolError(
            f"{what} It was not retired. Submit it, or ask the person: "
            "rescue_unsubmitted_work has it shelved and archived first. Only a person "
            f"discards it: {os.environ['CLONEYARD_SERVER']}/workspaces/{there.id}/"
        )
    return Elicit(f"{what} What should become of it?", Decision)


@server.tool(annotations=ENDS)
def retire_workspace(
    workspace: Annotated[str, Field(description="Name or id.")],
    decision: Annotated[Decision, Resolve(decide)],
    rescue_unsubmitted_work: Annotated[
        bool,
        Field(description="Shelve and archive it first. Only if the person agreed."),
    ] = False,
) -> Workspace:
    """Retire a workspace whose task is done.

    If it has unsubmitted work, the person is asked what becomes of it. Where your
    program cannot ask, it is refused.
    """
    there = found(workspace)
    if there.state in GONE:
        return told(there)
    # Work that came in the meantime stops it: “keep” is not “discard”.
    choice = {
        "keep": WorkspacesDestroyUnsubmitted.REFUSE,
        "rescue": WorkspacesDestroyUnsubmitted.RESCUE,
        "discard": WorkspacesDestroyUnsubmitted.DISCARD,
    }[decision.unsubmitted_work]
    now = ask(
        workspaces_destroy.sync_detailed,
        there.id,
        client=api(),
        unsubmitted=choice,
        wait=HELD_SECONDS,
    )
    if now.state is WorkspaceState.READY:
        raise ToolError(
            f"“{now.name}” was not retired, because it has unsubmitted work. "
            f"{now.status_message}".rstrip()
        )
    return told(now)


# --- the API


@cache
def api() -> AuthenticatedClient:
    """Return the connection to the server that the environment names."""
    address = os.environ.get("CLONEYARD_SERVER", "").rstrip("/")
    token = os.environ.get("CLONEYARD_TOKEN", "").strip()
    where = urlsplit(address)
    if where.scheme not in ("http", "https") or not where.hostname:
        raise SystemExit("cloneyard-mcp: CLONEYARD_SERVER is not an address.")
    if where.scheme == "http" and where.hostname not in SAME_MACHINE:
        raise SystemExit(
            f"cloneyard-mcp: {address} would send the token unencrypted. Use https."
        )
    if not token:
        raise SystemExit("cloneyard-mcp: CLONEYARD_TOKEN is empty.")
    authority = os.environ.get("CLONEYARD_CA_FILE") or None
    try:
        trusted = ssl.create_default_context(cafile=authority)
    except OSError as error:  # of which an SSLError is one
        why = error.strerror or error
        raise SystemExit(
            f"cloneyard-mcp: CLONEYARD_CA_FILE cannot be read: {why}."
        ) from error
    return AuthenticatedClient(
        base_url=address,
        token=token,
        timeout=httpx.Timeout(ANSWERS_WITHIN_SECONDS),
        verify_ssl=trusted,
        raise_on_unexpected_status=True,
    )


class Refused(ToolError):
    """The server refused; its sentence and its code."""

    def __init__(self, error: Error) -> None:
        super().__init__(f"{error.detail} ({error.code})")
        self.code = error.code


def ask(call: Callable[P, Response[Error | T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the server answers. Raises: Refused, ToolError."""
    try:
        answer = call(*args, **kwargs)
    except UnexpectedStatus as error:
        raise ToolError(
            f"Cloneyard answered {error.status_code}. Try later."
        ) from error
    except httpx.HTTPError as error:
        where = os.environ["CLONEYARD_SERVER"]
        raise ToolError(
            f"{where} did not answer ({error}). Call again: a repeated call is safe."
        ) from error
    if isinstance(answer.parsed, Error):
        raise Refused(answer.parsed)
    assert answer.parsed is not None  # other statuses raise
    return answer.parsed


def found(workspace: str) -> Answer:
    """Return a workspace by its id, or by the name that it has now."""
    if workspace.isdigit():
        return ask(workspaces_retrieve.sync_detailed, int(workspace), client=api())
    page = ask(workspaces_list.sync_detailed, client=api(), name=workspace)
    living = [w for w in page.results if w.state is not WorkspaceState.RETIRED]
    match living or page.results[:1]:
        case [it]:
            return it
        case []:
            raise ToolError(f"There is no workspace “{workspace}” for you to see.")
        case several:
            each = " or ".join(f"{w.id} at {w.site}" for w in several)
            raise ToolError(f"There are several “{workspace}”: give the id, {each}.")


def look_for_work(there: Answer) -> UnsubmittedWork:
    """Check a workspace, and wait for what that finds. Raises: ToolError."""
    ends = time.monotonic() + CHECKED_WITHIN_SECONDS
    try:
        check = ask(workspaces_check.sync_detailed, there.id, client=api())
    except Refused as refused:
        if refused.code is not ErrorCode.NOTHING_TO_CHECK:
            raise
        return UnsubmittedWork(is_there=False, counts={}, findings={})
    while check.state is OperationState.RUNNING:
        if time.monotonic() > ends:
            raise ToolError("The check is still in progress. Ask again later.")
        time.sleep(POLL_EVERY_SECONDS)
        check = ask(operations_retrieve.sync_detailed, check.id, client=api())
    if check.state is not OperationState.SUCCEEDED:
        raise ToolError(f"The check ended without a result. {check.status_message}")
    findings = check.findings.to_dict() if check.findings else {}
    counted = findings.pop("counts", {})
    counts = {kind: each["count"] for kind, each in counted.items() if each["count"]}
    return UnsubmittedWork(is_there=bool(counts), counts=counts, findings=findings)


def told(answer: Answer) -> Workspace:
    return Workspace(
        id=answer.id,
        name=answer.name,
        state=answer.state,
        message=answer.status_message,
        template=answer.template,
        change=answer.change,
        path=answer.path,
        p4client=answer.client,
        p4port=answer.p4port,
        lease=answer.lease.sentence,
        lease_ends_at=answer.lease.ends_at,
    )


def _seconds(hours: float | None) -> int:
    return round(dt.timedelta(hours=hours or 0).total_seconds())


def main() -> None:
    """Answer until standard input ends."""
    api()
    server.run("stdio")


if __name__ == "__main__":
    main()
