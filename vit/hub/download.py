"""Fetching from the Hugging Face Hub with its own client, and its errors as sentences."""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from huggingface_hub import _CACHED_NO_EXIST, constants, errors, hf_hub_download, try_to_load_from_cache
from huggingface_hub.utils import get_session, logging
from tqdm import tqdm

from .errors import NO_SPACE, ConnectError, ConnectTimeout, HubError, first_line, no_connection

BESIDE_WEIGHTS = ("config.json", "preprocessor_config.json")
NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


def quiet_hub() -> None:
    """Let the client retry without a line for each try: what failed in the end is said in a sentence."""
    logging.set_verbosity_error()


def fetch(
    repo: str,
    weights: Sequence[str],
    revision: str | None = None,
    token: str | None = None,
    progress: type[tqdm] | None = None,
    patience: float | None = None,
) -> Path:
    """The path, in the Hub's own cache, of the first of `weights` that the repository has.

    Its configs lie beside it, and so do all parts of weights that come in several. `progress` is a bar of one's own.
    A Hub that does not answer at all within `patience` seconds is not asked for anything: the cache has to do.
    """
    local = patience is not None and not _answers(patience)
    # Pinned to one commit once it is known, so that the files belong together.
    pinned = revision
    for name in BESIDE_WEIGHTS:
        if (path := _download(repo, name, pinned, token, weights, local=local)) is not None:
            pinned = path.parent.name
    for name in weights:
        if (path := _download(repo, name, pinned, token, weights, progress, local)) is not None:
            pinned = path.parent.name
            for part in _parts(repo, path):
                if _download(repo, part, pinned, token, progress=progress, local=local) is None:
                    raise HubError(f"{repo} on the Hub lacks {part}, which its {name} names: it is incomplete.")
            return path
    raise HubError(f"{repo} on the Hub has none of {', '.join(weights)}: it holds no weights that can be loaded here.")


def _answers(seconds: float) -> bool:
    """Whether the Hub says anything in time. In a thread: looking up its name can take longer than any limit."""
    answered = Event()

    def ask() -> None:
        with suppress(errors.HTTPError, errors.OfflineModeIsEnabled, OSError):
            get_session().head(constants.ENDPOINT, timeout=seconds)
            answered.set()

    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return answered.is_set()


def _parts(repo: str, weights: Path) -> list[str]:
    try:
        return parts(weights) if weights.name.endswith(".index.json") else []
    except ValueError as error:
        raise HubError(f"{repo} on the Hub: {error}") from error


def parts(index: Path) -> list[str]:
    """The files beside an index (model.safetensors.index.json) that hold the weights."""
    content = json.loads(index.read_text(encoding="utf-8"))
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    names = list(weight_map.values()) if isinstance(weight_map, dict) else []
    if not names or not all(
        isinstance(name, str) and re.fullmatch(r"[\w-][\w.-]*\.safetensors", name) for name in names
    ):
        raise ValueError(f"{index.name} does not say which files hold the weights.")
    return sorted(set(names))


def _download(
    repo: str,
    name: str,
    revision: str | None,
    token: str | None,
    weights: Sequence[str] = (),
    progress: type[tqdm] | None = None,
    local: bool = False,
) -> Path | None:
    """The file in the cache, None where the repository has no such file.

    Without a connection, None as well where the cache has any of `weights`: another program may have put them there.
    """
    with download_errors(repo, revision):
        cached = try_to_load_from_cache(repo, name, revision=revision)
        if cached is _CACHED_NO_EXIST and _is_commit(revision):
            return None
        try:
            path = Path(
                hf_hub_download(repo, name, revision=revision, token=token, tqdm_class=progress, local_files_only=local)
            )
        except errors.LocalEntryNotFoundError:
            if any(isinstance(try_to_load_from_cache(repo, other, revision=revision), str) for other in weights):
                return None
            raise
        except errors.EntryNotFoundError:
            return None
        # Large files are checked when they arrive, small ones each time.
        damaged = (path.suffix == ".json" or not isinstance(cached, str)) and forget_if_damaged(path)
    if damaged:
        raise HubError(f"{name} of {repo} was damaged and has been removed from the cache: try again.")
    return path


def _is_commit(revision: str | None) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}", revision or "") is not None


def forget_if_damaged(path: Path) -> bool:
    """Remove a damaged file from the Hub's cache, so that it is fetched anew; leave all other files alone."""
    # A link to the blob, which is called by its hash and may itself be a link to one that repositories share.
    chain = [path]
    while chain[-1].is_symlink():
        chain.append(chain[-1].parent / chain[-1].readlink())
    if len(chain) == 1 or chain[1].parent.name != "blobs" or _is_whole(path, chain[1].name):
        return False
    with suppress(OSError):  # a cache that is not ours to change
        for link in chain:
            link.unlink(missing_ok=True)
    return True


def _is_whole(path: Path, name: str) -> bool:
    """Whether the content fits the blob's name, a large file's sha256; small files have a hash of another kind."""
    if path.suffix == ".json":
        try:
            json.loads(path.read_bytes())
        except ValueError:
            return False
    if not re.fullmatch(r"[0-9a-f]{64}", name):
        return True
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest() == name


@contextmanager
def download_errors(repo: str, revision: str | None = None, kind: str = "model") -> Iterator[None]:
    """Turn the client's errors into one sentence each; `kind` is "model" or "data set"."""
    try:
        yield
    except errors.GatedRepoError as error:
        page = f"{constants.ENDPOINT}/{'datasets/' if kind == 'data set' else ''}{repo}"
        raise HubError(f"{repo} is gated: accept its terms at {page}, then run 'hf auth login'.") from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(
            f"There is no {kind} {repo} on the Hub, or it is private: check the spelling, or run 'hf auth login'."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise HubError(f"{repo} on the Hub has no revision {revision!r}: check its branches and tags.") from error
    except errors.HFValidationError as error:
        raise HubError(f"{repo!r} is neither a file or folder here nor a Hub id such as 'owner/name'.") from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, ConnectError, ConnectTimeout) as error:
        if isinstance(error.__cause__, errors.HfHubHTTPError):
            raise HubError(_other_error(repo, error.__cause__)) from error
        here = "what is here, such as everyday" if kind == "model" else "a folder that is here"
        raise HubError(f"{repo} is not in the cache and {no_connection()}: connect, or name {here}.") from error
    except (OSError, ValueError, RuntimeError, errors.HTTPError) as error:  # Xet, for large files, raises RuntimeError
        raise HubError(_other_error(repo, error)) from error


def _other_error(repo: str, error: BaseException) -> str:
    if any(getattr(error, "errno", None) == full or f"(os error {full})" in str(error) for full in NO_SPACE):
        return f"No space is left in {constants.HF_HUB_CACHE} for {repo}: free some, or set HF_HOME to another disk."
    if getattr(error, "errno", None) in NOT_WRITABLE:
        return f"The cache {constants.HF_HUB_CACHE} cannot be written ({error}): set HF_HOME to a folder that can."
    response = getattr(error, "response", None)
    if response is None:
        return f"{repo} could not be fetched whole ({first_line(error)}): try again."
    if response.status_code == 401:
        return f"The Hub does not accept the token sent for {repo}: check HF_TOKEN, or run 'hf auth login'."
    if response.status_code == 403:
        return f"The Hub does not let you read {repo}: check what your token permits, or run 'hf auth login'."
    return f"The Hub answered {response.status_code} for {repo}: try again later."
