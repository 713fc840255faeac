"""Errors of jobs and scheduled jobs.

HubError
├── NotFound
│   ├── JobNotFound             there is no such job, or the caller may not see it
│   ├── NamespaceNotFound       the caller has no access to the jobs of this owner
│   ├── ScheduledJobNotFound    there is no such scheduled job, or the caller may not see it
│   ├── SourceNotFound          a webhook is to copy a job that its owner does not have
│   ├── GroupNotFound           the resource group of a job
│   ├── SpaceNotFound           the space of a job
│   ├── VolumeNotFound          the repository or bucket of a volume
│   └── VolumeRevisionNotFound  its revision
├── NotAllowed
│   ├── GroupRoleNeeded         the role in the resource group is too low
│   ├── VolumeNotWritable       the creator may not write to the bucket
│   ├── NewJobsSwitchedOff      administrators let no job begin for now
│   ├── CreatorGone             the account in whose name the hub acts is gone
│   └── RightsGone              it has no access to the owner any more
├── InvalidRequest
│   ├── OneSourceNeeded, FlavorNotOffered, ArchNotOffered, TimeoutTooLong, TextTooLong
│   ├── GroupNotForUsers, LabelNotReadable, SshNotOffered
│   ├── TooManyVolumes, InvalidVolume
│   ├── NoNetworkGroups, ImageNotFound        found by the runtime
│   └── ScheduleNotReadable, ScheduleNeverDue, NotByTheClock
├── Conflict
│   ├── JobGoesOn, JobIsOver, JobIsDeleted    the stage forbids it
│   ├── SecretsGone             the secrets to be copied were dropped
│   ├── TooManyScheduledJobs    the owner has as many as there may be
│   └── LastRunGoesOn           the schedule allows no second job at a time
└── Unavailable
    └── NoRunner                no runner can be used; found by the runtime
"""

from collections.abc import Iterable

from hublet.core.errors import Conflict, InvalidRequest, NotAllowed, NotFound, Unavailable


class JobNotFound(NotFound):
    def __init__(self, job_id: str) -> None:
        super().__init__(f"There is no job {job_id}, or you cannot see it.")


class NamespaceNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is neither you nor one of your organizations.")


class NewJobsSwitchedOff(NotAllowed):
    def __init__(self) -> None:
        super().__init__("The administrators of this hub let no new job begin for now.")


class GroupNotForUsers(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("resourceGroupId: only organizations have resource groups.")


class GroupNotFound(NotFound):
    def __init__(self, group_id: str, owner: str) -> None:
        super().__init__(f"resourceGroupId: {owner} has no resource group {group_id}.")


class GroupRoleNeeded(NotAllowed):
    def __init__(self, role: str) -> None:
        super().__init__(f"This needs the role {role} in the resource group.")


class OneSourceNeeded(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("A job has exactly one of spaceId and dockerImage.")


class SpaceNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"spaceId: there is no space {name}, or you cannot see it.")


class FlavorNotOffered(InvalidRequest):
    def __init__(self, flavor: str, offered: Iterable[str]) -> None:
        names = ", ".join(offered)
        super().__init__(f"flavor: this hub does not offer {flavor}; it offers {names}.")


class ArchNotOffered(InvalidRequest):
    def __init__(self, arch: str, offered: str) -> None:
        super().__init__(f"arch: this hub does not run {arch}; it runs {offered}.")


class TimeoutTooLong(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"timeoutSeconds must be at most {limit} on this hub.")


class TextTooLong(InvalidRequest):
    def __init__(self, field: str, limit: int) -> None:
        super().__init__(f"{field} must have at most {limit} bytes.")


class InvalidVolume(InvalidRequest):
    def __init__(self, place: int, rule: str) -> None:
        super().__init__(f"volumes[{place}].{rule}.")


class TooManyVolumes(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"volumes: a job has at most {limit} of them.")


class VolumeNotFound(NotFound):
    def __init__(self, place: int, kind: str, name: str) -> None:
        super().__init__(f"volumes[{place}]: there is no {kind} {name}, or you cannot read it.")


class VolumeNotWritable(NotAllowed):
    def __init__(self, place: int, name: str) -> None:
        super().__init__(
            f"volumes[{place}]: you may not write to the bucket {name}; mount it with readOnly."
        )


class VolumeRevisionNotFound(NotFound):
    code = "RevisionNotFound"

    def __init__(self, place: int, name: str, revision: str) -> None:
        super().__init__(f"volumes[{place}]: {name} has no revision {revision}.")


class JobIsOver(Conflict):
    def __init__(self, job_id: str) -> None:
        super().__init__(f"The job {job_id} is over: its ports cannot be opened any more.")


class JobGoesOn(Conflict):
    def __init__(self, job_id: str) -> None:
        super().__init__(f"The job {job_id} is not over: cancel it before you delete it.")


class JobIsDeleted(Conflict):
    def __init__(self, job_id: str) -> None:
        super().__init__(f"The job {job_id} was deleted.")


class SecretsGone(Conflict):
    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"The secrets of the job {job_id} are gone: run it anew, with its secrets."
        )


class CreatorGone(NotAllowed):
    def __init__(self) -> None:
        super().__init__("Whoever set this up has no account on this hub any more.")


class LabelNotReadable(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("label is written key=value.")


class RightsGone(NotAllowed):
    def __init__(self) -> None:
        super().__init__("Whoever set this up may not run jobs of this owner any more.")


class SourceNotFound(NotFound):
    def __init__(self, job_id: str) -> None:
        super().__init__(f"jobSourceId: there is no job {job_id} of this owner.")


class SshNotOffered(InvalidRequest):
    def __init__(self, reason: str) -> None:
        super().__init__(f"ssh: this hub offers no SSH: {reason}.")


class NoRunner(Unavailable):
    def __init__(self, reason: str) -> None:
        super().__init__(f"This hub cannot run jobs now. {reason}", retry_after_seconds=30)


class NoNetworkGroups(InvalidRequest):
    def __init__(self, reason: str) -> None:
        super().__init__(f"network: this hub has no network groups. {reason}")


class ImageNotFound(InvalidRequest):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"dockerImage: this hub has no image {name}; its operator maps names of images to "
            "what they are here, in the setting jobs.images: *=host makes every name a view of "
            "the hub's own machine."
        )


class ImageRefused(InvalidRequest):
    def __init__(self, sentence: str) -> None:
        super().__init__(f"dockerImage: {sentence}")


class ScheduledJobNotFound(NotFound):
    def __init__(self, scheduled_job_id: str) -> None:
        super().__init__(f"There is no scheduled job {scheduled_job_id}, or you cannot see it.")


class ScheduleNotReadable(InvalidRequest):
    def __init__(self, detail: str = "") -> None:
        reason = f" ({detail.lower()})" if detail else ""
        super().__init__(
            "schedule must have the five fields of cron, in UTC, or be one of @annually, @yearly, "
            f"@monthly, @weekly, @daily, @midnight and @hourly{reason}."
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
