"""What the Hub's client raises, put in words."""

from __future__ import annotations

import errno
import sys

from huggingface_hub import constants, errors

_http = sys.modules[errors.HTTPError.__module__]  # what the client uses: httpx, or httpx2
ConnectError: type[Exception] = _http.ConnectError
ConnectTimeout: type[Exception] = _http.ConnectTimeout
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class HubError(OSError):
    """The Hub could not give or take what was asked, in a sentence that says why and what to do."""


def no_connection() -> str:
    """Why the Hub does not answer."""
    return "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else f"{constants.ENDPOINT} cannot be reached"


def first_line(error: BaseException) -> str:
    """What another library's error says, in one line; its kind where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
