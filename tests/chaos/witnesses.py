"""What the judges of `make chaos` look through, for tests of the judges."""

from __future__ import annotations

from tests.chaos.witness import OntapWitness
from tests.support.mirrored_labs import PASSWORD, End
from tests.support.mirrors import address_of


def witness(end: End) -> OntapWitness:
    address = address_of(end)
    return OntapWitness(
        {
            "host": "127.0.0.1",
            "port": address["ontap_port"],
            "user": address["ontap_user"],
            "password": PASSWORD,
            "ca_file": address["ontap_ca_file"],
            "root": str(end.lab.array.root),
        }
    )
