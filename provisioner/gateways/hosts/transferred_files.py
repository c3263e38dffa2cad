"""Files copied from one tree of a workspace into another, as the owner of both.

Nothing in the target tree is overwritten: either a copy that differs from an existing
file gets another name, or that file does. No link is followed, and neither filesystem
is left.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from provisioner.gateways.hosts.descent import ENTER
from provisioner.gateways.hosts.rescues.reading import CannotCheck, Found, Tree
from provisioner.gateways.owners import HOUR, works_on_files

NAMES_TRIED = 100
SHOW_EVERY = 200
_BLOCK = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class CopyOutcome:
    """The paths that were taken, and those that were not copied.

    `kept_aside` has pairs of a path and the other name: of its copy, or of what had the
    path before. `failed` has pairs of a path and the reason.
    """

    kept_aside: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


@works_on_files(within_seconds=4 * HOUR)
def copy_files(
    source: Path,
    target: Path,
    paths: Sequence[str],
    *,
    label: str,
    always_aside: bool = False,
    replaces: bool = False,
    on_progress: Callable[[int], None],
) -> CopyOutcome:
    """Copy files and links at these paths from one root to another.

    Mode and modification time are kept. If something else has the name, or with
    `always_aside`, the copy's name ends with `label`, and a number if that is taken.
    With `replaces`, that is what the other one is renamed to, and the copy gets its
    name. `on_progress` gets the number of files copied. Safe to repeat: files with the
    same content are not copied again.
    """
    copying = _Copying(
        target, label=label, always_aside=always_aside, replaces=replaces
    )
    with copying, Tree.at(source) as tree:
        for number, path in enumerate(paths):
            copying.copy(tree, path)
            if number % SHOW_EVERY == 0:
                on_progress(number)
    return copying.outcome


@works_on_files(within_seconds=4 * HOUR)
def differing_files(source: Path, target: Path, paths: Sequence[str]) -> list[str]:
    """Return the paths whose content differs between the two trees."""
    differing = []
    with Tree.at(source) as one, Tree.at(target) as other:
        for path in paths:
            try:
                with one.opened(path) as mine, other.opened(path) as theirs:
                    if not _is_same(mine, theirs):
                        differing.append(path)
            except CannotCheck:
                differing.append(path)
    return differing


def stamp_of(root: Path, paths: Sequence[str], *, read: Collection[str]) -> str:
    """Return a fingerprint of the files at these paths, in hex.

    It changes when somebody writes to them. Paths in `read` count by their content, as
    p4 itself touches files that it opens; all others by size and modification time.
    """
    digest = hashlib.sha256()
    with Tree.at(root) as tree:
        for path in sorted(paths):
            try:
                with tree.opened(path) as found:
                    status = found.status
                    what = (
                        _content_of(found)
                        if path in read
                        else f"{status.st_size} {status.st_mtime_ns}"
                    )
            except CannotCheck as error:
                what = type(error).__name__
            digest.update(os.fsencode(f"{path}\0{what}\n"))
    return digest.hexdigest()


def _content_of(found: Found) -> str:
    if not found.is_file:
        return found.link_target
    with os.fdopen(os.dup(found.fd), "rb") as reading:
        return hashlib.file_digest(reading, "sha256").hexdigest()


class _Copying:
    """Writes copies into a tree."""

    def __init__(
        self, target: Path, *, label: str, always_aside: bool, replaces: bool
    ) -> None:
        self._root = os.open(target, ENTER)
        self._label = label
        self._always_aside = always_aside
        self._replaces = replaces
        self.outcome = CopyOutcome()

    def __enter__(self) -> _Copying:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._root)

    def copy(self, source: Tree, path: str) -> None:
        """Copy one entry, and record the outcome."""
        try:
            with source.opened(path) as found:
                if not (found.is_file or found.is_link):
                    self._fail(path, "It is neither a file nor a link.")
                    return
                self._place(found, path)
        except CannotCheck as error:
            self._fail(path, str(error) or "It no longer exists.")
        except OSError as error:
            self._fail(path, f"{os.strerror(error.errno or 0)}.")

    def _fail(self, path: str, reason: str) -> None:
        self.outcome.failed.append((path, reason))

    def _place(self, found: Found, path: str) -> None:
        *way, name = path.split("/")
        directory = self._enter(way)
        place = self._put_in_place if self._replaces else self._put_beside
        try:
            others = place(found, directory, name)
        finally:
            os.close(directory)
        if others is None:
            self._fail(path, "All possible names for its copy are taken.")
            return
        self.outcome.kept_aside.extend(
            (path, "/".join([*way, other])) for other in others
        )

    def _put_beside(
        self, found: Found, directory: int, name: str
    ) -> Sequence[str] | None:
        """Copy a file under the first name that is free; return it if it is another."""
        first = [] if self._always_aside else [name]
        for candidate in [*first, *self._asides(name)]:
            if self._has_copied(found, directory, candidate):
                return [candidate] if candidate != name else []
        return None

    def _put_in_place(
        self, found: Found, directory: int, name: str
    ) -> Sequence[str] | None:
        """Copy a file under its name; return the names of what had it before.

        What has it is renamed, so whoever writes to it just then loses nothing.
        """
        asides = self._asides(name)
        if not _has_same(found, directory, name):
            with self._copied(found, directory, name) as copy:
                for aside in asides:
                    if _has_got(name, found, directory, copy=copy):
                        break
                    if not _is_taken(aside, directory):
                        os.rename(
                            name, aside, src_dir_fd=directory, dst_dir_fd=directory
                        )
                else:
                    return None
        return list(itertools.takewhile(lambda n: _is_taken(n, directory), asides))

    def _asides(self, name: str) -> list[str]:
        aside = f"{name}.{self._label}"
        return [aside, *(f"{aside}-{number}" for number in range(2, NAMES_TRIED))]

    def _enter(self, way: Sequence[str]) -> int:
        """Return a directory below the root, and create it if it is missing."""
        directory = os.dup(self._root)
        for part in way:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=directory)
            try:
                inner = os.open(part, ENTER, dir_fd=directory)
            finally:
                os.close(directory)
            directory = inner
        return directory

    def _has_copied(self, found: Found, directory: int, name: str) -> bool:
        """Ensure that a copy has this name; return False if something else has it."""
        if _has_same(found, directory, name):
            return True
        with self._copied(found, directory, name) as copy:
            return _has_got(name, found, directory, copy=copy)

    @contextlib.contextmanager
    def _copied(self, found: Found, directory: int, name: str) -> Iterator[str]:
        """Write a file, if it is one, under a temporary name for the block."""
        temporary = temporary_name(name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        try:
            if found.is_file:
                write_copy(found, directory, temporary)
            yield temporary
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)


def temporary_name(name: str) -> str:
    """Return a file's name while it is written.

    It derives from the name, so that the leftover of a killed attempt is replaced.
    """
    return f".cloneyard-copy-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"


def write_copy(found: Found, directory: int, name: str) -> None:
    """Write a file or link like another, with its mode and times; it must not exist.

    Raises: OSError.
    """
    times = (found.status.st_atime_ns, found.status.st_mtime_ns)
    if found.is_link:
        os.symlink(found.link_target, name, dir_fd=directory)
        os.utime(name, ns=times, dir_fd=directory, follow_symlinks=False)
        return
    fd = os.open(name, _NEW, 0o600, dir_fd=directory)
    os.lseek(found.fd, 0, os.SEEK_SET)
    with (
        os.fdopen(os.dup(found.fd), "rb") as reading,
        os.fdopen(fd, "wb") as writing,
    ):
        shutil.copyfileobj(reading, writing, _BLOCK)
        writing.flush()
        os.fchmod(writing.fileno(), stat.S_IMODE(found.status.st_mode) & 0o777)
        os.utime(writing.fileno(), ns=times)


def _has_got(name: str, found: Found, directory: int, *, copy: str) -> bool:
    """Ensure that the copy has this name; return False if something else has it."""
    try:
        if found.is_link:
            write_copy(found, directory, name)
        else:
            # Unlike a rename, a link never replaces anything.
            os.link(copy, name, src_dir_fd=directory, dst_dir_fd=directory)
    except FileExistsError:
        return False
    return True


def _is_taken(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _has_same(found: Found, directory: int, name: str) -> bool:
    """Return whether the file of this name, if any, is the same."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=directory)
            return _is_same(found, Found(status=status, link_target=target))
        if not stat.S_ISREG(status.st_mode):
            return False
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory)
    except OSError:
        return False
    try:
        return _is_same(found, Found(status=os.fstat(fd), fd=fd))
    finally:
        os.close(fd)


def _is_same(one: Found, other: Found) -> bool:
    if one.is_link or other.is_link:
        return one.is_link and other.is_link and one.link_target == other.link_target
    if not (one.is_file and other.is_file):
        return False
    if one.status.st_size != other.status.st_size:
        return False
    for fd in (one.fd, other.fd):
        os.lseek(fd, 0, os.SEEK_SET)
    while True:
        mine, theirs = os.read(one.fd, _BLOCK), os.read(other.fd, _BLOCK)
        if mine != theirs:
            return False
        if not mine:
            return True
