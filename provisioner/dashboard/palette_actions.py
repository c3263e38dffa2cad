"""Actions of the command palette: a verb and the name of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.lib.rows import with_words
from provisioner.workspaces.models import LEASED, Workspace
from provisioner.workspaces.queries import workspaces_visible_to

State = Workspace.State
SHORTEST_VERB = 3
SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Verb:
    """An action on workspaces in certain states; its page asks for confirmation.

    `words` are what people type for it.
    """

    words: tuple[str, ...]
    label: str
    states: tuple[str, ...]
    url_name: str

    def url_for(self, workspace: Workspace) -> str:
        return reverse(self.url_name, args=[workspace.pk])


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


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A verb with its workspace."""

    verb: Verb
    workspace: Workspace

    @property
    def title(self) -> str:
        return f"{self.verb.label} {self.workspace.name}"


def deeds(user: User, words: list[str]) -> Iterator[Deed]:
    """Yield the actions that match a verb and the words after it.

    Without a verb there are none. Without further words, and for everybody but
    administrators, only the person's own workspaces match. One query.
    """
    verbs = verbs_meant(words[0]) if words else []
    if not verbs:
        return
    text = " ".join(words[1:])
    asks_for_others = user.is_administrator and bool(text)
    workspaces = workspaces_visible_to(user)
    if not asks_for_others:
        workspaces = workspaces.filter(owner=user)
    states = {state for verb in verbs for state in verb.states}
    named = with_words(workspaces.filter(state__in=states), text, "name")
    rows = list(named.order_by("name")[:SHOWN])
    for verb in verbs:
        for workspace in rows:
            if workspace.state in verb.states:
                yield Deed(verb=verb, workspace=workspace)


def verbs_meant(word: str) -> list[Verb]:
    """Return the verbs that begin with a text."""
    word = word.casefold()
    if len(word) < SHORTEST_VERB:
        return []
    return [verb for verb in VERBS if any(w.startswith(word) for w in verb.words)]


def is_verb(word: str) -> bool:
    """Return whether a word is a complete verb."""
    return any(word.casefold() in verb.words for verb in VERBS)
