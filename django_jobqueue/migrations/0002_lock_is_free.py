"""PostgreSQL: the function by which a claim makes sure that a lock key is free."""

from typing import Any

from django.db import migrations

# The advisory lock keeps two claims from taking one key at the same instant. The look that follows must
# see what a rival has committed just before it let go of that lock, which the claim's own snapshot need
# not show: a VOLATILE function has a new snapshot for each of its statements.
CREATE = """
CREATE FUNCTION django_jobqueue_lock_is_free(key text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(27249, hashtext(key)) THEN
        RETURN FALSE;
    END IF;
    RETURN NOT EXISTS (SELECT 1 FROM django_jobqueue_job WHERE lock_key = key AND status = 2);
END $$
"""
DROP = "DROP FUNCTION django_jobqueue_lock_is_free(text)"


def create(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(CREATE)


def drop(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("django_jobqueue", "0001_initial")]

    operations = [migrations.RunPython(create, drop)]
