"""HTTP on the hub's own host: redirects a browser to the port of a job, with a one-time code."""

from typing import Annotated

from fastapi import Path, Query, Response

from hublet.core.http import Conn, Router
from hublet.core.pages import PageRouter, Templates, page_response
from hublet.gateway.ports import service
from hublet.gateway.ports.sessions import entry_url
from hublet.gateway.records import JobPort
from hublet.jobs.addresses import port_address
from hublet.login.auth import SignedIn
from hublet.login.forms import frame_of

router = PageRouter(prefix="/login/jobs")
_templates = Templates("hublet.gateway.ports")

_JobId = Annotated[str, Path(pattern="^[0-9a-z]{24}$")]
_Port = Annotated[int, Path(ge=1, le=65535)]
_State = Annotated[str, Query(pattern="^[A-Za-z0-9]{43}$")]


@router.get("/{job_id}/{port}")
async def enter_job(
    conn: Conn,
    session: SignedIn,
    job_id: _JobId,
    port: _Port,
    state: _State,
    path: Annotated[str, Query(alias="next")] = "/",
) -> Response:
    """Lead a person who may see the job to its port, with a code that works once."""
    code = await service.issue_code(conn, session, JobPort(job_id, port), state=state)
    address = entry_url(port_address(job_id, port, conn.hub.settings), code=code, path=path)
    frame = frame_of(conn.hub, session)
    body = _templates.render("enter.html", frame=frame, address=address, port=port, job_id=job_id)
    # Not a redirect: browsers apply the form-action rule of the login page to all redirects after it.
    return page_response(body, headers={"Refresh": f"0; url={address}"})


ROUTERS: tuple[Router, ...] = (router,)
