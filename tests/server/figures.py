# What the server must show, measured: figures.py PROGRAM WHAT [N] [-- options of utter serve]. Not part of the tests:
# it wants the machine alone. Prints one line of JSON for each figure.
#   streams [20]   listeners at once, each in real time       leave [40]   rounds of clients that leave, and who stays
#   silent [9]     pairs of turns: 8 listeners, 1,000 slow    kill [100]   the worker, killed at random times
#   flood          clients that send and never read           formats      what the encoders cost
#   gpu            one client; 10, 20, 30 requests a second; 128 listeners (models that do not end: 5 frames a word)
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

from client import Server, wait_for

arguments, options = sys.argv[1:], ["-q"]
if "--" in arguments:
    options += arguments[arguments.index("--") + 1:]
    arguments = arguments[:arguments.index("--")]
program, what = arguments[:2]
number = int(arguments[2]) if len(arguments) > 2 else 0
LONG = "The quick brown fox jumps over the lazy dog near the river bank. " * 4


def load(s, *more):
    out = subprocess.run([program, "load", "--port", str(s.port), "--json", *more], check=True, capture_output=True)
    return json.loads(out.stdout)


def post(s, text, small=False):
    c = socket.socket()
    if small:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    c.connect(("127.0.0.1", s.port))
    body = json.dumps({"input": text, "response_format": "pcm"}).encode()
    c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return c


def show(name, **values):
    print(json.dumps({"figure": name, **values}), flush=True)


def memory(s):
    with open(f"/proc/{s.process.pid}/status") as f:
        return int(next(x for x in f if x.startswith("VmRSS")).split()[1])


def processor_s(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load_and_compare(s, *more):
    """The load, and whether a request alone and in the middle of it gives the same bytes."""
    same = []
    alone = s.speak(input=LONG, seed=3, max_new_tokens=60)[2]

    def ask():
        time.sleep(4)
        for _ in range(3):
            same.append(s.speak(input=LONG, seed=3, max_new_tokens=60)[2] == alone)
    t = threading.Thread(target=ask)
    t.start()
    r = load(s, *more)
    t.join()
    return r, same


def show_load(name, r, **more):
    show(name, requests=r["requests"], refused=r["refused"], broken=r["broken"], underruns=r["underruns"],
         audible_ms=r["audible_ms"], first_ms=r["first_ms"], gap_ms=r["gap_ms"], worst_gap_ms=r["worst_gap_ms"],
         underrun_ms=r["underrun_ms"],
         audio_per_second=r["audio_per_second"], most_at_once=r["most_at_once"], **more)


def streams(s):
    n = number or 20
    worker, before = s.workers()[0], (processor_s(s.process.pid), processor_s(s.workers()[0]))
    r, same = load_and_compare(s, "--listeners", str(n), "--seconds", "20")
    show_load("streams", r, listeners=n, same_alone_and_in_the_crowd=same, wall_s=r["wall_seconds"],
              front_s=processor_s(s.process.pid) - before[0], worker_s=processor_s(worker) - before[1],
              capacity=s.metric("capacity"))


def gpu(s):
    frames = ["--word-frames", "5"]
    show_load("one client", load(s, "--listeners", "1", "--eager", "--words", "13", "--word-frames", "2",
                                 "--seconds", "3"))
    for rate, seconds in (("10", "6"), ("20", "6"), ("30", "20")):
        waited = s.metric("queue_wait_seconds_sum")
        show_load(rate + " requests a second", load(s, "--rate", rate, "--seconds", seconds, *frames),
                  queued_s=s.metric("queue_wait_seconds_sum") - waited)
    r, same = load_and_compare(s, "--listeners", str(number or 128),
                               "--words", "5-40", "--seconds", "8", *frames)
    show_load("listeners", r, same_alone_and_in_the_crowd=same, capacity=s.metric("capacity"))


def formats(s):
    for kind in ("pcm", "wav", "mp3", "opus", "flac", "aac"):
        front, worker = processor_s(s.process.pid), processor_s(s.workers()[0])
        seconds = 0
        for i in range(6):
            s.speak(input=LONG, response_format=kind, seed=1)
        seconds = 6 * len(s.speak(input=LONG, seed=1)[2]) / 48000
        show("format", format=kind, front_share=(processor_s(s.process.pid) - front) / seconds,
             worker_share=(processor_s(s.workers()[0]) - worker) / (seconds * 7 / 6))


def freed(s):
    """From the log: stage -> seconds from the leaving to the free lane."""
    stages = {}
    for line in s.said().splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "freed":
            stages.setdefault(event["stage"], []).append(event["seconds"])
    return stages


def leave_once(s):
    """Three lanes and one place in the queue: who streams, who waits for the first frame, who waits for a lane."""
    clients = [post(s, LONG) for _ in range(3)]
    clients[0].recv(1)
    clients[1].recv(20000)
    late = post(s, LONG)
    time.sleep(random.random() * 0.03)
    late.close()
    clients[0].close()
    first = post(s, LONG)
    time.sleep(random.random() * 0.03)
    first.close()
    for c in clients[1:]:
        c.close()
    wait_for(lambda: s.metric("requests_running") <= 3, 20)


def leave(s):
    s.stop()
    s = Server(program, "--lanes", "6", *options[1:])
    random.seed(1)
    texts = [LONG + f"Number {i}." for i in range(3)]
    alone = [[s.speak(input=text)[2]] * 4 for text in texts]
    stay = [None] * 3

    def hear(i):
        stay[i] = [s.speak(input=texts[i])[2] for _ in alone[i]]
    threads = [threading.Thread(target=hear, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for _ in range(number or 40):
        if all(t.is_alive() for t in threads):
            leave_once(s)
    for t in threads:
        t.join()
    for _ in range(4):  # blocked: their sound fills what the kernels hold, then they are paused
        blocked = [post(s, LONG * 3, small=True) for _ in range(6)]
        wait_for(lambda: s.metric("batch_size") == 0 and s.metric("requests_running") == 6, 30)
        for c in blocked:
            c.close()
        wait_for(lambda: s.metric("requests_running") == 0, 20)
    everything = []
    for stage, seconds in freed(s).items():
        seconds.sort()
        everything += seconds
        show("leave", stage=stage, n=len(seconds), mean_ms=1000 * sum(seconds) / len(seconds),
             p99_ms=1000 * seconds[int(0.99 * (len(seconds) - 1))], most_ms=1000 * seconds[-1])
    everything.sort()
    show("leave", stage="all", n=len(everything), p99_ms=1000 * everything[int(0.99 * (len(everything) - 1))],
         survivors_unchanged=stay == alone, lanes_still_taken=s.metric("requests_running"))
    s.stop()


def spread(values):
    values = sorted(values)
    return {"n": len(values), **{name: values[int(share * (len(values) - 1))]
                                 for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1))}}


def hold(s, core):
    p = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "hold.py"), str(s.port), "1000"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if core:
        os.sched_setaffinity(p.pid, core)
    p.stdout.readline()
    return p


def with_interval(pairs, share):
    """Beside them against without, at this share of all answers: the ratio, its 95% interval over pairs of turns."""
    def ratio(some):
        at = [sorted(x for pair in some for x in pair[i]) for i in (0, 1)]
        return at[1][int(share * (len(at[1]) - 1))] / at[0][int(share * (len(at[0]) - 1))]
    draw = random.Random(1)
    drawn = sorted(ratio([draw.choice(pairs) for _ in pairs]) for _ in range(1000))
    return [round(x, 4) for x in (ratio(pairs), drawn[25], drawn[974])]


def silent(s):
    """Pairs of short turns without and with them, in either order; short answers, so that many tell of the slowest of
    a hundred. With 6 cores or more, server, load and those who are silent have their own."""
    cores = sorted(all_cores)
    apart = len(cores) >= 6
    if apart:
        os.sched_setaffinity(0, cores[-3:-1])  # and the load, which it starts
    eight = ["--listeners", "8", "--eager", "--words", "3-8", "--word-frames", "1", "--seed", "5", "--seconds"]
    load(s, *eight, "3")
    runs, alone, most, held = ([], []), memory(s), 0, []
    front = [0, 0]
    for turn in range(2 * (number or 9)):
        beside = (turn + 1) // 2 % 2
        p = hold(s, cores[-1:] if apart else None) if beside else None
        time.sleep(6 if beside else 0.5)  # the first of them are shut out after 5 s
        front[beside] -= processor_s(s.process.pid)
        runs[beside].append(load(s, *eight, "10"))
        front[beside] += processor_s(s.process.pid)
        if beside:
            most = max(most, memory(s))
            held.append(json.loads(p.communicate(b"\n")[0]))
    each = [[x for r in some for x in r["audible_each_ms"]] for some in runs]
    pairs = list(zip(*[[r["audible_each_ms"] for r in some] for some in runs]))
    show("silent", connections=1000, cores_apart=apart, without_ms=spread(each[0]), beside_ms=spread(each[1]),
         ratio_p50=with_interval(pairs, 0.5), ratio_p95=with_interval(pairs, 0.95),
         ratio_p99=with_interval(pairs, 0.99), front_s=[x / len(runs[0]) for x in front],
         turns_p99_ms=[[r["audible_ms"]["p99"] for r in some] for some in runs])
    show("silent", refused=[sum(r["refused"] for r in some) for some in runs],
         underruns=[sum(r["underruns"] for r in some) for some in runs],
         gap_p99_ms=[[r["gap_ms"]["p99"] for r in some] for some in runs],
         shut_out=sum(h["shut_out"] for h in held), most=[h["most"] for h in held], memory_kb=[alone, most])


def flood(s):
    """Clients that send as much as they can and read nothing: what the front end takes, beside what it has printed."""
    upgrade = (b"GET /v1/audio/speech/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
               b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    config = b'{"type":"session.config"}'
    text = b'{"type":"input.text","text":"' + b"word " * 20000 + b'"}'
    socket_of = (lambda data: b"\x81\xff" + len(data).to_bytes(8, "big") + b"\0\0\0\0" + data)
    body = b"POST /v1/audio/voices HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11000000\r\n\r\n" + b"x" * 65536
    kinds = {"pages": (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000),
             "pings": (upgrade, b"\x89\x84\0\0\0\0ping" * 10000),
             "texts": (upgrade + socket_of(config), socket_of(text)),
             "bodies": (body, b"x" * 65536)}
    bound = float(s.ready.rsplit("at most ", 1)[1].split(" ")[0])
    for name, (first, again) in kinds.items():
        clients, sent, most, end = [], 0, 0, time.time() + (number or 8)
        for i in range(100):
            c = socket.create_connection(("127.0.0.1", s.port))
            c.sendall(first)
            c.setblocking(False)
            clients.append(c)
        while time.time() < end:
            for i, c in enumerate(clients):
                try:
                    sent += c.send(again)
                except BlockingIOError:
                    pass
                except OSError:
                    c.close()
                    clients[i] = c = socket.create_connection(("127.0.0.1", s.port))
                    c.sendall(first)
                    c.setblocking(False)
            most = max(most, memory(s))
        begin = time.time()
        status = s.speak(input="Hi.", max_new_tokens=2)[0]
        show("flood", kind=name, clients=100, sent_mb=sent / 1e6, most_mb=most / 1e3, bound_mb=bound,
             a_small_request=status, its_s=time.time() - begin)
        for c in clients:
            c.close()


def kill(s):
    random.seed(time.time())
    outcomes, readys, backs, refused, stop, lock = {}, [], [], [], threading.Event(), threading.Lock()
    texts = [LONG, "Hello there.", "It is a quarter past nine."]
    whole = [s.speak(input=text)[2] for text in texts]

    def ask():
        while not stop.is_set():
            i = random.randrange(len(texts))
            try:
                status, _, body = s.speak(input=texts[i])
                key = "complete" if status == 200 and body == whole[i] else "WRONG" if status == 200 else str(status)
                if status != 200 and "error" not in json.loads(body):
                    key = "no reason"
            except Exception as e:
                key = type(e).__name__
            with lock:
                outcomes[key] = outcomes.get(key, 0) + 1
            if key != "complete":
                time.sleep(0.05)
    threads = [threading.Thread(target=ask) for i in range(6)]
    for t in threads:
        t.start()
    for _ in range(number or 100):
        time.sleep(0.3 + random.random())
        os.kill(s.workers()[0], signal.SIGKILL)
        began = time.time()
        wait_for(lambda: s.ask("GET", "/ready")[0] != 200, 1)
        wait_for(lambda: s.ask("GET", "/ready")[0] == 200, 60)
        readys.append(time.time() - began)
        refused.append(0)
        while s.speak(input="Hi.", max_new_tokens=1)[0] != 200:
            refused[-1] += 1
            time.sleep(0.01)
        backs.append(time.time() - began)  # what it waited for its turn included
    stop.set()
    for t in threads:
        t.join()
    show("kill", times=len(backs), ready_s=spread(readys), back_s=spread(backs), refused_before=sum(refused),
         outcomes=outcomes,
         worker_deaths=s.metric("worker_deaths_total"), lanes_still_taken=s.metric("requests_running"))


all_cores = os.sched_getaffinity(0)
if what == "silent" and len(all_cores) >= 6:
    os.sched_setaffinity(0, sorted(all_cores)[:-3])
server = Server(program, *options)
if not server.port:
    sys.exit(server.said())
show("server", ready=server.ready.strip())
{"streams": streams, "leave": leave, "silent": silent, "kill": kill, "flood": flood, "gpu": gpu,
 "formats": formats}[what](server)
server.stop()
