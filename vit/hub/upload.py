"""Uploading a folder to the Hugging Face Hub with its own client, and its errors as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi, errors, get_token
from huggingface_hub.utils import validate_repo_id

from .errors import ConnectError, ConnectTimeout, HubError, first_line, no_connection


def upload(
    folder: Path, repo: str, private: bool = False, token: str | None = None, leave_out: str | None = None
) -> str:
    """Put the folder's files into the model repository, in one commit; returns its address.

    The repository is created where there is none; in one that is there, files of the same names are replaced, and it
    stays as private as it is. `leave_out` is a subfolder that is not sent. Without a `token`, `hf auth login` counts.
    """
    if not folder.is_dir():
        raise HubError(f"There is no folder {str(folder)!r} to upload: check the path.")
    if not any(path.is_file() and path.relative_to(folder).parts[0] != leave_out for path in folder.rglob("*")):
        raise HubError(f"The folder {str(folder)!r} holds nothing to upload: save a model there first.")
    with upload_errors(repo, token):
        api = HfApi(token=token)
        address = api.create_repo(repo, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=address.repo_id,
            folder_path=folder,
            ignore_patterns=[f"{leave_out}/*"] if leave_out else None,
            commit_message="Upload with ViT Explorer",
        )
    return str(address)


def check(repo: str) -> None:
    """Raise a sentence unless the name is one that a login could upload to: before hours of work, not after."""
    check_name(repo)
    with upload_errors(repo, None):
        if not get_token():
            raise HubError(
                f"The Hub does not know who uploads {repo}: run 'hf auth login' with a token that may write."
            )


def check_name(repo: str) -> None:
    """Raise a sentence unless a repository of the Hub could be called that, with its owner before the slash."""
    with upload_errors(repo, None):
        if not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", repo):
            raise errors.HFValidationError
        validate_repo_id(repo)


@contextmanager
def upload_errors(repo: str, token: str | None) -> Iterator[None]:
    """Turn the client's errors into one sentence each."""
    try:
        yield
    except HubError:
        raise
    except errors.HFValidationError as error:
        raise HubError(f"{repo!r} cannot be a repository's name on the Hub: give one such as 'you/my-vit'.") from error
    except (errors.OfflineModeIsEnabled, ConnectError, ConnectTimeout) as error:
        raise HubError(f"{repo} cannot be uploaded, {no_connection()}: connect, and try again.") from error
    except (OSError, ValueError, RuntimeError, errors.HTTPError) as error:  # Xet, for large files, raises RuntimeError
        raise HubError(_other_error(repo, token, error)) from error


def _other_error(repo: str, token: str | None, error: BaseException) -> str:
    response = getattr(error, "response", None)
    if response is None:
        return f"The upload to {repo} broke off ({first_line(error)}): try again."
    status = response.status_code
    if status == 401 and not (token or get_token()):
        return f"The Hub does not know who uploads {repo}: run 'hf auth login' with a token that may write."
    if status == 401:
        return f"The Hub does not accept the token sent for {repo}: check HF_TOKEN, or run 'hf auth login'."
    if status in (403, 404):
        return (
            f"The Hub does not let you write to {repo}: put your own name before the slash, "
            "and run 'hf auth login' with a token that may write."
        )
    if status == 400:
        reason = (getattr(error, "server_message", None) or first_line(error)).rstrip(".")
        return f"The Hub refuses {repo} ({reason}): change that, and try again."
    return f"The Hub answered {status} for {repo}: try again later."
