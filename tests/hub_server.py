"""A small Hugging Face Hub on this machine: it answers the real client as huggingface.co does, and fails on demand."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

import pytest
from huggingface_hub import constants

# Known by their sha256, and sent by a storage on another host.
LARGE = (".safetensors", ".bin", ".parquet", ".jpg", ".png")
XET_PIECE = 1 << 16
os.environ["HF_XET_XORB_COMPRESSION_POLICY"] = "none"  # so that uploads can be read; the client looks once
TOKEN = "hf_mine"  # with which someone writes, see the fixture `hub`

Headers = dict[str, str]


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)  # hash: files by name
    refs: dict[str, str] = field(default_factory=dict)  # branch or tag: hash
    readers: set[str] | None = None  # tokens that may read it, None: everybody may
    gated: bool = False
    variables: dict[str, str] = field(default_factory=dict)  # a Space's


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
        self.repos: dict[str, Repo] = {}  # by id, that of a data set or Space after its kind: "datasets/ethz/food101"
        self.stored: dict[str, tuple[str, bytes]] = {}  # sha256: name and content
        self.pieces: dict[str, list[bytes]] = {}  # of the xorbs that were uploaded, by their hash
        self.tokens: set[str] = set()  # of all users
        self.writers: dict[str, str] = {}  # token: the name under which it may write
        self.free = False  # accounts are free: of Spaces that compute they may create those on ZeroGPU
        self.troubles: dict[str, Trouble] = {}  # by name of the file, or of the repository that is written
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

    def files(self, repo_id: str) -> dict[str, bytes]:
        """What the repository's main branch has."""
        repo = self.repos[repo_id]
        return repo.commits[repo.refs["main"]]

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
        self.body = self.rfile.read(int(headers.get("Content-Length", 0)))
        for pattern, answer in ROUTES:
            if found := re.fullmatch(pattern, self.path.partition("?")[0]):
                return answer(self, *(unquote(group or "") for group in found.groups()))
        self.fail(404, "Sorry, we can't find the page you are looking for.")

    do_HEAD = do_POST = do_DELETE = do_GET

    @property
    def token(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def may_read(self, repo_id: str, gate: bool = True) -> bool:
        """Whether the token may read the repository, and behind its gate; answers if it may not."""
        repo = self.server.repos.get(repo_id, Repo(readers=set()))
        if self.token and self.token not in self.server.tokens:
            self.fail(401, "Invalid credentials in Authorization header")
        elif repo.readers is None or self.token in repo.readers or (repo.gated and not gate):
            return True
        elif repo.gated:
            self.fail(403 if self.token else 401, f"Access to model {repo_id} is restricted.", "GatedRepo")
        else:
            self.fail(404 if self.token else 401, "Repository not found", "RepoNotFound")
        return False

    def may_write(self, repo_id: str) -> bool:
        """Whether the token may write under the owner's name; answers if it may not."""
        owner = repo_id.split("/")[-2]
        trouble = self.trouble_with(repo_id)
        if trouble.status and trouble.strikes():
            self.fail(trouble.status, "This name is reserved." if trouble.status == 400 else "Service Unavailable")
        elif self.token not in self.server.tokens:
            self.fail(401, "Invalid username or password.")
        elif self.server.writers.get(self.token) != owner:
            self.fail(403, f"You don't have the rights to create a repo under the namespace {owner}")
        else:
            return True
        return False

    def commit_at(self, repo_id: str, revision: str) -> str | None:
        """The commit's hash; answers if there is no such revision."""
        repo = self.server.repos[repo_id]
        commit = repo.refs.get(revision or "main", revision)
        if commit in repo.commits:
            return commit
        return self.fail(404, f"Invalid rev id: {revision}", "RevisionNotFound")

    def create(self) -> None:
        about = json.loads(self.body)
        kind = about.get("type", "model")
        owner = about["organization"] or self.server.writers.get(self.token)
        repo_id = ("" if kind == "model" else f"{kind}s/") + f"{owner}/{about['name']}"
        if not self.may_write(repo_id):
            return
        url = f"{self.server.url}/{repo_id}"
        if repo_id in self.server.repos:
            return self.answer({"error": f"You already created this {kind} repo", "url": url}, 409)
        files = {".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"}
        if kind == "space":
            if about.get("sdk") not in constants.SPACES_SDK_TYPES:
                return self.fail(400, "sdk is required")
            if self.server.free and about["sdk"] != "static" and about.get("hardware") != "zero-a10g":
                return self.fail(402, "Subscribe to PRO to create Spaces on this hardware")
            files["README.md"] = f"---\ntitle: {about['name']}\nsdk: {about['sdk']}\n---\n".encode()
        self.server.commit(repo_id, files)
        repo = self.server.repos[repo_id]
        repo.variables = {variable["key"]: variable["value"] for variable in about.get("variables", [])}
        if about.get("visibility") == "private":
            repo.readers = {self.token}
        self.answer({"url": url})

    def variables(self, name: str) -> None:
        """All of a Space's variables, after one was set or removed if one was sent."""
        repo_id = f"spaces/{name}"
        if not self.may_read(repo_id) or not self.may_write(repo_id):
            return
        variables = self.server.repos[repo_id].variables
        if self.command == "POST":
            sent = json.loads(self.body)
            variables[sent["key"]] = sent["value"]
        elif self.command == "DELETE":
            del variables[json.loads(self.body)["key"]]
        self.answer({key: {"value": value} for key, value in variables.items()})

    def preupload(self, kind: str, name: str, revision: str) -> None:
        """Which files are large, and what the repository has in their places."""
        repo_id = full_id(kind, name)
        if not self.may_write(repo_id) or not (commit := self.commit_at(repo_id, revision)):
            return
        there = self.server.repos[repo_id].commits[commit]
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
                "oid": digest_of(file["path"], there[file["path"]]) if file["path"] in there else None,
            }
            for file in json.loads(self.body)["files"]
        ]
        self.answer({"files": files})

    def commit(self, kind: str, name: str, revision: str) -> None:
        repo_id = full_id(kind, name)
        if not self.may_write(repo_id) or not (before := self.commit_at(repo_id, revision)):
            return
        files = dict(self.server.repos[repo_id].commits[before])
        for change in map(json.loads, self.body.splitlines()):
            value = change["value"]
            if change["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif change["key"] == "lfsFile":
                files[value["path"]] = self.server.stored[value["oid"]][1]
            elif change["key"] == "deletedFile":
                del files[value["path"]]
        commit = self.server.commit(repo_id, files, revision)
        self.answer({"commitUrl": f"{self.server.url}/{repo_id}/commit/{commit}", "commitOid": commit})

    def valid_yaml(self) -> None:
        self.answer({"errors": [], "warnings": []})

    def auth_check(self, kind: str, name: str) -> None:
        if self.may_read(full_id(kind, name)):
            self.answer({})

    def about(self, kind: str, name: str, revision: str) -> None:
        repo_id = full_id(kind, name)
        if self.may_read(repo_id, gate=False) and (commit := self.commit_at(repo_id, revision)):
            siblings = [{"rfilename": file} for file in self.server.repos[repo_id].commits[commit]]
            gated = "auto" if self.server.repos[repo_id].gated else False
            self.answer({"id": name, "sha": commit, "siblings": siblings, "tags": [], "gated": gated})

    def tree(self, kind: str, name: str, revision: str, folder: str) -> None:
        everything_below = "recursive=true" in self.path.lower()

        def inside(path: str) -> bool:
            parents = PurePosixPath(path).parents
            return PurePosixPath(folder) in (parents if everything_below else parents[:1])

        self.list_paths(full_id(kind, name), revision, inside)

    def paths_info(self, kind: str, name: str, revision: str) -> None:
        wanted = parse_qs(self.body.decode()).get("paths", [])
        self.list_paths(full_id(kind, name), revision, lambda path: path in wanted)

    def list_paths(self, repo_id: str, revision: str, wanted: Callable[[str], bool]) -> None:
        if not self.may_read(repo_id) or not (commit := self.commit_at(repo_id, revision)):
            return
        entries: dict[str, dict[str, object]] = {}
        for path, content in self.server.repos[repo_id].commits[commit].items():
            digest = digest_of(path, content)
            entries[path] = {"type": "file", "path": path, "size": len(content), "oid": digest}
            if path.endswith(LARGE):
                entries[path]["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 130}
            for folder in map(str, PurePosixPath(path).parents[:-1]):
                entries[folder] = {"type": "directory", "path": folder, "size": 0, "oid": "0" * 40}
        self.answer([entry for path, entry in entries.items() if wanted(path)])

    def resolve(self, repo_id: str, revision: str, name: str) -> None:
        if not self.may_read(repo_id) or not (commit := self.commit_at(repo_id, revision)):
            return
        headers = {"X-Repo-Commit": commit}
        content = self.server.repos[repo_id].commits[commit].get(name)
        if content is None:
            return self.fail(404, "Entry not found", "EntryNotFound", headers)
        trouble = self.trouble_with(name)
        if trouble.status and trouble.strikes():
            return self.fail(trouble.status, "Service Unavailable")
        if not name.endswith(LARGE):
            return self.send_file(name, content, headers | {"ETag": f'"{digest_of(name, content)}"'})
        digest = digest_of(name, content)
        headers |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{digest}"'}
        if self.server.xet:
            kind = "" if repo_id.startswith(("datasets/", "spaces/")) else "models/"
            token_url = f"{self.server.url}/api/{kind}{repo_id}/xet-read-token/{commit}"
            headers |= {"X-Xet-Hash": digest[::-1], "Link": f'<{token_url}>; rel="xet-auth"'}
        self.reply(302, headers | {"Location": f"{self.server.storage_url}/storage/{digest}/{name}"})

    def storage(self, digest: str) -> None:
        self.send_file(*self.server.stored[digest], {"ETag": f'"{digest}"'})

    def xet_token(self, kind: str, name: str, right: str) -> None:
        if right == "write" and not self.may_write(full_id(kind, name)):
            return
        expires = int(time.time()) + 3600
        about = {"Cas-Url": self.server.storage_url, "Access-Token": "xet", "Token-Expiration": str(expires)}
        headers = {f"X-Xet-{name}": value for name, value in about.items()}
        answer = {"casUrl": self.server.storage_url, "accessToken": "xet", "exp": expires}  # the same, for uploads
        self.reply(200, headers, json.dumps(answer).encode())

    def xet_pieces(self, xet_hash: str) -> None:
        """Where the pieces of a file are: all in one xorb, which is for this file alone."""
        name, content = self.server.stored[xet_hash[::-1]]
        pieces = {"start": 0, "end": math.ceil(len(content) / XET_PIECE)}
        place = {"url": f"{self.server.storage_url}/xorb/{xet_hash}/{name}", "range": pieces}
        place["url_range"] = {"start": 0, "end": len(xorb(content)) - 1}
        term = {"hash": xet_hash, "unpacked_length": len(content), "range": pieces}
        answer = {"offset_into_first_range": 0, "terms": [term], "fetch_info": {xet_hash: [place]}}
        self.answer(answer)

    def xet_xorb(self, xet_hash: str) -> None:
        self.send_file(*self.server.stored[xet_hash[::-1]], {}, xorb)

    def xet_upload(self, xet_hash: str) -> None:
        """Keep the pieces of an uploaded xorb."""
        pieces = self.server.pieces[xet_hash] = []
        start = 0
        while self.body[start : start + 7] not in (b"", b"XETBLOB"):  # a footer may follow the pieces
            packed = int.from_bytes(self.body[start + 1 : start + 4], "little")
            assert self.body[start + 4] == 0, "a packed piece: set HF_XET_XORB_COMPRESSION_POLICY to none"
            pieces.append(self.body[start + 8 : start + 8 + packed])
            start += 8 + packed
        self.answer({"was_inserted": True})

    def xet_shard(self) -> None:
        """Put together the files that a shard tells of: for each a header, its terms, their checks, its sha256."""
        rows = [self.body[start : start + 48] for start in range(48, len(self.body), 48)]
        while not rows[0].startswith(b"\xff" * 32):
            flags, count = struct.unpack("<2I", rows[0][32:40])
            content = b""
            for row in rows[1 : 1 + count]:
                first, end = struct.unpack("<2I", row[40:48])
                content += b"".join(self.server.pieces[xet_hex(row)][first:end])
            rows = rows[1 + count * (2 if flags & 1 << 31 else 1) :]
            digest = xet_hex(rows.pop(0))
            assert flags & 1 << 30 and hashlib.sha256(content).hexdigest() == digest
            self.server.stored[digest] = ("", content)
        self.answer({"result": 1})

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

    def answer(self, content: object, status: int = 200) -> None:
        self.reply(status, {"Content-Type": "application/json"}, json.dumps(content).encode())

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


def visit(hub: HubServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks this Hub, and does not wait between its tries."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    live_in(home, monkeypatch)
    ask(hub, monkeypatch)


def ask(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def live_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's settings as if the environment had been set before its import."""
    for name, value in {
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "stored_tokens"),
        "AGENT_HARNESSES_PATH": str(home / "agent_harnesses.json"),
        "HF_HUB_OFFLINE": False,
    }.items():
        monkeypatch.setattr(constants, name, value)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setenv("HF_XET_CLIENT_RETRY_MAX_ATTEMPTS", "2")
    monkeypatch.setenv("HF_XET_CLIENT_RETRY_BASE_DELAY", "10ms")


def full_id(kind: str, name: str) -> str:
    return name if kind == "models" else f"{kind}/{name}"


def digest_of(name: str, content: bytes) -> str:
    """A large file's sha256, a small one's hash as git makes it."""
    if name.endswith(LARGE):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def xet_hex(row: bytes) -> str:
    """The hash at the start of a shard's row as Xet writes it: four numbers of eight bytes, the lowest first."""
    return "".join(f"{number:016x}" for number in struct.unpack("<4Q", row[:32]))


def xorb(content: bytes) -> bytes:
    """The file in pieces, before each its version, packed size, compression (none) and size."""
    packed = b""
    for start in range(0, len(content), XET_PIECE):
        piece = content[start : start + XET_PIECE]
        size = len(piece).to_bytes(3, "little")
        packed += b"\0" + size + b"\0" + size + piece
    return packed


REPO = r"/api/(models|datasets|spaces)/([^/]+/[^/]+)"
ROUTES = (
    (r"/((?:datasets/|spaces/)?[^/]+(?:/[^/]+)?)/resolve/([^/]+)/(.+)", Handler.resolve),
    (r"/storage/([0-9a-f]{64})/.+", Handler.storage),
    (r"/api/repos/create", Handler.create),
    (r"/api/validate-yaml", Handler.valid_yaml),
    (REPO + r"(?:/revision/([^/]+))?", Handler.about),
    (r"/api/(models)/([^/]+)()", Handler.about),  # of the Hub's first days, without an owner
    (REPO + r"/auth-check", Handler.auth_check),
    (REPO + r"/tree/([^/]+)(?:/(.+))?", Handler.tree),
    (REPO + r"/paths-info/([^/]+)", Handler.paths_info),
    (REPO + r"/preupload/([^/]+)", Handler.preupload),
    (REPO + r"/commit/([^/]+)", Handler.commit),
    (r"/api/spaces/([^/]+/[^/]+)/variables", Handler.variables),
    (REPO + r"/xet-(read|write)-token/[^/]+", Handler.xet_token),
    (r"/v1/reconstructions/([0-9a-f]{64})", Handler.xet_pieces),
    (r"/xorb/([0-9a-f]{64})/.+", Handler.xet_xorb),
    (r"/v1/xorbs/default/([0-9a-f]{64})", Handler.xet_upload),
    (r"/v1/shards", Handler.xet_shard),
)
