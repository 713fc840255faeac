"""What can be wrong with a job that starts by the clock."""

from hublet.core.errors import Conflict, InvalidRequest, NotFound


class ScheduledJobNotFound(NotFound):
    """It does not exist, or the caller may not know that it does."""

    def __init__(self, scheduled_job_id: str) -> None:
        super().__init__(f"There is no scheduled job {scheduled_job_id}, or you cannot see it.")


class ScheduleNotReadable(InvalidRequest):
    def __init__(self, detail: str = "") -> None:
        found = f" ({detail.lower()})" if detail else ""
        super().__init__(
            "schedule must have the five fields of cron, in UTC, or be one of @annually, @yearly, "
            f"@monthly, @weekly, @daily, @midnight and @hourly{found}."
        )


class ScheduleNeverDue(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("schedule names a time that never comes.")


class NotByTheClock(InvalidRequest):
    def __init__(self, field: str) -> None:
        super().__init__(f"jobSpec.{field}: a scheduled job cannot have it.")


class TooManyScheduledJobs(Conflict):
    def __init__(self, owner: str, limit: int) -> None:
        super().__init__(
            f"{owner} has {limit} scheduled jobs, which is the most there may be: delete one first."
        )


class LastRunGoesOn(Conflict):
    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"The job {job_id} of this schedule is not over, and concurrency is off: "
            "cancel it, or wait for its end."
        )
