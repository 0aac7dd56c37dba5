"""A migration under a running worker: what its connections keep of the old table holds nothing up."""

from collections.abc import Callable, Iterator

import pytest
from django.db import connection

from django_jobqueue.worker import Worker
from tests.jobsapp.ledger import Ledger
from tests.waiting import equals
from tests.worker.handlers import DONE, standing, touches

pytestmark = pytest.mark.postgresql


@pytest.fixture
def altered(transactional_db: None) -> Iterator[Callable[[str], None]]:
    """Gives the column ``fence``, which every claim returns, another type; the old one at the end."""

    def alter(kind: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE django_jobqueue_job ALTER COLUMN fence TYPE {kind}")

    yield alter
    alter("integer")


def test_a_worker_goes_on_when_the_type_of_a_column_changes(
    altered: Callable[[str], None], start_worker: Callable[..., Worker], ledger: Ledger
) -> None:
    start_worker()
    for n in range(1, 6):
        touches(20)
        equals({DONE: 20 * n}, standing)
    altered("bigint")
    touches(20)
    equals({DONE: 120}, standing)
    assert set(ledger.times_run().values()) == {1}
