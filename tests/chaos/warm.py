"""All that the servers of the trials import, imported once for all of them."""

from __future__ import annotations

import importlib

import django

MODULES = (
    "gunicorn.app.wsgiapp",
    "provisioner.lab.ontap.server",
    "provisioner.lab.perforce.server",
    "provisioner.urls",
    "provisioner.engine.management.commands.worker",
    "provisioner.workspaces.sweeps",
    "provisioner.engine.tasks",
    "provisioner.webserver",
    "provisioner.wsgi",
)

django.setup()
for name in MODULES:
    importlib.import_module(name)
