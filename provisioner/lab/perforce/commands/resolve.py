"""p4 resolve and resolved: merge concurrent changes.

Source: p4 help resolve; the exchange is that of the client's published library.
"""

from __future__ import annotations

from provisioner.lab.perforce import filetypes, keywords, merge3, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.intake import Intake
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import send_file
from provisioner.lab.perforce.commands.typeresolve import (
    announce_type,
    give_type,
    resolved_type,
    takes_type,
)
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.holdings import Opened, opened_by
from provisioner.lab.perforce.integrations import Resolve, put_resolves, resolves_of
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_revision
from provisioner.lab.perforce.shelves import find_shelved
from provisioner.lab.perforce.wire import Message, Value

# `-a` letter -> what the client does by itself; a person decides without.
_AUTOMATIC = {"m": "auto", "s": "safe", "f": "force"}
_HOW = {
    "theirs": "copy from",
    "yours": "ignored",
    "merged": "merge from",
    "edit": "edit from",
}


def resolve(request: Request) -> None:
    """Answer `p4 resolve`."""
    client = request.get_client()
    letter = request.options.get("a", "")
    if letter not in ("", "t", "y", *_AUTOMATIC):
        raise CommandError(7198, usage=_USAGE)
    pending = _matching(request, client, is_resolved=False)
    for item in pending:
        opened = opened_by(request.state.database, client=client.name)[item.path]
        merge = _Merge(request, client, item, opened)
        merge.announce()
        if not request.has("n"):
            _finish(request, client, item, merge.run(letter))
    if not pending:
        request.say(6531, argc=" ".join(request.args))


def resolved(request: Request) -> None:
    """Answer `p4 resolved`: what is resolved and not yet submitted."""
    client = request.get_client()
    found = _matching(request, client, is_resolved=True)
    for item in found:
        place = client.view.to_client(item.path) or item.path
        request.report(
            {
                "path": client.local_path(place),
                "toFile": item.path,
                "fromFile": item.other,
                "startFromRev": f"#{item.start or 'none'}",
                "endFromRev": f"#{item.end}",
                "how": item.how,
            },
            6472,
            localPath=client.local_path(place),
            how=item.how,
            fromFile=item.other,
            fromRev=item.revisions,
        )
    if not found:
        request.say(6529, argc=" ".join(request.args))


def _matching(request: Request, client: Client, *, is_resolved: bool) -> list[Resolve]:
    sets = file_sets(request, default="")
    return [
        item
        for item in resolves_of(request.state.database, client=client.name)
        if bool(item.how) == is_resolved
        and any(
            files.has_file(
                path=item.path, client_path=client.view.to_client(item.path) or ""
            )
            for files in sets
        )
    ]


def _announce(request: Request, client: Client, item: Resolve, opened: Opened) -> None:
    is_text = _merges_as_text(opened)
    local = client.local_path(opened.client_path)
    record: dict[str, Value] = {
        "clientFile": local,
        "fromFile": item.other,
        "startFromRev": item.start or "none",
        "endFromRev": item.end,
        "baseFile": item.base,
        "baseRev": item.base_revision,
        "resolveType": "content",
        "resolveFlag": "c",
        "contentResolveType": "3waytext" if is_text else "2wayraw",
    }
    request.report(
        record,
        6569 if is_text else 6469,
        localPath=local,
        fromFile=item.other,
        fromRev=item.revisions,
        baseFile=item.base,
        baseRev=f"#{item.base_revision}",
    )


def _merges_as_text(opened: Opened) -> bool:
    return filetypes.base_of(opened.type) in ("text", "unicode", "utf8", "utf16")


class _Merge:
    """One file to resolve."""

    def __init__(
        self, request: Request, client: Client, item: Resolve, opened: Opened
    ) -> None:
        self._request = request
        self._client = client
        self._item = item
        self._opened = opened
        self._local = client.local_path(opened.client_path)
        database = request.state.database
        shelved = find_shelved(database, name=item.other)
        self._theirs = (
            shelved.as_revision
            if shelved
            else find_revision(database, path=item.other, number=item.end)
        )
        self._base = find_revision(database, path=item.base, number=item.base_revision)

    def announce(self) -> None:
        """Report what there is to resolve: the content, and the type if it changed."""
        _announce(self._request, self._client, self._item, self._opened)
        if self._theirs and takes_type(
            self._opened, theirs=self._theirs, base=self._base
        ):
            announce_type(
                self._request, self._client, self._item, self._opened, self._theirs
            )

    def run(self, letter: str) -> str:
        """Resolve one file; return how, "" if it was skipped."""
        opened, theirs, base = self._opened, self._theirs, self._base
        if not theirs or not base or not takes_type(opened, theirs=theirs, base=base):
            return self._bring_content(letter)
        kind = resolved_type(letter, opened, theirs=theirs, base=base)
        if kind is None:
            return ""
        self._opened = opened._replace(type=kind)
        how = self._bring_content(letter)
        if how and kind != opened.type:
            give_type(self._request, self._client, self._opened)
        return how

    def _bring_content(self, letter: str) -> str:
        theirs = self._theirs
        if letter == "y" or theirs is None or theirs.is_deleted:
            return "ignored"
        if letter == "t":
            return self._take(theirs)
        if letter == "f" and not _merges_as_text(self._opened):
            raise NotInLab("resolve -af of binary files")
        if _merges_as_text(self._opened):
            self._open_text(theirs)
        else:
            self._open_binary(theirs)
        self._request.send(
            "client-CloseMerge",
            {
                "handle": "merge",
                "mergeConfirm": replies.MERGED,
                "mergeDecline": replies.SKIPPED,
                "mergePerms": "rw",
                # A resolver in a program reads the names from this message.
                **(self._names() if _merges_as_text(self._opened) else {}),
                **({"mergeAuto": _AUTOMATIC[letter]} if letter else {}),
            },
        )
        answer = None
        for message in self._request.answers():
            answer = message if message.func == replies.MERGED else answer
        return _HOW.get(answer.text("mergeHow"), "") if answer else ""

    def _take(self, theirs: Revision) -> str:
        send_file(
            self._request,
            self._client,
            theirs,
            local=self._local,
            confirm={},
            clobber=True,
            writable=True,
        )
        return "copy from"

    def _names(self) -> dict[str, Value]:
        item = self._item
        return {
            "baseName": f"{item.base}#{item.base_revision}",
            "theirName": f"{item.other}#{item.end}",
            "yourName": self._opened.client_path,
        }

    def _open(self, func: str, **more: Value) -> None:
        code = filetypes.wire_code(self._opened.type, line_end=self._client.line_end)
        self._request.send(
            func,
            {
                "path": self._local,
                "handle": "merge",
                **{f"type{part}": code for part in ("", "2", "3", "4")},
                **more,
            },
        )

    def _open_text(self, theirs: Revision) -> None:
        content = self._request.state.content
        base = self._base
        old = content.read(base.digest) if base and not base.is_deleted else b""
        new = content.read(theirs.digest)
        mine = self._fetch()
        self._open("client-OpenMerge3", **self._names())
        for piece in merge3.merge(*map(self._plain, (old, new, mine))):
            self._request.send(
                "client-WriteMerge",
                {"handle": "merge", "bits": piece.bits, "data": piece.data},
            )

    def _plain(self, data: bytes) -> bytes:
        """Return content with its keywords collapsed, as they are nobody's change.

        Inferred: otherwise every revision would conflict with the next one.
        """
        return keywords.collapsed(data, file_type=self._opened.type)

    def _open_binary(self, theirs: Revision) -> None:
        base = self._base
        digest = {"digest": base.digest} if base and base.digest else {}
        self._open("client-OpenMerge2", **digest)
        for data in self._request.state.content.chunks(theirs.digest):
            self._request.send("client-WriteMerge", {"handle": "merge", "data": data})

    def _fetch(self) -> bytes:
        """Return the user's own version of the file.

        Raises: CommandError if the client cannot send it.
        """
        self._request.send(
            "client-SendFile",
            {
                "path": self._local,
                "type": filetypes.wire_code(
                    self._opened.type, line_end=self._client.line_end
                ),
                "perms": "rw",
                "handle": "mine",
                "open": replies.OPEN,
                "write": replies.WRITE,
                "confirm": replies.SENT,
                "decline": replies.DECLINED,
                "item": 0,
            },
        )
        intake = Intake(self._request)
        received: list[Message] = list(self._request.answers())
        for answer in received:
            intake.take(answer, [self._opened])
        sent = intake.sent.get(self._opened.path)
        if sent is None:
            raise CommandError(7197)
        return self._request.state.content.read(sent.digest)


def _finish(request: Request, client: Client, item: Resolve, how: str) -> None:
    place = client.view.to_client(item.path) or item.path
    if not how:
        request.say(7298, toFile=place)
        return
    with request.state.database.writing():
        put_resolves(request.state.database, [item._replace(how=how)])
    record: dict[str, Value] = {
        "toFile": place,
        "how": how,
        "fromFile": item.other,
        "startFromRev": item.start or "none",
        "endFromRev": item.end,
    }
    request.report(
        record, 7297, toFile=place, how=how, fromFile=item.other + item.revisions
    )


_USAGE = "resolve [-at -ay -am -as -af] [-n] [file...]"

COMMANDS = (
    Command(
        names=("resolve",),
        run=resolve,
        usage=_USAGE,
        flags="n",
        valued="a",
        absent="AcdfKNotv",
        uses_client=True,
    ),
    Command(
        names=("resolved",),
        run=resolved,
        usage="resolved [file...]",
        absent="o",
        uses_client=True,
    ),
)
