"""Deploying with the Hub's real client, to a server on this machine that speaks the Hub's protocol."""

import shutil
import socket
import subprocess
import sys
from importlib.metadata import version
from io import BytesIO
from pathlib import Path

import pytest
from hub_server import TOKEN, HubServer, Trouble
from huggingface_hub import constants, metadata_load, snapshot_download
from PIL import Image

import vit
from vit.__main__ import main
from vit.spaces.deploy import FILES, FOR_DEVELOPERS, deploy, plan

ROOT = Path(__file__).resolve().parent.parent
NAME = "someone/explorer"
SPACE = f"spaces/{NAME}"
TUNED = {"VIT_MODEL": "model/tuned", "VIT_TITLE": "tuned", "VIT_ONLY_MODEL": "1"}
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}  # which the Hub knows


@pytest.fixture(scope="session")
def tracked() -> dict[str, Path]:
    """The files that a Space needs, as git knows them."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *FILES, "vit", "examples"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("needs a git checkout")
    names = [name for name in listed.stdout.split("\0") if name and Path(name).name not in FOR_DEVELOPERS]
    return {name: ROOT / name for name in names if (ROOT / name).exists()}


@pytest.fixture
def project(tmp_path) -> Path:
    """A project as small as can be."""
    root = tmp_path / "project"
    for name in (*FILES, "vit/__init__.py", "vit/page/explorer.css", "examples/pizza.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n")
    (root / "requirements.txt").write_text("torch==1\ngradio==6.0.1\n")
    return root


@pytest.fixture
def tuned(tiny_base, tmp_path) -> Path:
    """A folder as fine-tuning leaves it, with what is nobody else's business."""
    folder = shutil.copytree(tiny_base, tmp_path / "tuned")
    for name in ("README.md", "confusion.png", "most_wrong.png", "unfinished/state.bin", "me.jpg", ".token"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def login(hub, monkeypatch) -> HubServer:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return hub


def refusal(capsys, *arguments: str) -> str:
    """The sentence with which the command fails."""
    assert main(["deploy", *arguments]) == 1
    text = capsys.readouterr().err.rpartition("vit: ")[2].removesuffix("\n")  # after the client's progress bars
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_dry_run_lists_what_git_lists_and_asks_nobody(hub, tracked, capsys, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert main(["deploy", NAME, "--dry-run"]) == 0
    *rows, last = capsys.readouterr().out.splitlines()
    sizes = {name: int(size.replace(",", "")) for size, name in map(str.split, rows)}
    assert sizes == {name: path.stat().st_size for name, path in tracked.items()}
    assert last.split() == f"{sum(sizes.values()):,} bytes in {len(sizes)} files; VIT_MODEL=everyday".split()
    assert not hub.requests


@pytest.mark.parametrize("xet", [False, True], ids=["http", "xet"])
def test_the_space_gets_these_files_and_the_model(login, tracked, capsys, tmp_path, xet):
    assert main(["deploy", NAME]) == 0
    assert f"Sent to {login.url}/{SPACE}, " in capsys.readouterr().out
    assert login.repos[SPACE].variables == {"VIT_MODEL": "everyday"}
    assert len(login.asked("POST", "/commit/main")) == 1
    login.xet = xet
    there = Path(snapshot_download(NAME, repo_type="space", local_dir=tmp_path / "there"))
    assert set(login.files(SPACE)) == {".gitattributes", *tracked}
    for name, path in tracked.items():
        assert (there / name).read_bytes() == path.read_bytes(), name


def test_the_readme_says_what_the_hub_wants_to_know():
    settings = metadata_load(ROOT / "README.md")
    assert (settings["sdk"], settings["sdk_version"]) == ("gradio", version("gradio"))
    assert settings["app_file"] in plan().files
    assert str(settings["python_version"]) in ("3.10.13", "3.12.12")  # all that ZeroGPU has
    assert {settings["colorFrom"], settings["colorTo"]} <= COLOURS
    assert len(settings["short_description"]) <= 60


def test_new_kinds_of_files_are_sent_and_traces_of_running_are_not(project):
    for name in ("explorer.html", "explorer.js", "explorer.pyi", ".hidden", "__pycache__/explorer.pyc", ".git/config"):
        (project / "vit" / "page" / name).parent.mkdir(exist_ok=True)
        (project / "vit" / "page" / name).touch()
    (project / "pyproject.toml").touch()
    for name in ("package.json", "jsconfig.json", "biome.json", "node_modules/typescript/lib/tsc.js"):
        (project / "vit" / "page" / "web" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / "vit" / "page" / "web" / name).touch()
    pages = {f"vit/page/explorer.{kind}" for kind in ("css", "html", "js")}
    assert set(plan(root=project).files) == {*FILES, "vit/__init__.py", "examples/pizza.jpg", *pages}


def test_a_fine_tuned_folder_goes_along_without_photos(login, tuned, capsys, tmp_path):
    assert main(["deploy", NAME, "--model", str(tuned)]) == 0
    out = capsys.readouterr().out
    assert f"Left out of {tuned}, not needed or photos: .token, me.jpg, most_wrong.png, unfinished" in out
    sent = {name: content for name, content in login.files(SPACE).items() if name.startswith("model/")}
    names = ("README.md", "config.json", "confusion.png", "model.safetensors")
    assert sent == {f"model/tuned/{name}": (tuned / name).read_bytes() for name in names}
    assert login.repos[SPACE].variables == TUNED

    there = snapshot_download(NAME, repo_type="space", local_dir=tmp_path / "there")
    command = [sys.executable, "-m", "vit", "predict", "examples/pizza.jpg", "--model", "model/tuned", "--top-k", "1"]
    ran = subprocess.run(command, cwd=there, capture_output=True, text=True, env={"PATH": "/usr/bin"})
    assert ran.stdout.split()[-1] == vit.load(tuned).predict(ROOT / "examples" / "pizza.jpg")[0][0], ran.stderr


def test_a_model_of_ones_own_has_its_space_for_itself(login, tuned, tracked):
    assert main(["deploy", NAME, "--model", str(tuned)]) == 0
    sent = set(login.files(SPACE))
    assert {name for name in tracked if name not in sent} == {name for name in tracked if "vit/pretrained/" in name}
    before, after = (ROOT / "README.md").read_text(), login.files(SPACE)["README.md"].decode()
    assert after == before.replace("title: ViT Explorer\n", 'title: "tuned"\n', 1)

    assert main(["deploy", NAME, "--model", str(tuned), "--other-models"]) == 0
    assert set(login.files(SPACE)) >= set(tracked)
    assert login.repos[SPACE].variables == {"VIT_MODEL": "model/tuned", "VIT_TITLE": "tuned"}
    assert main(["deploy", NAME]) == 0
    assert login.repos[SPACE].variables == {"VIT_MODEL": "everyday"}
    assert login.files(SPACE)["README.md"].decode() == before


@pytest.mark.parametrize("title", ["My cats", 'Cats: "ours" & \\1 – 猫', "yes", "# 1"])
def test_the_hub_reads_the_title(tuned, tmp_path, title):
    planned = plan(str(tuned), title=title)
    (tmp_path / "README.md").write_bytes(planned.files["README.md"])
    assert metadata_load(tmp_path / "README.md") == {**metadata_load(ROOT / "README.md"), "title": title}
    assert planned.variables["VIT_TITLE"] == title


def test_examples_of_ones_own_say_nothing_of_the_camera(tuned, project, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Camera"  # turned, and by whom
    Image.new("RGB", (2000, 1000), "red").save(folder / "large.jpg", exif=exif)
    Image.new("RGB", (30, 20), "blue").save(folder / "small.png")
    (folder / "LICENCES.md").write_text("Mine.")
    files = plan(str(tuned), project, examples=folder).files
    sent = {name: Image.open(BytesIO(file)) for name, file in files.items() if name.startswith("examples/")}
    assert {name: photo.size for name, photo in sent.items()} == {
        "examples/large.jpg": (512, 1024),
        "examples/small.jpg": (30, 20),
    }
    assert not any(photo.getexif() for photo in sent.values())


def test_examples_that_are_none(capsys, tmp_path):
    asked = (NAME, "--dry-run", "--examples", str(tmp_path / "none"))
    assert refusal(capsys, *asked) == (
        f"There is no folder {str(tmp_path / 'none')!r}: give one that holds the example photos."
    )
    (tmp_path / "none").mkdir()
    assert refusal(capsys, *asked) == (
        f"There is no photo in {tmp_path / 'none'}: give a folder that holds the example photos."
    )
    (tmp_path / "none" / "text.jpg").write_text("hello")
    assert refusal(capsys, *asked).startswith("'text.jpg' is not a photo that can be read: ")


def test_a_file_of_weights_goes_along_with_its_config_only(tuned, project):
    (tuned / "model.safetensors").rename(tuned / "best.safetensors")
    planned = plan(str(tuned / "best.safetensors"), project)
    names = {name for name in planned.files if name.startswith("model/")}
    assert names == {"model/best/best.safetensors", "model/best/config.json"}
    assert planned.left_out == []


def test_weights_in_parts_go_along(tuned, project):
    (tuned / "model.safetensors").rename(tuned / "part-1.safetensors")
    (tuned / "model.safetensors.index.json").write_text('{"weight_map": {"head.weight": "part-1.safetensors"}}')
    names = {name for name in plan(str(tuned), project).files if name.startswith("model/") and "part" in name}
    assert names == {"model/tuned/part-1.safetensors"}


def test_deploying_again_switches_the_model_and_clears_up(hub, tuned, project):
    deploy(plan(str(tuned), project), NAME, token=TOKEN)
    hub.commit(SPACE, hub.files(SPACE) | {"NOTES.md": b"Keep me.", "data/model/x": b"Me, too.", "vit/old.py": b""})
    (project / "app.py").write_text("new\n")
    deploy(plan("foodvision-mini", project), NAME, token=TOKEN)
    here = {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()}
    assert set(hub.files(SPACE)) == {".gitattributes", "NOTES.md", "data/model/x", *here}
    assert hub.files(SPACE)["app.py"] == b"new\n"
    assert hub.repos[SPACE].variables == {"VIT_MODEL": "foodvision-mini"}
    assert len(hub.asked("POST", "/commit/main")) == 2


def test_deploying_the_same_again_changes_nothing(hub, project):
    deploy(plan(root=project), NAME, token=TOKEN)
    commit = hub.repos[SPACE].refs["main"]
    assert deploy(plan(root=project), NAME, token=TOKEN) == f"{hub.url}/{SPACE}"
    assert hub.repos[SPACE].refs["main"] == commit
    assert not hub.asked("POST", "/variables")


def test_other_variables_stay(hub, project):
    deploy(plan(root=project), NAME, token=TOKEN)
    hub.repos[SPACE].variables = {"OTHER": "1"}
    deploy(plan("foodvision-mini", project), NAME, token=TOKEN)
    assert hub.repos[SPACE].variables == {"OTHER": "1", "VIT_MODEL": "foodvision-mini"}


def test_a_model_on_the_hub_is_named_only(hub, project):
    hub.commit("google/vit", {"config.json": b"{}"})
    deploy(plan("google/vit", project), NAME, token=TOKEN)
    assert hub.repos[SPACE].variables == {"VIT_MODEL": "google/vit", "VIT_TITLE": "vit", "VIT_ONLY_MODEL": "1"}
    assert not any(name.startswith("model/") for name in hub.files(SPACE))


@pytest.mark.parametrize("model", ["google/missing", "someone/mine", "meta/gated", "some--one/x"])
def test_a_model_that_a_space_cannot_read(login, capsys, model):
    login.commit("someone/mine", {})
    login.repos["someone/mine"].readers = {TOKEN}
    login.commit("meta/gated", {})
    login.repos["meta/gated"].gated = True
    assert refusal(capsys, NAME, "--model", model) == (
        f"A Space could not load {model}: there is no such model on the Hub, or not everybody may read it; "
        "check the spelling, or give a folder."
    )
    assert SPACE not in login.repos


def test_a_name_that_is_mistyped(login, capsys):
    for extra in ((), ("--dry-run",)):
        assert refusal(capsys, NAME, "--model", "my-modle", *extra) == (
            "There is no file or folder 'my-modle': check the path; a Hub id is owner/name."
        )
    assert SPACE not in login.repos


@pytest.mark.parametrize("private", [False, True])
def test_private_is_for_oneself(hub, project, private):
    deploy(plan(root=project), NAME, private, token=TOKEN)
    assert hub.repos[SPACE].readers == ({TOKEN} if private else None)
    deploy(plan("foodvision-mini", project), NAME, token=TOKEN)
    assert hub.repos[SPACE].readers == ({TOKEN} if private else None)


def test_free_accounts_have_zero_gpu(login, capsys):
    login.free = True
    assert refusal(capsys, NAME) == (
        f"The Hub hosts {NAME} on a CPU for subscribers only: "
        "add --hardware zero-a10g (ZeroGPU, which free accounts have too), or subscribe."
    )
    assert refusal(capsys, NAME, "--hardware", "t4-small") == (
        f"The Hub hosts {NAME} on t4-small for subscribers only: subscribe."
    )
    assert main(["deploy", NAME, "--hardware", "zero-a10g"]) == 0
    assert main(["deploy", NAME]) == 0


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
@pytest.mark.parametrize("name", ["explorer", "some--one/x", "someone/-x", "a/b/c", "someone/"])
def test_not_a_name(login, capsys, name, options):
    assert refusal(capsys, name, *options) == (
        f"{name!r} cannot be a repository's name on the Hub: give one such as 'you/my-vit'."
    )
    assert not login.requests


def test_not_logged_in_is_told_before_the_model_is_looked_at(hub, capsys):
    assert refusal(capsys, NAME, "--model", "no/such/folder") == (
        f"The Hub does not know who uploads {NAME}: run 'hf auth login' with a token that may write."
    )
    assert not hub.requests


def test_wrong_token(hub, capsys, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert refusal(capsys, NAME) == (
        f"The Hub does not accept the token sent for {NAME}: check HF_TOKEN, or run 'hf auth login'."
    )


@pytest.mark.parametrize("there", [False, True], ids=["new", "existing"])
def test_somebody_elses_name(login, capsys, there):
    if there:
        login.commit("spaces/other/explorer", {"vit/__init__.py": b"Not yours."})
    assert refusal(capsys, "other/explorer") == (
        "The Hub does not let you write to other/explorer: put your own name before the slash, "
        "and run 'hf auth login' with a token that may write."
    )
    assert not there or login.files("spaces/other/explorer") == {"vit/__init__.py": b"Not yours."}


def test_a_space_with_another_app_is_left_alone(login, capsys):
    files = {".gitattributes": b"", "README.md": b"", "app.py": b"Mine.", "model/weights.pt": b"Precious."}
    login.commit(SPACE, files)
    assert refusal(capsys, NAME) == (
        f"The Space {NAME} holds something else (app.py): choose another name, or delete it."
    )
    assert login.files(SPACE) == files
    assert not login.repos[SPACE].variables


def test_service_unavailable(login, capsys):
    login.troubles[SPACE] = Trouble(status=503)
    assert refusal(capsys, NAME) == f"The Hub answered 503 for {NAME}: try again later."


def test_offline(login, capsys, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert refusal(capsys, NAME) == f"{NAME} cannot be uploaded, HF_HUB_OFFLINE is set: connect, and try again."


def test_unreachable(login, capsys, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        assert (
            refusal(capsys, NAME) == f"{NAME} cannot be uploaded, {address} cannot be reached: connect, and try again."
        )


@pytest.mark.parametrize("place", ["/v1/xorbs/", "/commit/main", "/variables"])
def test_cut_off(login, capsys, tuned, project, place):
    deploy(plan(root=project), NAME, token=TOKEN)

    def cut(request):
        if place in request.path:
            raise ConnectionError

    login.handle_error = lambda *args: None
    login.before = cut
    text = refusal(capsys, NAME, "--model", str(tuned))
    assert text.startswith(f"The upload to {NAME} broke off (")
    assert text.endswith("): try again.")
    assert login.repos[SPACE].variables == {"VIT_MODEL": "everyday"}

    login.before = lambda request: None
    assert main(["deploy", NAME, "--model", str(tuned)]) == 0
    assert login.repos[SPACE].variables == TUNED
    assert login.files(SPACE)["model/tuned/config.json"] == (tuned / "config.json").read_bytes()


def test_a_model_that_cannot_be_loaded_is_not_sent(login, capsys, tuned):
    (tuned / "model.safetensors").write_bytes(b"damaged")
    text = refusal(capsys, NAME, "--model", str(tuned))
    assert text.startswith(f"{tuned}: model.safetensors is not a file of weights, or is damaged (")
    assert not login.requests


def test_an_installed_package_has_no_app(tmp_path):
    shutil.copytree(ROOT / "vit", tmp_path / "vit", ignore=shutil.ignore_patterns("__pycache__", "*.safetensors"))
    command = [sys.executable, "-m", "vit", "deploy", NAME, "--dry-run"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"vit: The app's files are not in {tmp_path}: run this in the project's folder, where app.py is.\n"
    )
