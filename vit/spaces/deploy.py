"""Putting the app on Hugging Face Spaces: which files a Space needs, and sending them with the Hub's own client."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoUrl, errors

from ..checkpoints import DEFAULT, EMBEDDED, find, load
from ..hub import HubError
from ..hub.download import BESIDE_WEIGHTS, parts
from ..hub.upload import upload_errors

ROOT = Path(__file__).resolve().parents[2]
FILES = ("app.py", "requirements.txt", "README.md", "LICENSE")
FOLDERS = ("vit", "examples")
FOR_DEVELOPERS = ("package.json", "jsconfig.json", "biome.json", "node_modules")  # beside the page's scripts
VARIABLE = "VIT_MODEL"  # which app.py reads
MODEL = "model"  # the folder, in the Space, that holds the folder of a model that is sent along
# Of a model's folder, beside what is loaded. Not most_wrong.png: it shows people's photos.
CARD = ("README.md", "curves.png", "history.json", "confusion.png", "evaluation.json")


@dataclass(frozen=True)
class Plan:
    """What a Space is to hold, and which model it is to show."""

    files: dict[str, Path]  # by their names in the Space
    model: str  # an embedded name, a Hub id, or a folder in `MODEL`
    on_hub: bool = False  # it is a Hub id
    left_out: list[str] = field(default_factory=list)  # what else the model's folder holds

    def sizes(self) -> dict[str, int]:
        """The bytes of each file."""
        return {name: path.stat().st_size for name, path in self.files.items()}


def plan(model: str = DEFAULT, root: Path = ROOT) -> Plan:
    """What the Space needs: the app, the package with its checkpoints, the examples, and a model that is a path here.

    The model is loaded to see that it can be. Of its folder go the weights, the configs, the card and the card's
    pictures, and nothing else.
    """
    files = _project(root)
    if model in EMBEDDED:
        return Plan(files, model)
    if (weights := find(model)) is None:
        return Plan(files, model, on_hub=True)
    load(model)
    folder, names = weights.parent, [weights.name, *BESIDE_WEIGHTS]
    if weights.name.endswith(".index.json"):
        names += parts(weights)
    left_out: list[str] = []
    if (path := Path(model).expanduser().resolve()).is_dir():
        names += CARD
        left_out = sorted(other.name for other in folder.iterdir() if other.name not in names)
    name = re.sub(r"[^\w.-]+", "-", path.name if path.is_dir() else path.stem)
    place = f"{MODEL}/{name}"  # the page shows its name
    files |= {f"{place}/{part}": folder / part for part in names if (folder / part).is_file()}
    return Plan(files, place, left_out=left_out)


def _project(root: Path) -> dict[str, Path]:
    """The project's own files that a Space needs."""
    if not all((root / name).is_file() for name in FILES):
        raise ValueError(f"The app's files are not in {root}: run this in the project's folder, where app.py is.")
    files: dict[str, Path] = {name: root / name for name in FILES}
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
        address = _create(api, repo, private, hardware, plan.model)
        repo = address.repo_id
        there = api.list_repo_files(repo, repo_type="space")
        others = sorted(set(there) - {".gitattributes", "README.md"})  # which a new Space has
        if others and "vit/__init__.py" not in others:
            raise HubError(f"The Space {repo} holds something else ({others[0]}): choose another name, or delete it.")
        ours = tuple(f"{folder}/" for folder in (*FOLDERS, MODEL))
        api.create_commit(
            repo,
            [CommitOperationAdd(name, path) for name, path in plan.files.items()]
            + [CommitOperationDelete(name) for name in there if name.startswith(ours) and name not in plan.files],
            repo_type="space",
            commit_message="Deploy with ViT Explorer",
        )
        # After the files, for the Space must not look for a model that it does not have yet. A new one has been told,
        # and telling it again would restart it.
        variable = api.get_space_variables(repo).get(VARIABLE)
        if variable is None or variable.value != plan.model:
            api.add_space_variable(repo, VARIABLE, plan.model)
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


def _create(api: HfApi, repo: str, private: bool, hardware: str | None, model: str) -> RepoUrl:
    try:
        return api.create_repo(
            repo,
            repo_type="space",
            space_sdk="gradio",
            space_hardware=hardware,  # type: ignore[arg-type]
            space_variables=[{"key": VARIABLE, "value": model}],
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
