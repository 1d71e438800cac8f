# How much of a server's worth each of several is behind HAProxy: servers.py PROGRAM HAPROXY [MANY [SHARE]]. One server
# and MANY (8) take turns, each with SHARE (0.1) of a core for itself, by the kernel's quota: so a machine of few cores
# shows whether what stands between them and their clients is shared evenly. Closed loop, five listeners for each
# server, of whom four have a lane. Prints a line of JSON for each run, and the ratio to linear: by the clock, and by
# the processor time that the servers had, which on a busy machine is the one to look at. Needs root, for the quotas.
import json
import os
import statistics
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../tests/proxy"))
from behind import Behind  # noqa: E402

program, haproxy = sys.argv[1:3]
many = int((sys.argv[3:] or ["8"])[0])
share = float((sys.argv[4:] or ["0.1"])[0])
config = os.path.join(here, "../../examples/service/haproxy.cfg")
CPU = "/sys/fs/cgroup/cpu"  # where the first version of control groups has its quotas
PERIOD_US, EACH, TURNS = 25000, int(os.environ.get("EACH", "5")), int(os.environ.get("TURNS", "3"))
WARM_S, SECONDS, WORDS = 5, int(os.environ.get("SECONDS", "10")), os.environ.get("WORDS", "4-8")
OPTIONS = ["--threads", "1", "--lanes", "4", "--patience", "60000", "-q"]


def bound(name, pids):
    """A group of processes with `share` of a core."""
    folder = os.path.join(CPU, name)
    os.makedirs(folder, exist_ok=True)
    for file, value in ("cpu.cfs_period_us", PERIOD_US), ("cpu.cfs_quota_us", int(PERIOD_US * share)):
        with open(os.path.join(folder, file), "w") as f:
            f.write(str(value))
    for pid in pids:
        with open(os.path.join(folder, "cgroup.procs"), "w") as f:
            f.write(str(pid))
    return folder


def made(b):
    """Seconds of sound so far, of each server."""
    return [s.metric("device_audio_seconds_total") for s in b.servers]


def processor_s(b):
    """That the servers have had so far."""
    ns = 0
    for s in b.servers:
        for pid in (s.process.pid, *s.workers()):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
                    ns += int(f.read().split()[0])
    return ns * 1e-9


def measure(b, load):
    """Of each server: seconds of sound that it made in a second, and in a second of a processor."""
    time.sleep(WARM_S)
    began, before, used = time.monotonic(), made(b), processor_s(b)
    time.sleep(SECONDS)
    took, each = time.monotonic() - began, [x - y for x, y in zip(made(b), before)]
    used = processor_s(b) - used
    r = json.loads(load.communicate()[0])
    print(json.dumps({"servers": len(each), "speech_a_second": round(sum(each) / took, 3),
                      "least": round(min(each) / took, 3), "most": round(max(each) / took, 3),
                      "processors": round(used / took, 4), "speech_a_processor_second": round(sum(each) / used, 3),
                      "good": r["good"], "refused": r["refused"], "broken": r["broken"]}), flush=True)
    assert r["broken"] == r["refused"] == 0
    return sum(each) / took, sum(each) / used


def run(n):
    b, folders, load = Behind(program, haproxy, config, n, OPTIONS), [], None
    try:
        for i, s in enumerate(b.servers):
            folders.append(bound(f"utter-{os.getpid()}-{i}", [s.process.pid, *s.workers()]))
        load = subprocess.Popen([program, "load", "--port", str(b.port), "--listeners", str(EACH * n), "--seconds",
                                 str(WARM_S + SECONDS + 1), "--words", WORDS, "--json"], stdout=subprocess.PIPE)
        return measure(b, load)
    finally:
        if load and load.poll() is None:
            load.kill()
            load.wait()
        b.stop()
        for folder in folders:
            os.rmdir(folder)


def main():
    if not os.path.exists(os.path.join(CPU, "cpu.cfs_quota_us")):
        sys.exit(f"servers.py: no quotas of the first version of control groups in {CPU}")
    os.nice(-20)
    ratios, by_processor = [], []
    for _ in range(TURNS):
        one, all_of_them = run(1), run(many)
        ratios.append(round(all_of_them[0] / one[0] / many, 4))
        by_processor.append(round(all_of_them[1] / one[1], 4))
    print(json.dumps({"servers": many, "share": share,
                      "of_linear": statistics.median(ratios), "each": ratios,
                      "of_linear_by_processor": statistics.median(by_processor), "each_by_processor": by_processor}))


main()
