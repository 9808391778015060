"""The configuration in docs/hosting.md, with the real nginx and two real processes."""

import httpx2 as httpx
import pytest
from conftest import SKIMAGE
from gradio_client import Client, handle_file
from serving import app_process

import vit
from benchmarks.hosting import NGINX, behind_nginx


@pytest.mark.skipif(NGINX is None, reason="needs nginx, from your system's packages")
def test_two_processes_behind_nginx(tmp_path):
    cache = str(tmp_path / "files")
    with (
        app_process(GRADIO_TEMP_DIR=cache) as one,
        app_process(GRADIO_TEMP_DIR=cache) as other,
        behind_nginx((one.url, other.url), tmp_path) as url,
    ):
        check(url, [each.url.removeprefix("http://") for each in (one, other)])


def check(url, backends):
    cat = SKIMAGE / "chelsea.png"
    answer = Client(url, verbose=False).predict(handle_file(str(cat)), api_name="/predict")
    assert answer["label"] == vit.load().predict(cat)[0][0]
    served = set()
    for _ in range(12):  # visitors with a browser, which keeps cookies
        with httpx.Client(base_url=url) as browser:
            assert "ViT Explorer" in browser.get("/").text
            config = browser.get("/config").json()
            [opened] = [each["props"]["value"] for each in config["components"] if "explanation" in str(each["props"])]
            by = {browser.get("/config").headers["x-served-by"] for _ in range(4)}
            file = browser.get(opened["explanation"]["url"].removeprefix(url))
            assert len(by) == 1 and file.status_code == 200 and len(file.content) > 10_000
            served |= by
    assert served == set(backends)
