"""What the web server loads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from provisioner.lib.garbage import spare_what_is_loaded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_django = get_wsgi_application()


def application(
    environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer a request; one in chunks gets a length, without which Django reads none.

    Of one that is too large, only as much is read as makes Django refuse it.
    """
    if "HTTP_TRANSFER_ENCODING" in environ and "CONTENT_LENGTH" not in environ:
        assert settings.DATA_UPLOAD_MAX_MEMORY_SIZE is not None
        body = environ["wsgi.input"].read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
        environ |= {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))}
    return _django(environ, start_response)


# All that its addresses lead to: else each process would read it when somebody waits
# for its first answer.
import_module(settings.ROOT_URLCONF)
spare_what_is_loaded()
