"""The table that a run prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .bench import Workload
from .goals import goals_for
from .results import Key, Results

HEADS = ("part", "figure", "median", "least", "most", "ratio", "goal", "")


def table(results: Results, workloads: Iterable[Workload]) -> str:
    """A block for each workload and database; a ratio is to the best of what the block's title names."""
    titles = {one.name: one for one in workloads}
    blocks = [
        block(results, database, workload, titles.get(workload)) for database, workload in results.workloads()
    ]
    return "\n\n".join([*blocks, summary(results)])


def block(results: Results, database: str, workload: str, about: Workload | None) -> str:
    """One workload on one database."""
    title = f"{workload} on {database}"
    if about:
        title += f": {about.says}"
        bases = bases_of(results, database, workload)
        title += f" (ratios to {' / '.join(bases)})" if bases else ""
    lines = [HEADS, *rows(results, database, workload)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    aligned = [
        "  ".join(
            cell.rjust(width) if 2 <= column <= 5 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    failures = [
        f"  FAILED {one.part}: {one.error}"
        for one in results.failures
        if (one.database, one.workload) == (database, workload)
    ]
    return "\n".join([title, *(f"  {line}" for line in aligned), *failures])


def bases_of(results: Results, database: str, workload: str) -> list[str]:
    """The parts that ratios are to here."""
    found = [
        results.base_of(key)
        for key in results.repeats
        if (key.database, key.workload) == (database, workload)
    ]
    return list(dict.fromkeys(one.part for one in found if one))


def rows(results: Results, database: str, workload: str) -> Iterator[tuple[str, ...]]:
    """The cells of each figure."""
    for key, values in results.repeats.items():
        if (key.database, key.workload) != (database, workload):
            continue
        ratio = results.ratio(key)
        goal, verdict = verdicts(results, key)
        yield (
            key.part,
            key.figure,
            number(results.median(key) or 0.0),
            number(min(values)),
            number(max(values)),
            "" if ratio is None else f"{ratio:.2f}",
            goal,
            verdict,
        )


def verdicts(results: Results, key: Key) -> tuple[str, str]:
    """The goal, and whether it is reached; nothing where no goal is set or nothing is there to compare."""
    for goal in goals_for(key):
        value = goal.value(results, key)
        if value is not None:
            return str(goal), "reached" if goal.is_reached(value) else "NOT REACHED"
    return "", ""


def summary(results: Results) -> str:
    """How many goals, and what went wrong."""
    told = [verdict for key in results.repeats if (verdict := verdicts(results, key)[1])]
    reached = told.count("reached")
    text = f"{reached} of {len(told)} goals reached"
    if results.failures:
        text += f"; {len(results.failures)} measurements failed"
    return f"{text}."


def number(value: float) -> str:
    """With as many digits as say something."""
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
