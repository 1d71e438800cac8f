# Servers behind the real HAProxy, with the file of examples/service: as many as are wanted, in place of its two.
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../server"))
from client import PATIENCE, Server, free_port, wait_for  # noqa: E402


class Behind:
    """Looks like a server to Socket and to those who ask."""
    ask, speak, key = Server.ask, Server.speak, None

    def __init__(self, program, haproxy, config, n, options):
        self.program, self.options = program, options
        self.port, self.ports = free_port(), [free_port() for _ in range(n)]
        self.servers = [self.start(i) for i in range(n)]
        with open(config) as f:
            text = f.read()
        two = "    server a 127.0.0.1:8080\n    server b 127.0.0.1:8081\n"
        assert text.count(two) == 1 and text.count(":8079") == 1
        text = text.replace(two, "".join(f"    server s{i} 127.0.0.1:{port}\n" for i, port in enumerate(self.ports)))
        text = text.replace(":8079", f":{self.port}")
        text = text.replace("defaults\n", "defaults\n    timeout check 20s\n")  # the slow are not dead
        with tempfile.NamedTemporaryFile("w", suffix=".cfg", delete=False) as f:
            f.write(text)
        self.file = f.name
        self.proxy = subprocess.Popen([haproxy, "-q", "-f", self.file], stderr=subprocess.DEVNULL)
        try:
            assert subprocess.run([haproxy, "-c", "-q", "-f", self.file]).returncode == 0
            assert wait_for(lambda: self.answers(), 10)
        except BaseException:
            self.stop()
            raise

    def answers(self):
        try:
            return self.ask("GET", "/ready")[0] == 200
        except OSError:
            return False

    def start(self, i):
        return Server(self.program, "--port", str(self.ports[i]), *self.options)

    def stop(self):
        self.proxy.kill()
        self.proxy.wait()
        os.unlink(self.file)
        return [s.stop() for s in self.servers]


class Listener(threading.Thread):
    def __init__(self, behind, text, seed=1):
        super().__init__()
        self.port, self.text, self.seed, self.sound, self.status, self.whole = behind.port, text, seed, b"", 0, False
        self.start()

    def run(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120 * PATIENCE)
        try:
            body = {"input": self.text, "seed": self.seed, "response_format": "pcm"}
            c.request("POST", "/v1/audio/speech", json.dumps(body), {"Content-Type": "application/json"})
            answer = c.getresponse()
            self.status = answer.status
            while answer.status == 200 and (piece := answer.read1(65536)):
                self.sound += piece
            self.whole = answer.status == 200
        except (http.client.HTTPException, OSError):
            pass
        finally:
            c.close()
