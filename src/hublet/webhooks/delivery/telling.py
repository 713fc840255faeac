"""Words for the log when delivering itself goes wrong."""

from hublet.core.database import DatabaseUnavailable
from hublet.core.logs import get_logger

log = get_logger("webhooks")


def tell(error: BaseException) -> None:
    if isinstance(error, DatabaseUnavailable):
        log.warning("deliveries wait for the database", reason=error.reason)
    else:
        log.error("the delivery of webhooks stumbled", exc_info=error)
