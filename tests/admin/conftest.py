from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from django_jobqueue import registry
from django_jobqueue.registry import JobType

Person = Callable[..., Client]


@pytest.fixture(autouse=True)
def tests_types(settings: Settings) -> None:
    """Jobs of any type "tests:…" may be enqueued, without a handler."""
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["tests:*"]}


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    """A superuser for each test, without the half second that a real password hash takes."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def person(db: None) -> Person:
    """A function that answers with the browser of somebody who has just the permissions named."""

    def make(*codenames: str) -> Client:
        user = User.objects.create_user("ada", is_staff=True)
        found = Permission.objects.filter(codename__in=codenames, content_type__app_label="django_jobqueue")
        assert found.count() == len(codenames)
        user.user_permissions.set(found)
        client = Client()
        client.force_login(user)
        return client

    return make


def noop() -> None:
    """The handler of ``registered``."""


@pytest.fixture
def registered() -> Iterator[JobType]:
    """A type that this process has a handler for, with a queue of its own."""
    job_type = JobType(name="tests:registered", function=noop, queue="of-the-type")
    registry.register(job_type)
    yield job_type
    registry.unregister(job_type.name)
