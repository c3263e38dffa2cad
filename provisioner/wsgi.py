"""What the web server loads."""

from __future__ import annotations

import os
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from provisioner.lib.garbage import spare_what_is_loaded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")

application = get_wsgi_application()

# All that its addresses lead to: else each process would read it when somebody waits
# for its first answer.
import_module(settings.ROOT_URLCONF)
spare_what_is_loaded()
