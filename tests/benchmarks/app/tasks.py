"""The same as tasks of Django's API."""

from django_jobqueue import task


@task
def nothing(n: int = 0) -> None:
    """A plain function."""


@task
async def async_nothing(n: int = 0) -> None:
    """A coroutine."""
