"""Keep a template's tree unchanged while it is verified, until its snapshot."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from provisioner.catalog.steps.run import TemplateRun
from provisioner.gateways.hosts import build
from provisioner.gateways.hosts.tree_remarks import as_text
from provisioner.gateways.hosts.writers import find_writers
from provisioner.lib.refusals import StepRefused
from provisioner.sites.sandbox import bounds_of_host

STILL_WRITTEN = "template_still_written"
MOST_NAMED = 3
_VANISHED = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


def require_no_command(run: TemplateRun) -> None:
    """Refuse while a build or test of ours uses the tree, on any host.

    Raises: Busy.
    """
    build.require_nobody_else(
        run.visible_root(run.template.junction_path),
        notes=run.step.log_path.parent,
        bounds=bounds_of_host(),
    )


def require_no_writers(root: Path) -> None:
    """Refuse to continue while a process of this host writes to the tree.

    The build's own processes ended with its sandbox, so these came from elsewhere.

    Raises: StepRefused.
    """
    if found := list(islice(find_writers(root), MOST_NAMED)):
        raise _still_written(f"{'; '.join(map(str, found))}.")


@contextmanager
def changes_named(root: Path) -> Iterator[None]:
    """Turn a file that vanishes into a refusal that names the writers.

    Raises: StepRefused.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _VANISHED or error.filename is None:
            raise
        path = as_text(os.path.relpath(error.filename, root))
        writers = "; ".join(map(str, islice(find_writers(root), MOST_NAMED)))
        by = writers or "No process of this host writes there now. Check other hosts"
        raise _still_written(f"{path} vanished. {by}.") from error


def _still_written(what: str) -> StepRefused:
    return StepRefused(
        "The template's files are still being written after the build, so nothing "
        f"was published: {what} Stop that, then build again.",
        code=STILL_WRITTEN,
    )
