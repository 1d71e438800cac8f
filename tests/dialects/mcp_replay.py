# Assistants with utter mcp: each revision's first messages, tools, faults, a call that is taken back.
import base64
import json
import os
import subprocess
import tempfile
import time

from client import PATIENCE


class Mcp:
    def __init__(self, program, *options):
        self.p = subprocess.Popen([program, "mcp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.p.stdin.write(data + b"\n")
        self.p.stdin.flush()

    def ask(self, method, params=None, id=1):
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        answer = json.loads(self.p.stdout.readline())
        assert answer["jsonrpc"] == "2.0" and answer["id"] == id, answer
        return answer

    def call(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]

    def end(self):
        rest = self.p.communicate()[0]
        return self.p.returncode, rest


def mcp_with_a_handshake(program):
    m = Mcp(program)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    first = m.ask("initialize", hello)["result"]
    assert first["protocolVersion"] == "2025-11-25" and first["serverInfo"]["name"] == "utter" and "tools" in \
        first["capabilities"], first
    for asked, chosen in (("1999", "2025-11-25"), ("2025-03-26", "2025-03-26")):
        assert m.ask("initialize", {**hello, "protocolVersion": asked})["result"]["protocolVersion"] == chosen
    m.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert [t["name"] for t in m.ask("tools/list")["result"]["tools"]] == ["speak", "list_voices"]
    assert m.ask("ping", id="a")["result"] == {}
    voices = [c["text"] for c in m.call("list_voices")["content"]]
    assert "voice clara" in voices and "language english" in voices, voices
    said, sound = m.call("speak", text="Hello there.", voice="miles", language="en")["content"]
    wav = base64.b64decode(sound["data"])
    assert sound["mimeType"] == "audio/wav" and wav[:4] == b"RIFF" and len(wav) > 30000, said
    assert int.from_bytes(wav[40:44], "little") == len(wav) - 44
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.wav")
        assert not m.call("speak", text="Hello.", file=path)["isError"] and os.path.getsize(path) > 10000
        assert m.call("speak", text="Hello.", file=path)["isError"]  # nothing is overwritten
        assert m.call("speak", text="Hello.", file=folder + "/none/a.wav")["isError"]
    for wrong in ({"text": " "}, {}, {"text": 5}, {"text": "x", "voice": "nobody"}, {"text": "x", "language": "tlh"}):
        r = m.call("speak", **wrong)
        assert r["isError"] and r["content"][0]["text"], (wrong, r)
        assert ("list_voices" in r["content"][0]["text"]) == ("voice" in wrong), (wrong, r)  # what helps
    for wrong, code in ((b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600)):
        m.send(wrong)
        assert json.loads(m.p.stdout.readline())["error"]["code"] == code, wrong
    assert m.ask("x")["error"]["code"] == -32601 and m.ask("server/discover")["error"]["code"] == -32601
    assert m.ask("tools/call", {"name": "x"})["error"]["code"] == -32602
    m.send({"jsonrpc": "2.0", "id": 7, "result": {}})  # an answer to nothing
    m.send({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {
        "name": "speak", "arguments": {"text": "The quick brown fox jumps over the lazy dog. " * 200}}})
    time.sleep(0.3)
    began = time.time()
    m.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8}})
    assert m.ask("ping")["result"] == {} and time.time() - began < 3 * PATIENCE  # no answer to what was taken back
    assert m.end() == (0, b"")


def mcp_without_a_handshake(program):
    m = Mcp(program)
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                      "io.modelcontextprotocol/clientCapabilities": {}}}
    r = m.ask("server/discover", meta)["result"]
    assert r["supportedVersions"] == ["2026-07-28"] and r["resultType"] == "complete" and r["cacheScope"], r
    assert len(m.ask("tools/list", meta)["result"]["tools"]) == 2
    r = m.ask("tools/call", {**meta, "name": "speak", "arguments": {"text": "Hi."}})["result"]
    assert r["resultType"] == "complete" and r["content"][1]["type"] == "audio"
    e = m.ask("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}})["error"]
    assert e["code"] == -32022 and e["data"]["supported"] == ["2026-07-28"], e
    assert m.end() == (0, b"")


TESTS = [mcp_with_a_handshake, mcp_without_a_handshake]
