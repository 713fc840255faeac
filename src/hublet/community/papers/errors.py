"""What goes wrong with papers."""

from hublet.core.errors import Conflict, InvalidRequest, NotAllowed


class InvalidPaper(InvalidRequest):
    pass


class InvalidDay(InvalidRequest):
    pass


class PaperExists(Conflict):
    def __init__(self, paper_id: str) -> None:
        super().__init__(f"The paper {paper_id} is here already.")


class CannotSubmitFor(NotAllowed):
    def __init__(self, user: str) -> None:
        super().__init__(f"submittedBy: only hub administrators submit a paper for {user}.")
