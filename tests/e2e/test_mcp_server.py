"""An assistant's way: the installed MCP server, asked by the SDK's own client."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from django.db import connections
from django.utils import timezone
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult, ErrorData, TextContent
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.api_client import mcp_server
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from provisioner.people.actions.tokens import api_token_create
from provisioner.workspaces.models import Workspace
from tests.support.client_library import LIBRARY

ANSWERS_WITHIN_SECONDS = 120
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.integration]

Said = dict[str, Any]


class Assistant:
    """A connection to the server, and what the person before it answers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def use(self, tool: str, **arguments: Any) -> Said:
        used = await self._client.call_tool(tool, arguments)
        assert not used.is_error, used.content
        assert used.structured_content is not None
        said: Said = used.structured_content
        return said

    async def is_refused(self, tool: str, **arguments: Any) -> str:
        used = await self._client.call_tool(tool, arguments)
        assert used.is_error, used.structured_content
        [content] = used.content
        assert isinstance(content, TextContent)
        return content.text


@pytest.fixture
def program(
    live_server: LiveServer, published_template: Template, alice: User
) -> StdioServerParameters:
    """The server, with a token for nothing but development in this template."""
    _, token = api_token_create(
        by=alice,
        templates=[published_template],
        purposes=["development"],
        max_workspaces=1,
    )
    return StdioServerParameters(
        command=sys.executable,
        args=[str(LIBRARY / "cloneyard_mcp.py")],
        env={"CLONEYARD_SERVER": live_server.url, "CLONEYARD_TOKEN": token},
    )


def converse(
    program: StdioServerParameters,
    talk: Callable[[Assistant], Any],
    *,
    person: str | None = None,
    mode: Literal["auto", "legacy"] = "auto",
) -> None:
    """Talk to the program; a person answers questions so, or cannot be asked."""

    async def answer(
        context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        return ElicitResult(action="accept", content={"unsubmitted_work": person or ""})

    async def run() -> None:
        async with Client(
            program,
            read_timeout_seconds=ANSWERS_WITHIN_SECONDS,
            elicitation_callback=answer if person else None,
            mode=mode,
        ) as client:
            await talk(Assistant(client))

    anyio.run(run)
    connections.close_all()


def test_an_assistant_works_in_a_workspace_and_retires_it(
    program: StdioServerParameters, published_template: Template, worker: Child
) -> None:
    name = published_template.name

    async def talk(assistant: Assistant) -> None:
        listed = await assistant.use("list_templates")
        assert [each["name"] for each in listed["result"]] == [name]

        asked = {"template": name, "key": "TICKET-1", "name": "of-an-assistant"}
        got = await assistant.use("get_workspace", **asked)
        again = await assistant.use("get_workspace", **asked)
        assert got["state"] == "ready"
        assert again["id"] == got["id"]
        shown = await assistant.use("show_workspace", workspace=str(got["id"]))
        assert (shown["state"], shown["path"]) == ("ready", got["path"])
        waited = await assistant.use("wait_for_workspace", workspace="of-an-assistant")
        assert waited["state"] == "ready"

        refused = await assistant.is_refused("get_workspace", template=name, key="2")
        assert "(token_workspaces)" in refused

        extended = await assistant.use(
            "extend_workspace", workspace="of-an-assistant", hours=24 * 40
        )
        ends_at = dt.datetime.fromisoformat(extended["lease_ends_at"])
        assert ends_at > timezone.now() + dt.timedelta(days=39)

        Path(got["path"], "src", "notes.txt").write_text("mine\n")
        work = await assistant.use("check_unsubmitted_work", workspace=got["name"])
        assert work["counts"] == {"untracked": 1}
        refused = await assistant.is_refused("retire_workspace", workspace=got["name"])
        assert "has unsubmitted work (untracked: 1). It was not retired." in refused

        Path(got["path"], "src", "notes.txt").unlink()
        ended = await assistant.use("retire_workspace", workspace=got["name"])
        assert ended["state"] == "trashed"
        once_more = await assistant.use("retire_workspace", workspace=got["name"])
        assert once_more["state"] == "trashed"

    converse(program, talk)


def test_a_person_decides_what_becomes_of_unsubmitted_work(
    program: StdioServerParameters, published_template: Template, worker: Child
) -> None:
    async def begin(assistant: Assistant) -> None:
        got = await assistant.use(
            "get_workspace",
            template=published_template.name,
            key="TICKET-2",
            name="of-an-assistant",
        )
        Path(got["path"], "src", "notes.txt").write_text("mine\n")
        kept = await assistant.is_refused("retire_workspace", workspace=got["name"])
        assert "was not retired, because it has unsubmitted work" in kept

    async def end(assistant: Assistant) -> None:
        ended = await assistant.use("retire_workspace", workspace="of-an-assistant")
        assert ended["state"] == "trashed"

    # Programs of before 2026 are asked in another way.
    converse(program, begin, person="keep", mode="legacy")
    converse(program, end, person="rescue")

    assert Workspace.objects.get().rescues.exists()


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "CLONEYARD_SERVER is not an address."),
        (
            {"CLONEYARD_SERVER": "http://cloneyard.example.com"},
            "http://cloneyard.example.com would send the token unencrypted. Use https.",
        ),
        ({"CLONEYARD_SERVER": "https://a.example"}, "CLONEYARD_TOKEN is empty."),
        (
            {
                "CLONEYARD_SERVER": "https://a.example",
                "CLONEYARD_TOKEN": "secret",
                "CLONEYARD_CA_FILE": "/nowhere",
            },
            "CLONEYARD_CA_FILE cannot be read: No such file or directory.",
        ),
    ],
)
def test_it_does_not_start_with_a_bad_configuration(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], sentence: str
) -> None:
    for name in ("SERVER", "TOKEN", "CA_FILE"):
        monkeypatch.delenv(f"CLONEYARD_{name}", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(SystemExit) as ended:
        mcp_server.main()

    assert ended.value.code == f"cloneyard-mcp: {sentence}"


def test_an_assistant_is_refused_with_sentences(program: StdioServerParameters) -> None:
    async def talk(assistant: Assistant) -> None:
        other = await assistant.is_refused("get_workspace", template="other", key="1")
        assert other.endswith("There is no template “other”. (invalid)")
        gone = await assistant.is_refused("show_workspace", workspace="nothing")
        assert gone.endswith("There is no workspace “nothing” for you to see.")
        empty = await assistant.is_refused("get_workspace", template="main", key="")
        assert "key" in empty
        ended = await assistant.is_refused("show_workspace", workspace="4711")
        assert "(not_found)" in ended

    converse(program, talk)


def test_an_assistant_hears_that_the_server_does_not_answer(
    program: StdioServerParameters,
) -> None:
    assert program.env is not None
    program.env["CLONEYARD_SERVER"] = "http://127.0.0.1:9"

    async def talk(assistant: Assistant) -> None:
        refused = await assistant.is_refused("list_workspaces")
        assert "http://127.0.0.1:9 did not answer" in refused

    converse(program, talk)
