#!/usr/bin/env python3
"""A stand-in for the hub: serves one folder as a repository, with the interface and redirects that utter pull uses, and
the mishaps that it is told of. Started by tests/hub/test_pull.py."""
import hashlib
import http.server
import json
import os
import threading
import time
import urllib.parse


def git_hash(data):
    """As git names a file."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(http.server.ThreadingHTTPServer):
    """`files` {path: bytes}; `mishap` is one of the words below, `asked` has paths and ranges of the requests."""
    daemon_threads = True

    def __init__(self, files, name="me/mine"):
        super().__init__(("127.0.0.1", 0), Handler)
        self.name = name
        self.files, self.mishap, self.asked, self.token = files, None, [], None
        self.tokens, self.hosts = [], []
        self.revision = "c0ffee" + "0" * 34
        self.pace, self.patience = 0.0, threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Who asked was killed: nothing to tell."""

    def entries(self):
        """The list of files; large ones have another hash."""
        for path, data in self.files.items():
            entry = {"type": "file", "path": path, "size": len(data), "oid": git_hash(data)}
            if len(data) > 50000:
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data)}
            yield entry
        yield {"type": "directory", "path": "speech_tokenizer", "size": 0, "oid": "0" * 40}
        yield {"type": "file", "path": "../../escape.json", "size": 3, "oid": "0" * 40}
        yield {"type": "file", "path": "README.md", "size": 3, "oid": "0" * 40}


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Nothing."""

    def answer(self, code, data=b"", **headers):
        """A whole answer."""
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        """The list, a redirect, or a file."""
        hub, path = self.server, urllib.parse.urlsplit(self.path).path
        hub.asked.append((path, self.headers.get("Range")))
        hub.tokens.append(self.headers.get("Authorization"))
        hub.hosts.append(self.headers.get("Host"))
        if hub.mishap == "401" or (hub.token and hub.tokens[-1] != f"Bearer {hub.token}" and "/cdn/" not in path):
            return self.answer(401, b"who are you?")
        if hub.mishap == "404":
            return self.answer(404)
        if hub.mishap == "503":
            hub.mishap = None
            return self.answer(503)
        if path == f"/api/models/{hub.name}/revision/main":
            return self.answer(200, json.dumps({"sha": hub.revision}).encode())
        if path == f"/api/models/{hub.name}/tree/{hub.revision}":
            return self.send_list(json.dumps(list(hub.entries())).encode())
        prefix = f"/{hub.name}/resolve/{hub.revision}/"
        if path.startswith(prefix):
            return self.answer(302, Location=self.elsewhere(path, path[len(prefix):]))
        name = path[len("/cdn/"):]
        if not path.startswith("/cdn/") or name not in hub.files:
            return self.answer(404)
        return self.send_file(hub.files[name])

    def send_list(self, data):
        """The list of files, or once no more of it than its beginning."""
        if self.server.mishap == "list":
            self.server.mishap = None
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[:100])
            self.close_connection = True
        else:
            self.answer(200, b"[" if self.server.mishap == "json" else data)

    def elsewhere(self, path, name):
        """Where a file is: on another host; small ones on this one, as the hub has it; or where no file can be."""
        hub = self.server
        strange = {"around": path, "to a file": "file:///etc/hostname"}
        small = len(hub.files.get(name, b"")) <= 50000
        return strange.get(hub.mishap) or ("" if small else f"http://localhost:{hub.server_port}") + f"/cdn/{name}"

    def send_file(self, data):
        """With a range where one is asked for, in pieces."""
        hub, begin = self.server, 0
        asked = self.headers.get("Range")
        if hub.mishap == "wrong" and len(data) > 50000:
            data = data[:-1] + bytes([data[-1] ^ 1])
        if hub.mishap == "longer":
            data += b"more"
        if asked and hub.mishap != "no range":
            begin = int(asked[len("bytes="):].split("-")[0])
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        end = begin + 40000 if hub.mishap == "cut" else len(data)
        for at in range(begin, min(end, len(data)), 16384):
            self.wfile.write(data[at:min(at + 16384, end)])
            time.sleep(hub.pace)
            if hub.mishap == "stalls" and at > begin:
                hub.mishap = None
                hub.patience.wait(60)
                self.close_connection = True
                return None
        if end < len(data):
            self.close_connection = True
        return None


def files_of(folder):
    """{path: bytes} of a folder."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found
