"""Waits for what a BMC does in the background."""

from __future__ import annotations

import asyncio

from bmc.capability import Job
from bmc.errors import BmcError, Busy, DeadlinePassed, TaskFailed, Unreachable
from bmc.redfish.answer import Answer
from bmc.redfish.client import Client
from bmc.redfish.resource import Resource

_DONE = {"Completed", "CompletedOK", "CompletedWithErrors"}
_FAILED = {"Exception", "Killed", "Cancelled", "Failed", "Interrupted", "CompletedWithErrors"}
_FIRST_POLL_S, _LAST_POLL_S = 0.2, 5.0


async def finished(client: Client, answer: Answer, deadline_s: float) -> Answer:
    """Return what the task behind `answer` ended with; at once where there is none.

    Rides over a BMC that restarts meanwhile. Raises TaskFailed, DeadlinePassed.
    """
    path = answer.location
    if answer.status != 202 or path is None:
        return answer
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + deadline_s, _FIRST_POLL_S
    while True:
        error: BmcError | None = None
        try:
            seen = await client.ask("GET", path)
            if _ended(client, path, seen):
                return seen
        except (Unreachable, Busy) as exc:
            error = exc
        if loop.time() + pause > end:
            raise DeadlinePassed(client.node, client.host, deadline_s) from error
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LAST_POLL_S)


def _ended(client: Client, path: str, seen: Answer) -> bool:
    try:
        task = Resource(path, seen.json())
    except ValueError:
        return True  # the result itself
    state = task.text("TaskState") or task.text("JobState") or ("" if seen.status == 202 else "Completed")
    if state in _FAILED or task.text("TaskStatus") == "Critical":
        raise TaskFailed(client.node, client.host, path.rsplit("/", 1)[-1], state, _told(task))
    return state in _DONE


async def queue(client: Client, path: str) -> tuple[Job, ...]:
    """Return the tasks or jobs of a collection, by id."""
    found = [
        Job(
            id=row.text("Id") or row.path.rsplit("/", 1)[-1],
            name=row.text("Name") or "",
            state=row.text("TaskState") or row.text("JobState") or "unknown",
            percent=row.number("PercentComplete"),
            message=_told(row),
        )
        for row in await client.members(path)
    ]
    return tuple(sorted(found, key=lambda job: job.id))


def _told(task: Resource) -> str:
    told = [text for row in task.rows("Messages") if (text := row.text("Message"))]
    return told[-1] if told else task.text("Message") or ""
