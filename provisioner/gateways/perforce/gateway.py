"""The contract with Perforce: every verb Cloneyard uses, as one user of one server.

`p4.py` beside it implements it with p4python. Every method may raise
Unreachable, Busy (resource pressure, limits that a smaller request would meet) and
AuthFailed; each lists what it raises beyond that.

Verbs marked "local files" read or write the client's Root, so they run where the
namespace is mounted and as the uid that owns the files: see hosts/client_files.py.
All others touch the server only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from provisioner.gateways.perforce.carrying import (
    CopyReport,
    MergeReport,
    OpenReport,
    ToResolve,
)
from provisioner.gateways.perforce.protections import Protections
from provisioner.gateways.perforce.types import (
    ClientSpec,
    HaveList,
    LockUse,
    NewestWork,
    OpenedFile,
    Part,
    PendingChange,
    PopulateReport,
    ReconcileFinding,
    ReopenReport,
    ServerInfo,
    Shelf,
    ShelvedFile,
    ShelveReport,
    SubmittedBatch,
    SubmittedChange,
    SyncProgress,
    SyncReport,
    TreeSize,
    ViewSurvey,
)


class PerforceGateway(Protocol):
    """One Perforce server, spoken to as one user."""

    def get_info(self) -> ServerInfo:
        """Return what the server is; the cheapest proof of a working connection.

        Source: p4 info.
        """

    def client_types(self) -> tuple[str, ...]:
        """Return which types a new client may have: "writeable", and of "readonly",
        "partitioned" and "partitioned-jnl" those that the server has. Makes nothing.

        Raises: NotPermitted.
        Source: p4 client -T type -o.
        """

    def check_login(self) -> None:
        """Prove that our account may work.

        Raises: AuthFailed.
        Source: p4 login -s.
        """

    def access_level(self) -> str:
        """Return the highest level that the protections give our account anywhere.

        Such as "super", "admin" or "write"; "super" where there are no protections.

        Source: p4 protects -m.
        """

    def limits_of(self, user: str) -> dict[str, int]:
        """Return what a user's groups limit a command to, by field of the form.

        Only what is limited is in it.

        Source: p4 groups -i user, p4 group -o.
        """

    def setting(self, name: str) -> str:
        """Return a configurable of the server, "" where it is not set.

        Raises: NotPermitted (super or operator alone may ask).
        Source: p4 configure show.
        """

    def ticket_seconds(self) -> int:
        """Return for how long our account's ticket is good: proof that it is one.

        Raises: AuthFailed (also where the server wants no ticket of this user, and
        for a password: neither proves anything).
        Source: p4 login -s. A ticket that was not asked for with p4 login -a is good
        on the host that asked for it, and nowhere else.
        """

    def user_ticket(self, user: str) -> str | None:
        """Return a ticket to act as this user; None where our account may not.

        None too for a user the server does not know; "" where it wants no ticket of
        this user. It is good on the host that asked for it, and is a secret: keep it
        in memory, for as long as it is used.

        Source: p4 login -p user, which needs super.
        """

    def spelling_of(self, user: str) -> str | None:
        """Return how the server spells a user's name, None where it knows none such.

        It is another one where the server ignores case.

        Source: p4 users.
        """

    def email_of(self, user: str) -> str:
        """Return the mail address in a user's spec, as typed; "" for an unknown user.

        Source: p4 users.
        """

    def protections_of(self, user: str, *, host: str = "") -> Protections:
        """Return what the protections say about a user, directly and by groups.

        With `host`, an address, as they are for who comes from there. One round trip;
        no path is given, so that what concerns parts of a path cannot be missed.

        Raises: Refused (our account may not ask for others).
        Source: p4 protects -u, which needs super; or admin, where
        dm.protects.allow.admin is 1.
        """

    def find_client(self, name: str) -> ClientSpec | None:
        """Return the client spec, or None where the server has none of that name.

        Asks `p4 clients -e` first: `client -o` of an unknown name answers a default.
        Neither bumps the client's Access date for a client that is not there.

        Source: p4 clients -a -e, p4 client -o.
        """

    def list_clients(self, *, name_filter: str) -> list[ClientSpec]:
        """Return clients by name pattern, without view, root host or submit options.

        Those that are bound to other servers are among them.

        Source: p4 clients -a -e.
        """

    def save_client(self, spec: ClientSpec, *, past_lock: bool = False) -> None:
        """Create or change a client spec. Safe to repeat.

        `past_lock` changes one that its owner locked, too, which needs admin.

        Raises: Refused (locked by another owner, bad view, type change, limits).
        Source: p4 client -i; p4 client -f -i.
        """

    def delete_client(
        self,
        name: str,
        *,
        keep_shelves: bool = False,
        server_id: str = "",
        as_seen: ClientSpec | None = None,
    ) -> None:
        """Delete a client spec. Gone already is success. Never deletes a shelf.

        One that is not `as_seen` any more, access aside, stays: what was decided by
        that look may not hold.

        Without `keep_shelves` nothing is forced. With it, for clients whose work is
        rescued and recorded, shelved changes stay and a lock is passed over; opened
        files and pending changes without a shelf are refused all the same, since force
        would drop them. Those of a client that is bound to another server cannot be
        seen here: it goes only where that server is named by `server_id`.

        Raises: ClientHasOpenedFiles, ClientHasPendingChanges, ClientHasShelves (all
        InUse), ClientIsLocked, ClientOfOtherServer, NotPermitted (all Refused), Busy
        where it was changed.
        Source: p4 client -d; p4 client -d -f -Fs [--serverid=X].
        """

    def latest_change(self, paths: tuple[str, ...]) -> int:
        """Return the newest submitted change under the depot paths, 0 for none.

        Without paths it is that of the server, and costs one row.

        Source: p4 changes -m1 -s submitted.
        """

    def submitted_after(self, change: int, *, at_most: int) -> SubmittedBatch:
        """Return the next submitted changes after this one, in order, with files.

        Two commands, however large the depot is; one where there is nothing new.

        Source: p4 changes -r -m N -e C -s submitted, p4 describe -s.
        """

    def submitted_under(
        self, paths: tuple[str, ...], *, above: int, upto: int, at_most: int
    ) -> SubmittedBatch:
        """Return the newest submitted changes of the paths in a range, newest first.

        Source: p4 changes -m N -s submitted path@A,@B, p4 describe -s.
        """

    def submitted_to(
        self, client: str, *, above: int, upto: int, at_most: int
    ) -> list[SubmittedChange]:
        """Return the newest submitted changes to a client's view in a range, in order.

        Without their `paths`: one command, and one row for each.

        Raises: NotFound (client).
        Source: p4 changes -L -m N -s submitted //client/...@A,@B.
        """

    def survey_view(
        self, view: Sequence[str], *, stream: str = "", most_names: int
    ) -> ViewSurvey:
        """Count what a view holds, and find names in it that differ in case alone.

        Of a stream the view that its clients get. Names are compared where none of the
        lines holds more than `most_names` files; nothing is saved.

        Raises: NotFound (stream, depot), Refused (limits of the server).
        Source: p4 sizes -s, p4 files -e, p4 client -S -o.
        """

    def is_submitted(self, change: int) -> bool:
        """Say whether the change exists, is submitted, and our account may see it.

        Source: p4 changes -s submitted //...@change,change.
        """

    def has_files(self, paths: tuple[str, ...], *, change: int) -> bool:
        """Return whether a file exists (not deleted) under the paths at the change.

        Source: p4 files -e -m 1.
        """

    def find_file(
        self,
        paths: tuple[str, ...],
        *,
        change: int,
        is_wanted: Callable[[str], bool],
    ) -> str | None:
        """Return a file (not deleted) under the paths at the change that is wanted.

        None where there is none; each file is shown to `is_wanted` once or more often,
        as its depot path.

        Source: p4 files -e.
        """

    def flush(
        self,
        client: str,
        *,
        change: int,
        parts: Sequence[Part] = (),
        in_batches: bool = False,
        on_command: Callable[[LockUse], None] | None = None,
    ) -> None:
        """Make the server believe the client has everything at the change.

        But for `parts`, one after the other: those at theirs. No file moves. Safe to
        repeat. The client must be unlocked and host-free.

        `in_batches` is for many files: directory by directory of the change, with
        a rest of random length between, so that others get the server's locks in
        between. What it had elsewhere stays. `on_command` hears for which table each
        command waited, where the server tells.

        Raises: NotFound (client or change), Refused (limits, locked, host, files that
        are opened and so keep their revision).
        Source: p4 sync -k -q //client/...@change.
        """

    def have_list(self, client: str) -> HaveList:
        """Return number and digest of the client's have list.

        Raises: NotFound (client), Refused (it belongs to another host).
        Source: p4 have.
        """

    def list_opened(self, client: str) -> list[OpenedFile]:
        """Return files opened on the client, whoever opened them.

        Source: p4 opened -a -C.
        """

    def list_pending_changes(self, client: str) -> list[PendingChange]:
        """Return the client's numbered pending changes, with shelves marked.

        Source: p4 changes -l -c client -s pending, -s shelved.
        """

    def list_shelved_files(self, change: int) -> list[ShelvedFile]:
        """Return what is shelved in a change; nothing where there is no shelf.

        Raises: NotFound (change).
        Source: p4 describe -S -s.
        """

    def newest_work(self, client: str, *, above: int) -> NewestWork:
        """Return when the client's newest changes of each kind were made.

        Those up to a change are not looked at, so that a limit on rows holds. Asked
        from the neutral client, without naming this one where the server would take
        that for a use of it.

        Source: p4 changes -m 1 -e above -c client -s submitted, shelved, pending.
        """

    def count_opened_by(self, user: str) -> dict[str, int]:
        """Return how many files a user has opened, by client.

        `opened -C client` might count as a use of the client; this names none.

        Source: p4 opened -a -u user.
        """

    def revert_server_side(self, client: str) -> None:
        """Revert everything opened on the client without touching its files.

        Source: p4 revert -k -C client //...
        """

    def delete_pending_change(self, change: int, *, delete_shelf: bool) -> None:
        """Delete a pending change; its shelf too where asked. Gone is success.

        Raises: InUse (files still opened in it, or shelved and not asked).
        Source: p4 shelve -d -f -c, p4 change -d -f.
        """

    def have_revisions(self, client: str, each: Callable[[str, int], None]) -> int:
        """Call `each` with depot path and revision of all that the client has.

        Keeps none of them; returns how many there were.

        Raises: NotFound (client), Refused (it belongs to another host).
        Source: p4 have.
        """

    def have_differences(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> list[tuple[str, int]]:
        """Return what the client has otherwise than a flush to the pin would say.

        Depot path and revision, 0 where it has none of a file: after a flush of the
        same view to the same change and parts, `flush_to` these brings the have list
        back. Opened files are among them in any case.

        Raises: NotFound (client or change), Refused (it belongs to another host).
        Source: p4 sync -n //client/...@change, p4 opened, p4 have.
        """

    def flush_to(self, client: str, revisions: Iterable[tuple[str, int]]) -> None:
        """Make the server believe the client has these revisions of these files.

        For the few that differ from a change the client was flushed to; revision 0
        is none. No file moves. Safe to repeat. Paths are as have_revisions gives them.

        Raises: NotFound (client), Refused (as flush).
        Source: p4 sync -k -q path#revision.
        """

    def mapped_paths(self, client: str, paths: Sequence[str]) -> set[str]:
        """Return those of these local paths that the client's view maps.

        Raises: NotFound (client).
        Source: p4 where.
        """

    def as_edits(self, client: str, paths: Sequence[str]) -> list[OpenedFile]:
        """Return files that the client has as if our user had opened them for edit.

        In the default change, at the revisions that it has; others are left out.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 have, p4 files.
        """

    def to_resolve(self, client: str) -> list[ToResolve]:
        """Return what our user has opened on the client and has to resolve.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 resolve -n.
        """

    # local files

    def shelve_copies(
        self,
        client: str,
        *,
        source: str,
        files: Sequence[OpenedFile],
        descriptions: Mapping[str, str],
    ) -> CopyReport:
        """Shelve what our user has opened on the client `source`, from a stand-in.

        Local files. `client` has the source's root and view, the revisions that the
        `files` were opened at, and nothing opened or pending. Of the source nothing
        changes: its changelists, shelves and opened files stay. A file that no second
        client may open (+l) is among `not_copied`.

        Raises: NotFound (client), Refused (host).
        Source: p4 edit -k, p4 add, p4 delete -k, p4 move -k, p4 shelve.
        """

    def open_copies(
        self,
        client: str,
        *,
        shelves: Sequence[Shelf],
        descriptions: Mapping[str, str],
        label: str,
    ) -> OpenReport:
        """Open what our shelves hold on a new client, with its content. Local files.

        Each change that a shelf `was` gets one with its description. What lies where a
        new file belongs gets `label` behind its name; files of the have list are
        overwritten. Safe to repeat.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 change -i, p4 unshelve -s -f -c.
        """

    def merge_opened(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> MergeReport:
        """Bring what our user has opened up to a submitted change. Local files.

        But for `parts`: what lies there up to theirs.
        What merges without a conflict is merged; all else is left to be resolved, and
        named. Files opened at a later revision stay there. Safe to repeat.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 sync, p4 resolve -am, p4 resolve -n, p4 resolved.
        """

    def shelve_opened(self, client: str, *, workspace: str) -> ShelveReport:
        """Put what our user has opened on the client into shelved changes. Local files.

        To be called as each user who has files opened there. A numbered change gets
        its files as its shelf, unless it has one already that says something else.
        Files of such a change, and of the default change, are reopened into a new
        change "Rescued by Cloneyard from <workspace> (change <was>): <description>"
        and shelved there. All stay opened. Nothing that was shelved before is
        overwritten. On an edge server the shelves are promoted.

        Halves of a move go together. What cannot be shelved is named with the reason:
        gone from disk, unreadable, another kind of file than it was opened as, not
        resolved, or whatever the server says.

        Safe to repeat: a second call goes on, and makes no second shelf of the same.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 change -i, p4 reopen -c, p4 shelve -c, p4 describe -S.
        """

    def reopen(
        self,
        client: str,
        files: Sequence[OpenedFile],
        *,
        descriptions: Mapping[str, str],
        shelves: Sequence[Shelf] = (),
        empty_changes: Sequence[str] = (),
    ) -> ReopenReport:
        """Open these files again as our user had them opened. Local files.

        `files` are what list_opened said then; those of other users are passed over.
        The client must have the revisions it had. Pending changes that are gone are
        made anew, with the `descriptions` by their old numbers; `empty_changes` are
        those that have no files. What cannot be opened
        by name, like a branch, comes out of the shelf that holds it. No file on disk
        changes. Safe to repeat.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 edit -k, p4 add, p4 delete -k, p4 move -k, p4 reopen, p4 unshelve.
        """

    def unshelve(
        self, client: str, *, change: int, into: str, files: Sequence[str] = ()
    ) -> ReopenReport:
        """Open the files of a shelf in the change `into`. Local files.

        `into` is "default" or a pending change of ours. Where a file lies on disk
        already, it stays as it is, and is put aside while the server's copy arrives;
        a repeat after a kill puts it back first. Files that are opened are left alone.

        Raises: NotFound (client, change), Refused (host, locked by another owner).
        Source: p4 unshelve -s -c, p4 where.
        """

    def sync(
        self,
        client: str,
        *,
        change: int,
        on_progress: Callable[[SyncProgress], None],
        replace_leftovers: bool = False,
        parts: Sequence[Part] = (),
        in_batches: bool = False,
        expected: TreeSize | None = None,
        on_command: Callable[[LockUse], None] | None = None,
    ) -> SyncReport:
        """Bring the client's files to exactly this submitted change. Local files.

        But for `parts`, one after the other: those to theirs. With `in_batches`
        directory by directory, with rests between, so that others get the server's
        locks; the have list is the same. `expected` is what there is to send then, for
        the progress: otherwise nobody knows before the last command. `on_command` is
        told what each waited for, as in `flush`.

        Safe to repeat after an interruption: what the server knows to have arrived is
        not sent again. A sync that was killed can leave a half-written file, which the
        next one takes for somebody's work and refuses; `replace_leftovers` fetches such
        files again. It overwrites every file that lies where a versioned one belongs
        and that the client does not have: for trees in which nobody works, like those
        of templates.

        Raises: NotFound (client or change), Refused (files that could not be written or
        are opened; each is named in the sentence, up to ten).
        Source: p4 sync //client/...@change, without -q: each file's record is counted.
        """

    def populate(
        self,
        client: str,
        *,
        since: int,
        change: int,
        on_progress: Callable[[int, int], None],
    ) -> PopulateReport:
        """Bring files below the client's root from one change to another. Local files.

        All of them have to be at `since`; nothing is known of them to the server, and
        no have list is read or written. Files that are writable are overwritten if the
        client has clobber. `on_progress` gets how many files of how many were written.
        Safe to repeat.

        Raises: NotFound (client), Refused (files that could not be written).
        Source: p4 files //client/...@A,@B, p4 sync -p path#revision.
        """

    def tree_size(self, client: str, *, change: int) -> TreeSize:
        """Return how much the client's view has at a submitted change.

        Raises: NotFound (client or change).
        Source: p4 sizes -s //client/...@change.
        """

    def restore_files(self, client: str, *, in_batches: bool = False) -> list[str]:
        """Fetch again what was changed or removed without being opened. Local files.

        For trees in which nobody works. Returns depot paths; safe to repeat.
        `in_batches` is as in `reconcile_preview`.

        Raises: NotFound (client), Refused (files that could not be written).
        Source: p4 reconcile -n -e -d, p4 sync -f path#have.
        """

    def local_paths(self, client: str, each: Callable[[str], None]) -> None:
        """Call `each` with the local path of every file that the client has.

        Raises: NotFound (client), Refused (it belongs to another host).
        Source: p4 have.
        """

    def count_out_of_sync(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> int:
        """Return how many files are not at the change, or at that of their part.

        Touches no file, so it need not run where they are.

        Raises: NotFound (client or change).
        Source: p4 sync -n //client/...@change.
        """

    def reconcile_preview(
        self,
        client: str,
        *,
        untracked: bool,
        ignore: tuple[str, ...] = (),
        in_batches: bool = False,
    ) -> list[ReconcileFinding]:
        """Compare files with the have list; open nothing. Local files.

        With `in_batches` directory by directory, with rests between, so that others
        get the server's locks; what is found is the same.

        Without `untracked` only versioned files are looked at (-e -d). `ignore` are
        P4IGNORE patterns, used instead of any ignore file in the tree; one that begins
        with a slash starts at the Root.

        Raises: NotFound (client), Refused (host).

        Source: p4 reconcile -n.
        """
