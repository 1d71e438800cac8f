"""The ambiguous requests of framing.py as nginx and HAProxy take them, in front of a listener that notes what comes
through: of each how many are refused, and of what is sent on, that our server would read one request a connection at
most, ending where the proxy ended it.
Usage: beside_proxies.py FRAMING NGINX HAPROXY (programs; `apt-get install nginx-light haproxy`; with h11 of PyPI it
tells of that one, too). Ends with `N passed, N failed`."""
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

import framing

LANES = 8  # cases at a time for each proxy
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
QUIET_S = 0.3

NGINX = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log crit;
events {{ worker_connections 512; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; client_header_timeout 1s; client_body_timeout 1s;
proxy_http_version 1.1;
{servers} }}
"""
NGINX_SERVER = "server {{ listen 127.0.0.1:{front}; location / {{ proxy_pass http://127.0.0.1:{back}; }} }}\n"
HAPROXY = """defaults
    mode http
    timeout connect 1s
    timeout client 1s
    timeout server 3s
    timeout http-request 1s
    retries 0
{servers}"""
HAPROXY_SERVER = """listen l{front}
    bind 127.0.0.1:{front}
    server s 127.0.0.1:{back}
"""


def free_ports(n):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def read_until_quiet(s, seconds):
    got = b""
    s.settimeout(seconds)
    try:
        while part := s.recv(65536):
            got += part
            s.settimeout(QUIET_S)
    except OSError:
        pass
    return got


class Back:
    """Notes what each connection brings, and answers it."""

    def __init__(self, port):
        self.connections = []
        self.socket = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            s, _ = self.socket.accept()
            threading.Thread(target=self.take, args=(s,), daemon=True).start()

    def take(self, s):
        self.connections.append(read_until_quiet(s, QUIET_S))
        try:
            s.sendall(ANSWER)
            s.close()
        except OSError:
            pass


def ask(front, back, stream):
    """The status that comes, or 0, and what was sent on, a piece a connection."""
    back.connections = []
    with socket.create_connection(("127.0.0.1", front)) as s:
        s.sendall(stream)
        said = read_until_quiet(s, 3)
    words = said.split(b" ", 2)
    if back.connections or words[1:2] == [b"200"]:
        time.sleep(QUIET_S)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0, list(back.connections)


def ask_all(fronts, backs, cases):
    verdicts = [None] * len(cases)

    def lane(i):
        for k in range(i, len(cases), LANES):
            verdicts[k] = ask(fronts[i], backs[i], cases[k])

    threads = [threading.Thread(target=lane, args=(i,)) for i in range(LANES)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return verdicts


def beside(name, program, command, text, server, cases):
    """What this proxy does with each case."""
    ports = free_ports(2 * LANES)
    fronts, backs = ports[:LANES], ports[LANES:]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "conf")
        with open(path, "w", encoding="ascii") as f:
            f.write(text.format(folder=folder, servers="".join(
                server.format(front=a, back=b) for a, b in zip(fronts, backs))))
        listeners = [Back(port) for port in backs]
        proxy = subprocess.Popen([program, *command, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 20
            while True:
                try:
                    socket.create_connection(("127.0.0.1", fronts[-1])).close()
                    break
                except OSError:
                    if time.monotonic() > until or proxy.poll() is not None:
                        sys.exit(f"{name} does not listen")
                    time.sleep(0.1)
            plain = framing.START + framing.HOST + framing.CHUNKED + b"\r\n" + framing.BODY
            good, _ = ask(fronts[0], listeners[0], plain)
            if good != 200:
                sys.exit(f"{name} answers a plain request with {good}")
            return ask_all(fronts, listeners, cases)
        finally:
            proxy.terminate()
            proxy.wait(10)


def main():
    program, nginx, haproxy = sys.argv[1:4]
    groups = [("request line", list(framing.request_lines())), ("length or coding", [
        framing.START + framing.HOST + lines + b"\r\n\r\n" + framing.BODY for lines in framing.field_lines()]),
              ("host", list(framing.hosts())), ("chunks", [
                  framing.START + framing.HOST + framing.CHUNKED + b"\r\n" + body for body in framing.chunks()]),
              ("HTTP/1.0, line ends", list(framing.ambiguous())[-3:])]
    cases = list(dict.fromkeys(c for _, group in groups for c in group))
    proxies = {"nginx": beside("nginx", nginx, ["-c"], NGINX, NGINX_SERVER, cases),
               "HAProxy": beside("HAProxy", haproxy, ["-f"], HAPROXY, HAPROXY_SERVER, cases)}
    ours = [not requests for requests, _ in framing.cut(program, cases)]
    failed = ours.count(False)
    refused = {"utter": ours}
    try:
        import h11
        refused["h11"] = [not framing.h11_cut(h11, c) for c in cases]
    except ImportError:
        pass
    for name, verdicts in proxies.items():
        refused[name] = [not sent for _, sent in verdicts]
        pieces = [(c, p) for c, (_, sent) in zip(cases, verdicts) for p in sent if p]
        for (case, piece), (requests, end) in zip(pieces, framing.cut(program, [p for _, p in pieces])):
            if len(requests) > 1 or (requests and requests[0][2] != len(piece)):
                failed += 1
                print(f"FAIL {name}: {case!r} goes on as {piece!r}, which is read as {requests}, {end}")
        taken = sum(len(r) for r, _ in framing.cut(program, [p for _, p in pieces]))
        print(f"{name} sends {len(pieces)} on; of these our server takes {taken}")
    print("refused".ljust(20) + "".join(n.rjust(10) for n in ["cases", *refused]))
    for what, group in groups:
        wanted = set(group)
        inside = [i for i, c in enumerate(cases) if c in wanted]
        print(what.ljust(20) + str(len(inside)).rjust(10) + "".join(
            str(sum(refused[n][i] for i in inside)).rjust(10) for n in refused))
    print(f"{len(cases) * 3 - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
