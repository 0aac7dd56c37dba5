"""PostgreSQL sweeps the table of jobs more often than others. Elsewhere nothing is done."""

from typing import Any

from django.db import migrations

# Every job leaves two dead rows, and as many entries in the claim index. PostgreSQL waits with vacuum until
# there are as many as a fifth of the table, which is mostly history. Measured with 300,000 jobs of history:
# 40,000 more make the table grow by 8.8 MB at a twentieth, 16.8 at a fifth, and the claim index is 1.1 MB
# against 1.9, at the same rate. Docs: decision 13, also on the settings that were tried and left as they are.
SETTINGS = {"autovacuum_vacuum_scale_factor": "0.05"}


def _alter(schema_editor: Any, change: str) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"ALTER TABLE IF EXISTS django_jobqueue_job {change}")


def set_them(apps: Any, schema_editor: Any) -> None:
    """Give the table its settings."""
    _alter(schema_editor, f"SET ({', '.join(f'{name} = {value}' for name, value in SETTINGS.items())})")


def reset_them(apps: Any, schema_editor: Any) -> None:
    """Leave the table to the server's settings."""
    _alter(schema_editor, f"RESET ({', '.join(SETTINGS)})")


class Migration(migrations.Migration):
    dependencies = [("django_jobqueue", "0001_initial")]

    operations = [migrations.RunPython(set_them, reset_them, hints={"model_name": "job"})]
