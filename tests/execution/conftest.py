from collections.abc import Iterator

import pytest

from tests.execution.runner import Runner


@pytest.fixture
def runner(transactional_db: None) -> Iterator[Runner]:
    """Runs jobs as a worker's thread does, one after another in one thread of its own."""
    runner = Runner()
    yield runner
    runner.close()
