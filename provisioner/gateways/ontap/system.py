"""The cluster, its SVMs and its jobs."""

from __future__ import annotations

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.ontap import records
from provisioner.gateways.ontap.errors import problem
from provisioner.gateways.ontap.types import Aggregate, Cluster, DataLif, OntapJob, Svm
from provisioner.gateways.ontap.verbs import Verbs

_JOB_HAS_ENDED = "458762"


class System(Verbs):
    """Questions about the cluster and the SVM."""

    def get_cluster(self) -> Cluster:
        """Return name and version: the cheapest connection test.

        Source: GET /api/cluster.
        """
        return records.cluster(
            self._ontap.get("/cluster", query={"fields": "name,version"})
        )

    def has_license(self, name: str) -> bool:
        """Return whether the cluster has a license, such as "flexclone".

        Raises: Refused (our account may not ask).
        Source: GET /api/cluster/licensing/licenses.
        """
        found = self._find("/cluster/licensing/licenses", name=name, fields="name")
        return found is not None

    def get_aggregate(self, name: str) -> Aggregate:
        """Return size and free space in bytes.

        Raises: NotFound.
        Source: GET /api/storage/aggregates.
        """
        found = self._find(
            "/storage/aggregates", name=name, fields=records.AGGREGATE_FIELDS
        )
        if found is None:
            raise problem(NotFound, f"There is no aggregate {name}.")
        return records.aggregate(found)

    def list_svms(self) -> list[Svm]:
        """Return the SVMs that our account may see.

        Source: GET /api/svm/svms.
        """
        found = self._ontap.get_records(
            "/svm/svms", query={"fields": records.SVM_FIELDS}
        )
        return [records.svm(record) for record in found]

    def check_svm(self) -> None:
        """Verify that the SVM exists, is running and serves NFS.

        Raises: NotFound, Refused (stopped, or NFS off).
        Source: GET /api/svm/svms.
        """
        svm = self._find("/svm/svms", name=self._svm, fields="name,state,nfs.enabled")
        if svm is None:
            raise problem(
                NotFound, f"There is no SVM {self._svm}, or our account may not see it."
            )
        if svm.get("state") != "running":
            raise problem(Refused, f"The SVM {self._svm} is not running.")
        if svm.get("nfs", {}).get("enabled") is False:
            raise problem(Refused, f"The SVM {self._svm} does not serve NFS.")

    def max_volumes(self) -> int | None:
        """Return how many volumes the SVM may have, None if it has no limit.

        Raises: NotFound (SVM).
        Source: GET /api/svm/svms max_volumes.
        """
        svm = self._find("/svm/svms", name=self._svm, fields="max_volumes")
        if svm is None:
            raise problem(NotFound, f"There is no SVM {self._svm}.")
        return records.max_volumes(svm)

    def list_data_lifs(self) -> list[DataLif]:
        """Return the data LIFs of the SVM that serve NFS.

        Source: GET /api/network/ip/interfaces.
        """
        found = self._ontap.get_records(
            "/network/ip/interfaces",
            query={
                **self._in_svm(),
                "services": "data_nfs",
                "fields": records.LIF_FIELDS,
            },
        )
        return [records.data_lif(record) for record in found]

    def list_unfinished_jobs(self) -> list[OntapJob]:
        """Return all ONTAP jobs that have not ended, whoever started them.

        Source: GET /api/cluster/jobs?state=queued|running|paused.
        """
        found = self._ontap.get_records(
            "/cluster/jobs",
            query={"state": "queued|running|paused", "fields": records.JOB_FIELDS},
        )
        return [records.ontap_job(record) for record in found]

    def cancel_job(self, uuid: str) -> None:
        """Cancel an ONTAP job. A job that has ended, or is unknown, is success.

        Raises: Refused (458776: it can no longer be cancelled, and continues).
        Source: PATCH /api/cluster/jobs/{uuid}?action=cancel.
        """
        try:
            self._ontap.write_at_once(
                "PATCH", f"/cluster/jobs/{uuid}", query={"action": "cancel"}, body={}
            )
        except NotFound:
            return
        except Refused as error:
            if error.remote_code != _JOB_HAS_ENDED:
                raise
