"""Fetching a checkpoint from the Hugging Face Hub with its own client, and its errors as sentences."""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import constants, errors, hf_hub_download, try_to_load_from_cache

BESIDE_WEIGHTS = ("config.json", "preprocessor_config.json")


class HubError(OSError):
    """The Hub could not give us a checkpoint, in a sentence that says why and what to do."""


def fetch(repo: str, weights: Sequence[str], revision: str | None = None, token: str | None = None) -> Path:
    """The path, in the Hub's own cache, of the first of `weights` that the repository has.

    Its configs lie beside it, and so do all parts of weights that come in several.
    """
    # Pinned to one commit once it is known, so that the files belong together.
    pinned = revision
    for name in BESIDE_WEIGHTS:
        if (path := _download(repo, name, pinned, token)) is not None:
            pinned = path.parent.name
    for name in weights:
        if (path := _download(repo, name, pinned, token)) is not None:
            pinned = path.parent.name
            for part in _parts(path):
                if _download(repo, part, pinned, token) is None:
                    raise HubError(f"{repo} on the Hub lacks {part}, which its {name} names: it is incomplete.")
            return path
    raise HubError(f"{repo} on the Hub has none of {', '.join(weights)}: it holds no weights that can be loaded here.")


def _parts(path: Path) -> list[str]:
    if not path.name.endswith(".index.json"):
        return []
    return sorted(set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()))


def _download(repo: str, name: str, revision: str | None, token: str | None) -> Path | None:
    """The file in the cache, None where the repository has no such file."""
    was_cached = isinstance(try_to_load_from_cache(repo, name, revision=revision), str)
    with _sentences(repo, revision):
        try:
            path = Path(hf_hub_download(repo, name, revision=revision, token=token))
        except errors.LocalEntryNotFoundError:
            if _has_snapshot(repo, revision):
                return None  # offline, but other files of this checkpoint are in the cache
            raise
        except errors.EntryNotFoundError:
            return None
    if not was_cached and forget_if_damaged(path):
        raise HubError(f"{name} of {repo} arrived damaged and was removed from the cache: try again.")
    return path


def _has_snapshot(repo: str, revision: str | None) -> bool:
    return any(
        isinstance(try_to_load_from_cache(repo, name, revision=revision), str)
        for name in (*BESIDE_WEIGHTS, "model.safetensors", "pytorch_model.bin")
    )


def forget_if_damaged(path: Path) -> bool:
    """Remove a file of the Hub's cache whose content is not what its name says, so that it is fetched anew."""
    blob = path.resolve()
    if blob.parent.name != "blobs" or not re.fullmatch(r"[0-9a-f]{64}", blob.name):
        return False
    digest = hashlib.sha256()
    with blob.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    if digest.hexdigest() == blob.name:
        return False
    path.unlink(missing_ok=True)
    blob.unlink(missing_ok=True)
    return True


@contextmanager
def _sentences(repo: str, revision: str | None) -> Iterator[None]:
    """Turn the client's errors into one sentence each."""
    try:
        yield
    except errors.GatedRepoError as error:
        raise HubError(
            f"{repo} is gated: accept its terms at {constants.ENDPOINT}/{repo}, then run 'hf auth login'."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(
            f"There is no model {repo} on the Hub, or it is private: check the spelling, or run 'hf auth login'."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise HubError(f"{repo} on the Hub has no revision {revision!r}: check its branches and tags.") from error
    except errors.HFValidationError as error:
        raise HubError(f"{repo!r} is neither a file or folder here nor a Hub id such as 'owner/name'.") from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        reason = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else f"{constants.ENDPOINT} cannot be reached"
        raise HubError(
            f"{repo} is not in the cache and {reason}: connect, or load a folder or file that is here."
        ) from error
    except OSError as error:
        raise HubError(_os_error(repo, error)) from error


def _os_error(repo: str, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"No space is left in {constants.HF_HUB_CACHE} for {repo}: free some, or set HF_HOME to another disk."
    response = getattr(error, "response", None)
    if response is not None:
        return f"The Hub answered {response.status_code} for {repo}: try again later."
    return f"{repo} could not be fetched whole ({error}): try again, what has arrived is kept."
