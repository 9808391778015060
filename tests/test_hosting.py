"""The configuration in docs/hosting.md, with the real nginx and two real processes."""

import shutil
import subprocess
import time

import httpx2 as httpx
import pytest
from conftest import SKIMAGE
from gradio_client import Client, handle_file
from serving import ROOT, app_process

import vit
from benchmarks.load import free_port

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")


@pytest.mark.skipif(NGINX is None, reason="needs nginx, from your system's packages")
def test_two_processes_behind_nginx(tmp_path):
    cache = str(tmp_path / "files")
    with app_process(GRADIO_TEMP_DIR=cache) as one, app_process(GRADIO_TEMP_DIR=cache) as other:
        port = free_port()
        text = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8").partition("```nginx\n")[2].partition("```")[0]
        backends = [url.removeprefix("http://") for url in (one.url, other.url)]
        for said, here in zip(("127.0.0.1:7861", "127.0.0.1:7862", "127.0.0.1:8080"), (*backends, f"127.0.0.1:{port}")):
            assert text.count(said) == 1
            text = text.replace(said, here)
        (tmp_path / "nginx.conf").write_text(text)
        nginx = subprocess.Popen([NGINX, "-p", tmp_path, "-e", "stderr", "-c", "nginx.conf"])
        try:
            check(f"http://127.0.0.1:{port}", backends)
        finally:
            nginx.terminate()
            nginx.wait()


def check(url, backends):
    for _ in range(40):
        try:
            httpx.get(url)
            break
        except httpx.TransportError:
            time.sleep(0.25)
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
