"""Where the queue is kept, as the benchmark hands it over in the environment."""

import os

CONNINFO = os.environ.get("RIVAL_CONNINFO", "")
SQLITE = os.environ.get("RIVAL_SQLITE", "")
REDIS = os.environ.get("RIVAL_REDIS", "")


def parameters() -> dict[str, str]:
    """libpq's names (dbname, user, host…) with their values."""
    from psycopg.conninfo import conninfo_to_dict

    return {name: str(value) for name, value in conninfo_to_dict(CONNINFO).items() if value is not None}
