import os
from pathlib import Path

import pytest

from tests.jobsapp.ledger import VARIABLE, Ledger
from tests.plugin import CLUSTER
from tests.postgres import Cluster

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def worker_env(transactional_db: None) -> dict[str, str]:
    """The environment of a process that works on the test database: it sees what the test has committed.

    Settings module, database URL and the coverage settings are this process' own (see tests/plugin.py).
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """What the handlers of tests.jobsapp note, in this process and in those it starts."""
    path = tmp_path / "ledger"
    monkeypatch.setenv(VARIABLE, str(path))
    return Ledger(path)


@pytest.fixture
def postgres_cluster(pytestconfig: pytest.Config) -> Cluster:
    """The server itself, for tests that stop and start it."""
    cluster = pytestconfig.stash.get(CLUSTER, None)
    assert cluster, "there is no server on this database: mark the test with @pytest.mark.postgresql"
    return cluster


@pytest.fixture
def postgres_log(postgres_cluster: Cluster) -> Path:
    """The file that the server writes its messages to, from the start of the whole run."""
    return postgres_cluster.log
