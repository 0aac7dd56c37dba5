"""How long it takes from INSERT and NOTIFY to a listener that has claimed: the least that PostgreSQL asks."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.connection import Connection

from django_jobqueue.managers.ids import new_job_id

from .raw_postgresql import CLAIM, COMPLETE, INSERT, connect, make_table

CHANNEL = "raw_job"
#: Seconds without a job after which the listener gives up.
PATIENCE = 30.0
SEED = 20


def measure(dsn: str, jobs: int, least: float, most: float) -> list[float]:
    """Seconds from before the INSERT to the start of each job; pauses between them of so many seconds."""
    with connect(dsn) as connection:
        make_table(connection)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    listener = context.Process(target=listen, args=(dsn, jobs, theirs), daemon=True)
    listener.start()
    try:
        theirs.close()
        ours.recv()  # it listens
        sent = enqueue(dsn, jobs, least, most)
        started = ours.recv()
        return [started[job] - at for job, at in sent.items()]
    finally:
        listener.kill()
        listener.join()


def enqueue(dsn: str, jobs: int, least: float, most: float) -> dict[str, float]:
    """When each job was about to be inserted."""
    pause = random.Random(SEED)  # noqa: S311 - no secret
    sent = {}
    with connect(dsn) as connection:
        for _ in range(jobs):
            time.sleep(pause.uniform(least, most))
            job = new_job_id()
            sent[str(job)] = time.monotonic()
            connection.execute(INSERT, [job, "{}"])
            connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])
    return sent


def listen(dsn: str, jobs: int, pipe: Connection) -> None:
    """Claim at each notification; send when each job started."""
    started: dict[str, float] = {}
    with connect(dsn) as connection:
        connection.execute(f"LISTEN {CHANNEL}")
        connection.execute(CLAIM, [100])
        pipe.send("ready")
        while len(started) < jobs:
            if not list(connection.notifies(timeout=PATIENCE, stop_after=1)):
                break
            claimed = connection.execute(CLAIM, [100]).fetchall()
            now = time.monotonic()
            started.update((str(row[0]), now) for row in claimed)
            connection.execute(COMPLETE, [[row[0] for row in claimed]])
    pipe.send(started)
