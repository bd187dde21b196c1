"""Why the command ends without a result, and its exit status."""

from enum import IntEnum


class Status(IntEnum):
    """The exit status of the command."""

    RESULT = 0
    ERROR = 1
    """A tool error, or the server refuses the request."""
    USAGE = 2
    """An option is wrong, or a question has no answer and there is no terminal."""
    UNREACHABLE = 3
    INTERRUPTED = 130


class CallFailed(Exception):
    """The call ends here. The message is for the user; it may have several lines."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


def usage_error(message: str) -> CallFailed:
    """Return the error of a wrong option or a missing answer."""
    return CallFailed(Status.USAGE, message)
