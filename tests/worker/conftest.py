from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobqueue import registry
from django_jobqueue.worker import Worker
from tests.jobsapp.ledger import Ledger
from tests.worker.handlers import Handlers


@pytest.fixture
def start_worker(transactional_db: None, ledger: Ledger) -> Iterator[Callable[..., Worker]]:
    """Starts embedded workers; all are stopped at the end, before the tables are emptied."""
    workers: list[Worker] = []

    def start(**options: Any) -> Worker:
        worker = Worker(**{"poll_interval": 0.05, "lease": 30, **options})
        workers.append(worker)
        worker.start()
        return worker

    yield start
    for worker in workers:
        assert worker.stop(timeout=20), "a handler of the test has not ended"


@pytest.fixture
def handlers() -> Iterator[Handlers]:
    """Makes functions handlers until the end of the test."""
    handlers = Handlers()
    yield handlers
    for name in handlers.names:
        registry.unregister(name)
