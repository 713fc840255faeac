"""The command `hublet` with a worker that never begins, as if the process died before it could."""

from hublet.cli import main
from hublet.worker import Worker


def _never_begin(_worker: Worker) -> None:
    return


if __name__ == "__main__":
    Worker.start = _never_begin  # type: ignore[assignment, method-assign]
    main()
