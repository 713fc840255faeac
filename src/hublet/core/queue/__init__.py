"""Work to be done later: tasks that are claimed, run, retried and, at worst, parked."""

from hublet.core.queue.handlers import (
    Handler,
    QuickRun,
    SlowRun,
    decode,
    handlers,
    handles,
    handles_slowly,
)
from hublet.core.queue.leases import (
    claim,
    extend,
    fail,
    finish,
    hand_back,
    hand_back_all,
    is_suspect_due,
    move,
    next_due,
    take_over,
    wait_after,
)
from hublet.core.queue.parked import ParkedTask, count_parked, list_parked, retry_parked
from hublet.core.queue.tasks import CHANNEL, NewTask, Task, add, add_many, count_waiting

__all__ = [
    "CHANNEL",
    "Handler",
    "NewTask",
    "ParkedTask",
    "QuickRun",
    "SlowRun",
    "Task",
    "add",
    "add_many",
    "claim",
    "count_parked",
    "count_waiting",
    "decode",
    "extend",
    "fail",
    "finish",
    "hand_back",
    "hand_back_all",
    "handlers",
    "handles",
    "handles_slowly",
    "is_suspect_due",
    "list_parked",
    "move",
    "next_due",
    "retry_parked",
    "take_over",
    "wait_after",
]
