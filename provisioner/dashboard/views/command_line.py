"""The page and download of the command line program."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from provisioner.cli import cloneyard

SOURCE = Path(cloneyard.__file__).read_text()
VERSION = hashlib.sha256(SOURCE.encode()).hexdigest()[:12]


@require_safe
@never_cache
@login_not_required
def command_line(request: HttpRequest) -> HttpResponse:
    """Return the command line program with this server's address filled in."""
    address = request.build_absolute_uri(reverse("workspace-list")).rstrip("/")
    filled = SOURCE.replace('\nSERVER = ""\n', f"\nSERVER = {json.dumps(address)}\n")
    filled = filled.replace('\nVERSION = ""\n', f"\nVERSION = {json.dumps(VERSION)}\n")
    return HttpResponse(
        filled,
        content_type="text/x-python; charset=utf-8",
        headers={"Content-Disposition": 'inline; filename="cloneyard"'},
    )


def commands_to_get_it(request: HttpRequest) -> list[str]:
    """Return the commands that download the program and sign in with it."""
    address = request.build_absolute_uri(reverse("command-line"))
    return [
        f"curl -fsSo cloneyard {shlex.quote(address)}",
        "chmod +x cloneyard",
        "./cloneyard login",
    ]
