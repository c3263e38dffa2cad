"""p4 jobs, fixes: the lab has no jobs, so none are listed."""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.request import Request


def list_none(request: Request) -> None:
    """Answer `p4 jobs` and `p4 fixes` as a server without jobs does: with nothing."""


COMMANDS = (
    Command(
        names=("jobs",),
        run=list_none,
        usage="jobs [-l] [-r] [-m max] [-e jobview] [file...]",
        flags="lri",
        valued="me",
        absent="R",
    ),
    Command(
        names=("fixes",),
        run=list_none,
        usage="fixes [-i] [-m max] [-c change] [-j job] [file...]",
        flags="i",
        valued="mcj",
    ),
)
