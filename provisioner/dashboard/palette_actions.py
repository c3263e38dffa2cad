"""Actions of the command palette: a verb and the name of a workspace or sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.lib.rows import with_words
from provisioner.sandboxes.models import RESTING_SANDBOXES, Sandbox
from provisioner.sandboxes.queries import sandboxes_visible_to
from provisioner.workspaces.models import LEASED, Workspace
from provisioner.workspaces.queries import workspaces_visible_to

State = Workspace.State
SHORTEST_VERB = 3
SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Verb:
    """An action on rows in certain states; its page asks for confirmation.

    `words` are what people type for it.
    """

    words: tuple[str, ...]
    label: str
    states: tuple[str, ...]
    url_name: str

    def url_for(self, row: Workspace | Sandbox) -> str:
        return reverse(self.url_name, args=[row.pk])


VERBS = (
    Verb(
        words=("retire", "delete", "remove"),
        label="Retire",
        states=LEASED,
        url_name="workspace-retire",
    ),
    Verb(
        words=("extend", "renew"),
        label="Extend",
        states=LEASED,
        url_name="workspace-extend",
    ),
    Verb(
        words=("restore", "undelete"),
        label="Restore",
        states=(State.TRASHED,),
        url_name="workspace-detail",
    ),
    Verb(
        words=("purge", "destroy"),
        label="Purge",
        states=(State.TRASHED,),
        url_name="workspace-purge",
    ),
    Verb(
        words=("share",),
        label="Share",
        states=(State.READY, State.PROVISIONING, State.FAILED),
        url_name="workspace-share",
    ),
    Verb(
        words=("keep",),
        label="Keep",
        states=LEASED,
        url_name="workspace-keep",
    ),
)


SANDBOX_VERBS = (
    Verb(
        words=("retire", "delete", "remove"),
        label="Retire the sandbox",
        states=RESTING_SANDBOXES,
        url_name="sandbox-retire",
    ),
    Verb(
        words=("extend", "renew"),
        label="Extend the sandbox",
        states=RESTING_SANDBOXES,
        url_name="sandbox-extend",
    ),
    Verb(
        words=("start",),
        label="Start the sandbox",
        states=(Sandbox.State.STOPPED,),
        url_name="sandbox-detail",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A verb with what it is about."""

    verb: Verb
    row: Workspace | Sandbox

    @property
    def title(self) -> str:
        return f"{self.verb.label} {self.row.name}"


def deeds(user: User, words: list[str]) -> Iterator[Deed]:
    """Yield the actions that match a verb and the words after it.

    Without a verb there are none. Without further words, and for everybody but
    administrators, only the person's own rows match. A query for each kind of row.
    """
    if words:
        workspaces, sandboxes = workspaces_visible_to(user), sandboxes_visible_to(user)
        yield from _of(user, workspaces, VERBS, words)
        yield from _of(user, sandboxes, SANDBOX_VERBS, words)


def _of(
    user: User, rows: QuerySet[Any], verbs: Iterable[Verb], words: list[str]
) -> Iterator[Deed]:
    meant = verbs_meant(words[0], verbs)
    if not meant:
        return
    text = " ".join(words[1:])
    asks_for_others = user.is_administrator and bool(text)
    if not asks_for_others:
        rows = rows.filter(owner=user)
    states = {state for verb in meant for state in verb.states}
    named = with_words(rows.filter(state__in=states), text, "name")
    shown = list(named.order_by("name")[:SHOWN])
    for verb in meant:
        for row in shown:
            if row.state in verb.states:
                yield Deed(verb=verb, row=row)


def verbs_meant(word: str, verbs: Iterable[Verb]) -> list[Verb]:
    """Return the verbs that begin with a text."""
    word = word.casefold()
    if len(word) < SHORTEST_VERB:
        return []
    return [verb for verb in verbs if any(w.startswith(word) for w in verb.words)]


def is_verb(word: str) -> bool:
    """Return whether a word is a complete verb."""
    verbs = (*VERBS, *SANDBOX_VERBS)
    return any(word.casefold() in verb.words for verb in verbs)
