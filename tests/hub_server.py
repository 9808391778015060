"""A small Hugging Face Hub on this machine: it answers the real client as huggingface.co does, and fails on demand."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import unquote

LARGE = (".safetensors", ".bin")  # known by their sha256, and sent by a storage on another host
XET_PIECE = 1 << 16

Headers = dict[str, str]


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)  # hash: files by name
    refs: dict[str, str] = field(default_factory=dict)  # branch or tag: hash
    readers: set[str] | None = None  # tokens that may read it, None: everybody may
    gated: bool = False


@dataclass
class Trouble:
    """What goes wrong with a file, the next so many `times` that it is asked for."""

    status: int | None = None  # answer this instead, such as 503
    corrupt: bool = False  # send other bytes of the same length
    stop_at: int | None = None  # close the connection before this byte of the file
    hold: threading.Event | None = None  # and before that, wait for this
    times: float = math.inf

    def strikes(self) -> bool:
        self.times -= 1
        return self.times >= 0


class Request(NamedTuple):
    method: str
    path: str
    range: str | None
    authorization: str | None


class HubServer(ThreadingHTTPServer):
    """Serves inside a `with`; `url` is for HF_ENDPOINT."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.storage_url = f"http://localhost:{self.server_port}"  # another host in the client's eyes
        self.xet = False  # send large files as Xet does, the way of the real Hub, or by plain HTTP
        self.repos: dict[str, Repo] = {}
        self.stored: dict[str, tuple[str, bytes]] = {}  # sha256: name and content
        self.tokens: set[str] = set()  # of all users
        self.troubles: dict[str, Trouble] = {}  # by name of the file
        self.requests: list[Request] = []
        self.before: Callable[[Request], object] = lambda request: None  # called with each request before its answer

    def __enter__(self) -> HubServer:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def commit(self, repo_id: str, files: dict[str, bytes], ref: str = "main") -> str:
        """Put these files, and no others, on the branch or tag; returns the commit's hash."""
        repo = self.repos.setdefault(repo_id, Repo())
        commit = hashlib.sha1(f"{repo_id} {len(repo.commits)}".encode()).hexdigest()
        repo.commits[commit] = files
        repo.refs[ref] = commit
        self.stored |= {hashlib.sha256(content).hexdigest(): (name, content) for name, content in files.items()}
        return commit

    def asked(self, method: str, name: str = "") -> list[Request]:
        """The requests so far by this method, for any file or for this one."""
        return [request for request in self.requests if request.method == method and request.path.endswith(name)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def do_GET(self) -> None:
        headers = self.headers
        request = Request(self.command, self.path, headers.get("Range"), headers.get("Authorization"))
        self.server.requests.append(request)
        self.server.before(request)
        for pattern, answer in ROUTES:
            if found := re.fullmatch(pattern, self.path):
                return answer(self, *map(unquote, found.groups()))
        self.fail(404, "Sorry, we can't find the page you are looking for.")

    do_HEAD = do_GET

    def resolve(self, repo_id: str, revision: str, name: str) -> None:
        repo = self.server.repos.get(repo_id, Repo(readers=set()))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and token not in self.server.tokens:
            return self.fail(401, "Invalid credentials in Authorization header")
        if repo.readers is not None and token not in repo.readers:
            if repo.gated:
                return self.fail(403 if token else 401, f"Access to model {repo_id} is restricted.", "GatedRepo")
            return self.fail(404 if token else 401, "Repository not found", "RepoNotFound")
        commit = repo.refs.get(revision, revision)
        if commit not in repo.commits:
            return self.fail(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        headers = {"X-Repo-Commit": commit}
        content = repo.commits[commit].get(name)
        if content is None:
            return self.fail(404, "Entry not found", "EntryNotFound", headers)
        trouble = self.trouble_with(name)
        if trouble.status and trouble.strikes():
            return self.fail(trouble.status, "Service Unavailable")
        if not name.endswith(LARGE):
            etag = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # as git does it
            return self.send_file(name, content, headers | {"ETag": f'"{etag}"'})
        digest = hashlib.sha256(content).hexdigest()
        headers |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{digest}"'}
        if self.server.xet:
            token_url = f"{self.server.url}/api/models/{repo_id}/xet-read-token/{commit}"
            headers |= {"X-Xet-Hash": digest[::-1], "Link": f'<{token_url}>; rel="xet-auth"'}
        self.reply(302, headers | {"Location": f"{self.server.storage_url}/storage/{digest}/{name}"})

    def storage(self, digest: str) -> None:
        self.send_file(*self.server.stored[digest], {"ETag": f'"{digest}"'})

    def xet_token(self) -> None:
        about = {"Cas-Url": self.server.storage_url, "Access-Token": "xet", "Token-Expiration": int(time.time()) + 3600}
        self.reply(200, {f"X-Xet-{name}": str(value) for name, value in about.items()})

    def xet_pieces(self, xet_hash: str) -> None:
        """Where the pieces of a file are: all in one xorb, which is for this file alone."""
        name, content = self.server.stored[xet_hash[::-1]]
        pieces = {"start": 0, "end": math.ceil(len(content) / XET_PIECE)}
        place = {"url": f"{self.server.storage_url}/xorb/{xet_hash}/{name}", "range": pieces}
        place["url_range"] = {"start": 0, "end": len(xorb(content)) - 1}
        term = {"hash": xet_hash, "unpacked_length": len(content), "range": pieces}
        answer = {"offset_into_first_range": 0, "terms": [term], "fetch_info": {xet_hash: [place]}}
        self.reply(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())

    def xet_xorb(self, xet_hash: str) -> None:
        self.send_file(*self.server.stored[xet_hash[::-1]], {}, xorb)

    def send_file(self, name: str, content: bytes, headers: Headers, packed: Callable[[bytes], bytes] = bytes) -> None:
        trouble = self.trouble_with(name)
        if self.command != "GET" or trouble.status or not trouble.strikes():
            trouble = Trouble()
        content = packed(bytes(255 - byte for byte in content) if trouble.corrupt else content)
        first, status = 0, 200
        if wanted := re.fullmatch(r"bytes=(\d+)-\d*", self.headers.get("Range", "")):
            first, status = int(wanted[1]), 206
            headers |= {"Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"}
        headers |= {"Accept-Ranges": "bytes", "Content-Length": str(len(content) - first)}
        self.reply(status, headers, content[first : trouble.stop_at])
        if trouble.hold:
            trouble.hold.wait()

    def trouble_with(self, name: str) -> Trouble:
        return self.server.troubles.get(name, Trouble(times=0))

    def fail(self, status: int, message: str, code: str = "", headers: Headers | None = None) -> None:
        about = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.reply(status, about | (headers or {}), json.dumps({"error": message}).encode())

    def reply(self, status: int, headers: Headers, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body)), "Connection": "close"} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.wfile.flush()

    def log_message(self, *args: object) -> None:
        """Quiet: `requests` has it all."""


def xorb(content: bytes) -> bytes:
    """The file in pieces, before each its version, packed size, compression (none) and size."""
    packed = b""
    for start in range(0, len(content), XET_PIECE):
        piece = content[start : start + XET_PIECE]
        size = len(piece).to_bytes(3, "little")
        packed += b"\0" + size + b"\0" + size + piece
    return packed


ROUTES = (
    (r"/([^/]+(?:/[^/]+)?)/resolve/([^/]+)/(.+)", Handler.resolve),
    (r"/storage/([0-9a-f]{64})/.+", Handler.storage),
    (r"/api/models/.+/xet-read-token/[0-9a-f]{40}", Handler.xet_token),
    (r"/v1/reconstructions/([0-9a-f]{64})", Handler.xet_pieces),
    (r"/xorb/([0-9a-f]{64})/.+", Handler.xet_xorb),
)
