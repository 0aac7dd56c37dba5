import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def tests_types(settings: Settings) -> None:
    """Jobs of any type "tests:…" may be enqueued, without a handler."""
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["tests:*"]}
