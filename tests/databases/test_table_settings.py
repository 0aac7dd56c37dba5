"""The table of jobs has settings of its own on PostgreSQL; the migration giving them can be taken back."""

import pytest
from django.core.management import call_command
from django.db import connection

pytestmark = pytest.mark.django_db(transaction=True)


def settings() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = 'django_jobqueue_job'")
        [[options]] = cursor.fetchall()
    return options or []


@pytest.mark.postgresql
def test_dead_rows_are_swept_before_they_are_a_fifth_of_the_history() -> None:
    assert settings() == ["autovacuum_vacuum_scale_factor=0.05"]


def test_the_settings_can_be_taken_back_and_given_again() -> None:
    try:
        call_command("migrate", "django_jobqueue", "0001", verbosity=0)
        if connection.vendor == "postgresql":
            assert settings() == []
    finally:
        call_command("migrate", "django_jobqueue", verbosity=0)
    if connection.vendor == "postgresql":
        assert settings() != []
