# An endpoint picker as the Gateway API inference extension and llm-d have them: the kubelet asks /ready, a pool scrapes
# the three gauges under the names that pickers know by themselves, and who comes goes where there is most room.
import http.client
import json

from client import PATIENCE
from prometheus_client.parser import text_string_to_metric_families

WAITING, RUNNING, USE = "vllm:num_requests_waiting", "vllm:num_requests_running", "vllm:kv_cache_usage_perc"


def families(server):
    status, headers, text = server.ask("GET", "/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4"), headers
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def gauges(server, *names):
    """What a picker scrapes of one server: who wait, who run, the use; or the values of these."""
    found, values = families(server), []
    for name in names or (WAITING, RUNNING, USE):
        family = found[name]
        assert family.type == "gauge" and len(family.samples) == 1, (name, family)
        assert family.samples[0].labels["model_name"], family
        values.append(family.samples[0].value)
    return values


def is_ready(server):
    try:
        return server.ask("GET", "/ready", timeout=2 * PATIENCE)[0] == 200
    except OSError:
        return False


def pick(servers):
    """Ready ones only; then the shortest queue, the least use, the fewest that run."""
    ready = [s for s in servers if is_ready(s)]
    return min(ready, key=lambda s: gauges(s, WAITING, USE, RUNNING)) if ready else None


class Listener:
    """Sends a speech to one server, as the gateway does for a client, and reads nothing before read()."""

    def __init__(self, server, text, **fields):
        self.c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60 * PATIENCE)
        heads = {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"}
        body = json.dumps({"input": text, "response_format": "pcm", **fields})
        self.c.request("POST", "/v1/audio/speech", body, heads)

    def read(self):
        answer = self.c.getresponse()
        return answer.status, answer.read()

    def leave(self):
        self.c.close()


def usage(body):
    """Of the last event, as a picker counts it."""
    events = [json.loads(line[len("data: "):]) for line in body.decode().splitlines() if line.startswith("data: ")]
    assert [e["type"] for e in events].count("speech.audio.done") == 1 and events[-1]["type"] == "speech.audio.done"
    return events[-1]["usage"]
