# Usage: watch.py PROGRAM ROOT. See run.
import http.client
import json
import os
import shutil
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../server"))
import files  # noqa: E402
import picker  # noqa: E402
from client import PATIENCE, Checks, Server, Socket, operated, wait_for  # noqa: E402

program, root = sys.argv[1:3]
TEXT = "The quick brown fox jumps over the lazy dog near the river bank. "
LONG = TEXT * 4  # more than what is taken before anybody reads
OPTIONS = ["--threads", "1", "--lanes", "2", "--patience", "20000"]
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def metrics_are_read_by_the_parser_of_prometheus(s):
    found = picker.families(s)
    for name, family in found.items():
        assert family.documentation and family.samples, name
        assert family.type in ("gauge", "counter", "histogram"), (name, family.type)
        if family.type == "histogram":
            counts = [x.value for x in family.samples if x.name.endswith("_bucket")]
            total = next(x.value for x in family.samples if x.name.endswith("_count"))
            assert counts == sorted(counts) and counts[-1] == total, name
    samples = [(x.name, tuple(sorted(x.labels.items()))) for f in found.values() for x in f.samples]
    assert len(samples) == len(set(samples)) > 100


def gauges_follow_who_is_there(s):
    assert picker.gauges(s) == [0, 0, 0]
    listeners = [picker.Listener(s, LONG, seed=i) for i in range(3)]
    assert wait_for(lambda: picker.gauges(s)[:2] == [1, 2], 20), picker.gauges(s)  # two lanes: two run, one waits
    assert picker.gauges(s)[2] == 1
    for x in listeners:
        x.leave()
    assert wait_for(lambda: picker.gauges(s) == [0, 0, 0])


def who_comes_goes_where_there_is_room(two):
    listeners = [picker.Listener(two[0], LONG, seed=i) for i in range(2)]
    assert wait_for(lambda: picker.gauges(two[0])[1] == 2)
    for i in range(2):
        chosen = picker.pick(two)
        assert chosen is two[1], [picker.gauges(s) for s in two]
        listeners.append(picker.Listener(chosen, LONG, seed=i))
        assert wait_for(lambda: picker.gauges(two[1])[1] == i + 1)
    for x in listeners:
        x.leave()
    assert wait_for(lambda: all(picker.gauges(s) == [0, 0, 0] for s in two))


def usage_is_told(s):
    told = picker.usage(picker.Listener(s, TEXT, stream_format="sse").read()[1])
    assert set(told) == {"input_tokens", "output_tokens", "total_tokens"} and min(told.values()) > 0, told
    assert told["total_tokens"] == told["input_tokens"] + told["output_tokens"]


def not_ready_before_the_last_stream_ends(other):
    """An operator sends the worker away, then the orchestrator the process: nobody is sent there any more, and who
    hears something hears its end."""
    s = operated(program, *OPTIONS, "-q", "--drain", "600")
    try:
        listener = picker.Listener(s, LONG, seed=1)
        assert wait_for(lambda: s.metric("requests_running") == 1)
        assert s.ask("POST", "/v1/workers/0/drain", {})[0] == 200
        status, _, said = s.ask("GET", "/ready")
        assert status == 503 and s.metric("requests_running") == 1, said
        assert picker.pick([s, other]) is other
        s.process.send_signal(signal.SIGTERM)
        assert wait_for(lambda: not picker.is_ready(s)) and s.process.poll() is None
        assert picker.pick([s, other]) is other and picker.pick([s]) is None
        status, sound = listener.read()
        assert status == 200 and sound == other.speak(input=LONG, seed=1)[2]
        assert s.process.wait(10 * PATIENCE) == 0
    finally:
        s.stop()


def logged(s, event):
    lines = [json.loads(line) for line in s.said().splitlines() if line.startswith("{")]
    return [x for x in lines if x["event"] == event]


def traces_are_in_the_log(s):
    def traced(event):
        return [(x.get("trace_id"), x.get("span_id")) for x in logged(s, event)]
    here = (TRACE, SPAN)
    speak, n = {"input": TEXT, "response_format": "pcm", "max_new_tokens": 2}, len(logged(s, "speech"))
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=30 * PATIENCE)
    values = [(f"00-{TRACE}-{SPAN}-01", here), (None, (None, None)), (f"cc-{TRACE}-{SPAN}-01-more", here)]
    values += [(wrong, (None, None)) for wrong in (
        "", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}-0x",
        f"00-{TRACE.upper()}-{SPAN}-01", f"00-{TRACE}-{SPAN}", f"00-{TRACE}-{SPAN}-01-more", f"00_{TRACE}-{SPAN}-01")]
    for value, _ in values:  # one connection: none has the trace of the one before
        head = {"Content-Type": "application/json", **({"traceparent": value} if value is not None else {})}
        c.request("POST", "/v1/audio/speech", json.dumps(speak), head)
        assert len(c.getresponse().read()) == 2 * 3840
    c.putrequest("POST", "/v1/audio/speech")  # of two traces none
    body = json.dumps(speak).encode()
    for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body))),
                        ("traceparent", values[0][0]), ("Traceparent", values[0][0].replace("4", "5"))):
        c.putheader(name, value)
    c.endheaders(body)
    assert len(c.getresponse().read()) == 2 * 3840
    values.append(("two", (None, None)))
    c.close()
    assert wait_for(lambda: len(logged(s, "speech")) == n + len(values))
    assert traced("speech")[n:] == [expected for _, expected in values], traced("speech")[n:]
    s.ask("POST", "/v1/audio/speech", {"input": ""}, {"traceparent": values[0][0]})
    w = Socket(s, headers=f"traceparent: {values[0][0]}\r\n")
    w.send({"type": "session.config"})
    w.send({"type": "input.text", "text": LONG})
    w.receive(), w.receive()
    w.close()
    assert wait_for(lambda: traced("cancelled")[-1:] == [here]), traced("cancelled")
    assert logged(s, "refused")[-1]["status"] == 400 and traced("refused")[-1] == here


def main():
    checks = Checks()
    two = [Server(program, *OPTIONS), Server(program, *OPTIONS, "-q")]
    for test in (metrics_are_read_by_the_parser_of_prometheus, gauges_follow_who_is_there, usage_is_told,
                 traces_are_in_the_log):
        checks.run(test.__name__, test, two[0])
    checks.run("who_comes_goes_where_there_is_room", who_comes_goes_where_there_is_room, two)
    for test in (files.the_dashboard_is_what_its_tool_makes, files.alerts_ask_for_what_is_there):
        checks.run(test.__name__, test, two[0], root)
    checks.run("manifests_fit_together", files.manifests_fit_together, two[0], root, program)
    checks.run("not_ready_before_the_last_stream_ends", not_ready_before_the_last_stream_ends, two[1])
    assert [s.stop() for s in two] == [0, 0]
    n_skipped = 0
    for test, what, name, *more in (
            (files.alerts_speak_when_they_should, shutil.which("promtool"), "prometheus"),
            (files.the_queue_is_seen_as_it_is_scaled_by, files.server_of_nats(), "nats-server", program)):
        if what:
            checks.run(test.__name__, test, root, *more)
        else:
            n_skipped += 1
            print(f"SKIP watch/{test.__name__}: its program is not here (apt-get install {name})")
    print(f"{checks.passed} passed, {checks.failed} failed, {n_skipped} skipped")
    sys.exit(1 if checks.failed or not checks.passed else 0)


main()
