"""The job queue: what takes time, and what waits for the machine's next boot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from lab.bmc.redfish.answers import JOBS, TASKS, Answer, Json, resource

JOB_ID_BASE = 400_000_000_000
DONE = {"MessageId": "PR19", "Message": "Job completed successfully."}


class State(StrEnum):
    """Job states as an iDRAC names them."""

    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"


_TASK_STATES = {
    State.SCHEDULED: "Pending",
    State.RUNNING: "Running",
    State.COMPLETED: "Completed",
    State.FAILED: "Exception",
}
_FINAL = (State.COMPLETED, State.FAILED)


class JobFailed(Exception):
    """What a job does when it is due did not work; the text is the job's message."""


@dataclass(slots=True)
class Job:
    """One job. `work` is called once when its time is over; `result` is where its file lies then."""

    job_id: str
    kind: str
    name: str
    created: str
    duration_s: float
    work: Callable[[], None]
    result: str | None = None
    after_boot: int | None = None  # boots that had been when it was made, if it waits for one more
    started: float | None = None
    state: State = State.SCHEDULED
    message: str = "Task successfully scheduled."
    percent: int = 0
    ended: str = "TIME_NA"

    def describe(self) -> Json:
        """Return the job as Dell's job resource."""
        return resource(
            f"{JOBS}/{self.job_id}",
            "DellJob.v1_4_0.DellJob",
            self.name,
            JobState=self.state,
            JobType=self.kind,
            Message=self.message,
            MessageId="PR19" if self.state is State.COMPLETED else "RED000",
            PercentComplete=self.percent,
            StartTime=self.created,
            EndTime=self.ended,
            CompletionTime=self.ended if self.state in _FINAL else None,
        )

    def describe_task(self) -> Json:
        """Return the job as a Redfish task."""
        return resource(
            f"{TASKS}/{self.job_id}",
            "Task.v1_7_0.Task",
            self.name,
            TaskState=_TASK_STATES[self.state],
            TaskStatus="Critical" if self.state is State.FAILED else "OK",
            PercentComplete=self.percent,
            StartTime=self.created,
            EndTime=self.ended,
            Messages=[{"Message": self.message, "MessageId": "PR19", "MessageArgs": []}],
            TaskMonitor=f"{TASKS.replace('Tasks', 'TaskMonitors')}/{self.job_id}",
            Oem={"Dell": self.describe()},
        )


class JobQueue:
    """All jobs by id. `boots` counts the machine's boots, `stamp` gives the BMC's time as text."""

    def __init__(self, now: Callable[[], float], stamp: Callable[[], str], boots: Callable[[], int]) -> None:
        self._now = now
        self._stamp = stamp
        self._boots = boots
        self._jobs: dict[str, Job] = {}

    def __iter__(self) -> Iterator[Job]:
        self._advance()
        return iter(tuple(self._jobs.values()))

    def get(self, job_id: str) -> Job | None:
        self._advance()
        return self._jobs.get(job_id)

    def add(
        self,
        kind: str,
        name: str,
        duration_s: float,
        work: Callable[[], None],
        *,
        result: str | None = None,
        at_boot: bool = False,
    ) -> Job:
        """Take a job; with `at_boot` it begins when the machine has booted once more."""
        job_id = f"JID_{JOB_ID_BASE + len(self._jobs) + 1}"
        job = Job(job_id, kind, name, self._stamp(), duration_s, work, result)
        if at_boot:
            job.after_boot = self._boots()
        else:
            self._start(job)
        self._jobs[job_id] = job
        return job

    def remove(self, job_id: str) -> bool:
        """Forget a job (JID_CLEARALL: all of them); false where there is none."""
        if job_id == "JID_CLEARALL":
            self._jobs.clear()
            return True
        return self._jobs.pop(job_id, None) is not None

    def _start(self, job: Job) -> None:
        job.started, job.state = self._now(), State.RUNNING
        job.message = "Job in progress."

    def _advance(self) -> None:
        for job in self._jobs.values():
            if job.state in _FINAL:
                continue
            if job.started is None and job.after_boot is not None and self._boots() > job.after_boot:
                self._start(job)
            if job.started is not None:
                self._run(job, self._now() - job.started)

    def _run(self, job: Job, elapsed_s: float) -> None:
        if elapsed_s < job.duration_s:
            job.percent = int(100 * elapsed_s / job.duration_s)
            return
        try:
            job.work()
            job.state, job.message = State.COMPLETED, DONE["Message"]
        except JobFailed as failed:
            job.state, job.message = State.FAILED, str(failed)
        job.percent, job.ended = 100, self._stamp()


def accepted(job: Job, *, as_task: bool = True) -> Answer:
    """Return 202 with the place to watch the job at."""
    return Answer(None, 202, {"Location": f"{TASKS if as_task else JOBS}/{job.job_id}"})


def watched(job: Job) -> Answer:
    """Return a task as its monitor does: 202 while it runs, then the place of its result."""
    running = job.state not in _FINAL
    headers = {"Location": job.result} if job.result and job.state is State.COMPLETED else {}
    return Answer(job.describe_task(), 202 if running else 200, headers)
