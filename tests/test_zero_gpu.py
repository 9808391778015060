"""The GPU of a Space, with a stand-in for the package that ZeroGPU Spaces have, and with the real one."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
STAND_IN = """
def GPU(function):
    def on_gpu(*arguments):
        return "on a GPU", function(*arguments)
    return on_gpu
"""
PROGRAM = """
from vit.spaces.zero_gpu import device, gpu

def double(number):
    return 2 * number

def count(number):
    yield from range(number)

print(gpu(double) is double, gpu(count) is count, device())
print(gpu(double)(3))
"""
HERE = "cuda" if torch.cuda.is_available() else "cpu"


def run(folder: Path, zero_gpu: str | None, program: str = PROGRAM) -> list[str]:
    """What a program prints that finds `folder` on its path, on a ZeroGPU Space or elsewhere."""
    paths = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "SPACES_ZERO_DEVICE_API_URL": "http://127.0.0.1:9"}
    environment.pop("SPACES_ZERO_GPU", None)
    if zero_gpu is not None:
        environment["SPACES_ZERO_GPU"] = zero_gpu
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture
def stand_in(tmp_path) -> Path:
    (tmp_path / "spaces.py").write_text(STAND_IN)
    return tmp_path


def test_on_zero_gpu_functions_ask_for_a_gpu(stand_in):
    assert run(stand_in, "true") == ["False False cuda", "('on a GPU', 6)"]


@pytest.mark.parametrize("zero_gpu", [None, "false"])
def test_elsewhere_functions_are_as_they_were(stand_in, zero_gpu):
    assert run(stand_in, zero_gpu) == [f"True True {HERE}", "6"]


needs_spaces = pytest.mark.skipif(find_spec("spaces") is None, reason="needs the package spaces")


@needs_spaces
def test_real_package_elsewhere(tmp_path):
    assert run(tmp_path, None) == [f"True True {HERE}", "6"]


@needs_spaces
def test_real_package_takes_functions_generators_and_a_model(tmp_path):
    program = """
import inspect

import gradio

import vit
from vit.page.handlers import Handlers
from vit.page.models import Models
from vit.spaces.zero_gpu import device, gpu

def double(number):
    return 2 * number

def count(number):
    yield from range(number)

print(gpu(double) is double, inspect.isgeneratorfunction(gpu(double)))
print(gpu(count) is count, inspect.isgeneratorfunction(gpu(count)))
handlers = Handlers(Models(vit.load("foodvision-mini")))
print(inspect.isgeneratorfunction(handlers.maps_on_gpu), list(inspect.signature(handlers.answer_on_gpu).parameters))
print({parameter.device.type for parameter in vit.load("foodvision-mini").model.to(device()).parameters()})
"""
    assert run(tmp_path, "true", program) == ["False False", "False True", "True ['photo', 'model']", "{'cuda'}"]
