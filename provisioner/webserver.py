"""How gunicorn serves us: `gunicorn --config python:provisioner.webserver`.

Its command line may say otherwise of each setting. Probes have an address of their
own where HEALTH_BIND says so: what comes there waits for no other request, since it
has threads that serve nothing else.

Source: https://docs.gunicorn.org/en/stable/settings.html
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from gunicorn.workers.gthread import ThreadWorker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")

# /readyz asks far sides for seconds: /healthz must not wait for it.
HEALTH_THREADS = 2


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """One with threads of its own for the address of probes."""

    def get_thread_pool(self) -> ThreadPoolExecutor:
        return Threads(requests=self.cfg.threads)

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse to start where waits could take all threads.

        Raises: ImproperlyConfigured.
        """
        if cfg.threads <= settings.API_WAITS_PER_PROCESS:
            raise ImproperlyConfigured(
                f"{cfg.threads} threads have to be more than the "
                f"{settings.API_WAITS_PER_PROCESS} of API_WAITS_PER_PROCESS: the "
                "others answer everything that does not wait."
            )
        super().check_config(cfg, log)


class Threads(ThreadPoolExecutor):
    """The threads of a worker: what comes from probes has others."""

    def __init__(self, *, requests: int) -> None:
        super().__init__(requests)
        self._for_probes = ThreadPoolExecutor(HEALTH_THREADS)
        self._probed = settings.HEALTH_BIND.rpartition(":")[2]

    def submit(self, handle: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        host_and_port = args[0].server  # the path of a socket where there is no port
        if self._probed and str(host_and_port[1]) == self._probed:
            return self._for_probes.submit(handle, *args)
        return super().submit(handle, *args)

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        self._for_probes.shutdown(*args, **kwargs)
        super().shutdown(*args, **kwargs)


bind = [address for address in (settings.WEB_BIND, settings.HEALTH_BIND) if address]
wsgi_app = "provisioner.wsgi"
worker_class = Worker
workers = 2
threads = 16
preload_app = True
# It would lie in a home directory, which a service does not have.
control_socket_disable = True
