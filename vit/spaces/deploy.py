"""Putting the app on Hugging Face Spaces: which files a Space needs, and sending them with the Hub's own client."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoUrl, errors
from PIL import Image

from ..checkpoints import DEFAULT, EMBEDDED, find, load
from ..hub import HubError
from ..hub.download import BESIDE_WEIGHTS, parts
from ..hub.upload import upload_errors
from ..photos.files import PhotoError, open_photo

ROOT = Path(__file__).resolve().parents[2]
FILES = ("app.py", "requirements.txt", "README.md", "LICENSE")
FOLDERS = ("vit", "examples")
FOR_DEVELOPERS = ("package.json", "jsconfig.json", "biome.json", "node_modules")  # beside the page's scripts
VARIABLES = ("VIT_MODEL", "VIT_TITLE", "VIT_ONLY_MODEL")  # which app.py reads
MODEL = "model"  # the folder, in the Space, that holds the folder of a model that is sent along
# Of a model's folder, beside what is loaded. Not most_wrong.png: it shows people's photos.
CARD = ("README.md", "curves.png", "history.json", "confusion.png", "evaluation.json")


EXAMPLE_SIDE = 1024  # pixels, the longer side of an example at most


@dataclass(frozen=True)
class Plan:
    """What a Space is to hold, and which model it is to show."""

    files: dict[str, Path | bytes]  # by their names in the Space
    model: str  # an embedded name, a Hub id, or a folder in `MODEL`
    title: str | None = None  # None: the app's own
    only_model: bool = False  # no others are offered
    on_hub: bool = False  # it is a Hub id
    left_out: list[str] = field(default_factory=list)  # what else the model's folder holds

    def sizes(self) -> dict[str, int]:
        """The bytes of each file."""
        return {
            name: len(file) if isinstance(file, bytes) else file.stat().st_size for name, file in self.files.items()
        }

    @property
    def variables(self) -> dict[str, str]:
        """What the Space's app is told."""
        values = (self.model, self.title, "1" if self.only_model else None)
        return {name: value for name, value in zip(VARIABLES, values) if value is not None}


def plan(
    model: str = DEFAULT,
    root: Path = ROOT,
    title: str | None = None,
    examples: Path | None = None,
    other_models: bool = False,
) -> Plan:
    """What the Space needs: the app, the package with its checkpoints, the examples, and a model that is a path here.

    The model is loaded to see that it can be. Of its folder go the weights, the configs, the card and the card's
    pictures, and nothing else. A model that does not come with the package has its Space for itself, called by its
    name: the package's checkpoints stay here, unless `other_models` are to be offered.
    """
    files = _project(root)
    own = model not in EMBEDDED
    only_model = own and not other_models
    if only_model:
        files = {name: file for name, file in files.items() if not name.startswith("vit/pretrained/")}
    if examples is not None:
        files = {name: file for name, file in files.items() if not name.startswith("examples/")} | _examples(examples)
    weights = find(model)
    path = Path(model) if weights is None else Path(model).expanduser().resolve()
    name = path.stem if path.is_file() else path.name
    if title is None and own:
        title = name
    if title is not None:
        files["README.md"] = _titled((root / "README.md").read_text(encoding="utf-8"), title)
    if not own:
        return Plan(files, model, title)
    if weights is None:
        return Plan(files, model, title, only_model, on_hub=True)
    load(model)
    folder, names = weights.parent, [weights.name, *BESIDE_WEIGHTS]
    if weights.name.endswith(".index.json"):
        names += parts(weights)
    left_out: list[str] = []
    if path.is_dir():
        names += CARD
        left_out = sorted(other.name for other in folder.iterdir() if other.name not in names)
    place = f"{MODEL}/" + re.sub(r"[^\w.-]+", "-", name)  # the page shows its name
    files |= {f"{place}/{part}": folder / part for part in names if (folder / part).is_file()}
    return Plan(files, place, title, only_model, left_out=left_out)


def _titled(readme: str, title: str) -> bytes:
    """The README with this title for the Hub; JSON's strings are YAML's too."""
    line = f"title: {json.dumps(title, ensure_ascii=False)}"
    return re.sub(r"^title: .*$", lambda _: line, readme, count=1, flags=re.MULTILINE).encode()


def _examples(folder: Path) -> dict[str, Path | bytes]:
    """The folder's photos as JPEGs, no larger than need be, and without what cameras note: where, when, by whom."""
    if not folder.is_dir():
        raise ValueError(f"There is no folder {str(folder)!r}: give one that holds the example photos.")
    found: dict[str, Path | bytes] = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        try:
            photo = open_photo(path)
        except PhotoError as error:
            if path.suffix.lower() in (".md", ".txt"):  # notes on them
                continue
            raise PhotoError(f"{error} It is one of the examples in {folder}.") from error
        photo.thumbnail((EXAMPLE_SIDE, EXAMPLE_SIDE))
        content = io.BytesIO()
        Image.frombytes("RGB", photo.size, photo.tobytes()).save(content, "JPEG", quality=90)
        found[f"examples/{path.stem}.jpg"] = content.getvalue()
    if not found:
        raise ValueError(f"There is no photo in {folder}: give a folder that holds the example photos.")
    return found


def _project(root: Path) -> dict[str, Path | bytes]:
    """The project's own files that a Space needs."""
    if not all((root / name).is_file() for name in FILES):
        raise ValueError(f"The app's files are not in {root}: run this in the project's folder, where app.py is.")
    files: dict[str, Path | bytes] = {name: root / name for name in FILES}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        name = path.relative_to(root)
        made = path.suffix == ".pyi" or "__pycache__" in name.parts  # by Gradio and by Python, as they run
        left = made or any(part.startswith(".") or part in FOR_DEVELOPERS for part in name.parts)
        if path.is_file() and not left:
            files[name.as_posix()] = path
    return files


def deploy(plan: Plan, repo: str, private: bool = False, hardware: str | None = None, token: str | None = None) -> str:
    """Make the Space hold what was planned, in one commit, and show that model; returns its address.

    The Space is created where there is none. One that is there stays as private, and on the hardware, as it is; of its
    files, those in `vit`, `examples` and `model` that were not planned are removed, and all others stay. One that holds
    something other than this app is refused. Without a `token`, `hf auth login` counts.
    """
    with upload_errors(repo, token):
        api = HfApi(token=token)
        if plan.on_hub:
            _check_public(api, plan.model)
        address = _create(api, repo, private, hardware, plan.variables)
        repo = address.repo_id
        there = api.list_repo_files(repo, repo_type="space")
        others = sorted(set(there) - {".gitattributes", "README.md"})  # which a new Space has
        if others and "vit/__init__.py" not in others:
            raise HubError(f"The Space {repo} holds something else ({others[0]}): choose another name, or delete it.")
        ours = tuple(f"{folder}/" for folder in (*FOLDERS, MODEL))
        api.create_commit(
            repo,
            [CommitOperationAdd(name, file) for name, file in plan.files.items()]
            + [CommitOperationDelete(name) for name in there if name.startswith(ours) and name not in plan.files],
            repo_type="space",
            commit_message="Deploy with ViT Explorer",
        )
        # After the files, for the Space must not look for a model that it does not have yet. A new one has been told,
        # and telling it again would restart it.
        known = api.get_space_variables(repo)
        for name in VARIABLES:
            value = plan.variables.get(name)
            if value is None and name in known:
                api.delete_space_variable(repo, name)
            elif value is not None and (name not in known or known[name].value != value):
                api.add_space_variable(repo, name, value)
    return str(address)


def _check_public(api: HfApi, model: str) -> None:
    """Raise a sentence unless everybody may read the model: a Space has nobody's token."""
    try:
        public = not api.model_info(model, token=False).gated
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        public = False
    if not public:
        raise HubError(
            f"A Space could not load {model}: there is no such model on the Hub, or not everybody may read it; "
            "check the spelling, or give a folder."
        )


def _create(api: HfApi, repo: str, private: bool, hardware: str | None, variables: dict[str, str]) -> RepoUrl:
    try:
        return api.create_repo(
            repo,
            repo_type="space",
            space_sdk="gradio",
            space_hardware=hardware,  # type: ignore[arg-type]
            space_variables=[{"key": name, "value": value} for name, value in variables.items()],
            private=private,
            exist_ok=True,
        )
    except errors.HfHubHTTPError as error:
        if error.response.status_code != 402:
            raise
        advice = "" if hardware else "add --hardware zero-a10g (ZeroGPU, which free accounts have too), or "
        raise HubError(
            f"The Hub hosts {repo} on {hardware or 'a CPU'} for subscribers only: {advice}subscribe."
        ) from error
