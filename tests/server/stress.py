# What bad will and bad luck do to those who listen: stress.py PROGRAM WHAT [N [SEED]] [-- options of utter serve].
# Not part of the tests: it wants the machine alone, and minutes. With 6 processors or more the server, the load and the
# others have their own. Prints a line of JSON for each figure. Parts of one run want seeds of their own.
#   floods [60 [KIND ...]]  16 listeners, so many seconds each: alone, and beside each kind of flood (asks: a hundred
#                     connections of one address that ask again as soon as they are answered, whose answers with 200
#                     and with other statuses are counted apart); SIGTERM amid the last
#   slow [10000 [5]]  16 listeners without and beside so many slow and silent connections, by eight turns of 60 s; who
#                     is shut out comes back within 5 s
#   storm [100000]    so many clients that leave at any moment, and some who stay: when lanes are free, whose bytes come
#   sigterm [1000]    so many servers of 16 streams are told to end at any moment: who is whole, who is told, how soon
import http.client
import json
import multiprocessing
import os
import random
import resource
import select
import signal
import socket
import statistics
import subprocess
import sys
import time

from client import Server, wait_for
from floods import STRANGER, asked, framed, kinds, upgrade

arguments, options = sys.argv[1:], []
if "--" in arguments:
    options = arguments[arguments.index("--") + 1:]
    arguments = arguments[:arguments.index("--")]
program, what, *rest = arguments
number = int(rest[0]) if rest else 0
seed = int(rest[1]) if len(rest) > 1 and what not in ("floods", "slow") else 0
HOST = b"Host: localhost\r\n"
LONG = "The quick brown fox jumps over the lazy dog near the river bank."
CORES = sorted(os.sched_getaffinity(0))
APART = len(CORES) >= 6


def show(name, **values):
    print(json.dumps({"figure": name, **values}), flush=True)


def rounded(values, digits=2):
    return {name: round(value, digits) for name, value in values.items()}


def spread(values):
    values = sorted(values)
    return rounded({"n": len(values), **{name: values[int(share * (len(values) - 1))] for name, share in (
        ("p50", 0.5), ("p99", 0.99), ("max", 1))}}, 4) if values else {"n": 0}


def serve(*more):
    """On the processors that are its own; what this process starts later has the load's."""
    if APART:
        os.sched_setaffinity(0, CORES[:-3])
    s = Server(program, *more, *options)
    if APART:
        os.sched_setaffinity(0, CORES[-3:-1])
    if not s.port:
        sys.exit(s.said())
    show("server", ready=s.ready.strip(), processors_apart=APART)
    return s


def memory_mb(s):
    return round(s.memory_kb() / 1024, 1)


def hear(s, seconds):
    out = subprocess.run([program, "load", "--port", str(s.port), "--json", "--listeners", "16", "--words", "3-12",
                          "--seconds", str(seconds)], check=True, capture_output=True)
    return json.loads(out.stdout)


def show_heard(name, r, alone, **more):
    ratio = r["audible_ms"]["p99"] / alone["audible_ms"]["p99"] if alone else 1
    show(name, requests=r["requests"], refused=r["refused"], broken=r["broken"], underruns=r["underruns"],
         audible_ms=r["audible_ms"], p99_over_alone=round(ratio, 3), **more)


# --- floods

KINDS = kinds(HOST)


def stranger(port, first):
    c = socket.socket()
    c.bind((STRANGER, 0))
    c.connect(("127.0.0.1", port))
    c.setblocking(False)
    if first:
        c.send(first)
    return c


def flood(port, kind, counts, stop):
    """As much as the server takes, on a few connections; idle ones: 4,096. Who is thrown out comes back."""
    if APART:
        os.sched_setaffinity(0, CORES[-1:])
    first, again = KINDS[kind]
    poll, clients = select.epoll(), {}

    def come():
        try:
            c = stranger(port, first)
        except OSError:
            return
        clients[c.fileno()] = [c, 0]  # 0: where in `again` it goes on
        poll.register(c, select.EPOLLRDHUP | select.EPOLLIN | (select.EPOLLOUT if again else 0))
    want = 4 if again else 4096
    while not stop.is_set():
        for _ in range(min(64, want - len(clients))):
            come()
        for fd, events in poll.poll(0.1):
            try:
                if events & select.EPOLLOUT:
                    n = clients[fd][0].send(memoryview(again)[clients[fd][1]:])
                    clients[fd][1] = (clients[fd][1] + n) % len(again)
                    counts["sent"].value += n
                if events & select.EPOLLIN and not clients[fd][0].recv(65536):
                    raise OSError
            except BlockingIOError:
                pass
            except OSError:
                clients.pop(fd)[0].close()
                counts["thrown_out"].value += 1


def ask(port, _, counts, stop):
    """A hundred connections, each of which asks again as soon as it is answered, in turn what costs little. What the
    server answers to one address, 5,500 a second, takes 0.05 of a core here and 0.12 there."""
    if APART:
        os.sched_setaffinity(0, CORES[-1:])
    poll, clients, requests, got = select.epoll(), {}, asked(HOST), bytearray(1 << 20)
    view = memoryview(got)
    while not stop.is_set():
        while len(clients) < 100:
            try:
                c = stranger(port, requests[0])
            except OSError:
                break
            clients[c.fileno()] = [c, 0, 0, False]  # bytes of its answer to come; which request; whether it says 200
            poll.register(c, select.EPOLLIN)
        n_said = [0, 0]
        for fd, _ in poll.poll(0.1):
            client = clients[fd]
            try:
                n = client[0].recv_into(view)
                if n == 0:
                    raise OSError
                if not client[1]:
                    head = got.index(b"\r\n\r\n", 0, n) + 4
                    client[3] = got.startswith(b"HTTP/1.1 200 ")
                    client[1] = head + int(got[got.index(b"Content-Length: ", 0, head) + 16:head].split(b"\r", 1)[0])
                client[1] -= n
                if client[1] == 0:
                    n_said[client[3]] += 1
                    client[2] = (client[2] + 1) % len(requests)
                    client[0].send(requests[client[2]])
            except (OSError, ValueError):
                clients.pop(fd)[0].close()
                counts["thrown_out"].value += 1
        counts["answered_200"].value += n_said[True]
        counts["answered_else"].value += n_said[False]


def core_s(p):
    """What a process has had of the processors."""
    with open(f"/proc/{p.pid}/stat") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def floods():
    known = ["asks", *KINDS]
    wanted = rest[1:] or known
    if unknown := [kind for kind in wanted if kind not in known]:
        sys.exit(f"no such flood: {', '.join(unknown)}; there are {', '.join(known)}")
    s = serve("-q")
    seconds = number or 60
    hear(s, 3)
    alone = hear(s, seconds)
    show_heard("alone", alone, None, memory_mb=memory_mb(s))
    for kind in wanted:
        counts = {name: multiprocessing.Value("q") for name in ("sent", "answered_200", "answered_else", "thrown_out")}
        stop = multiprocessing.Event()
        p = multiprocessing.Process(target=ask if kind == "asks" else flood, args=(s.port, kind, counts, stop))
        p.start()
        time.sleep(1)
        began, before = time.time(), core_s(p)
        r = hear(s, seconds)
        cores = (core_s(p) - before) / (time.time() - began)
        show_heard(kind, r, alone, **{name: count.value for name, count in counts.items()},
                   flooding_takes_cores=round(cores, 2), memory_mb=memory_mb(s))
        if kind == wanted[-1]:
            began = time.time()
            show("SIGTERM amid them", code=s.stop(), seconds=round(time.time() - began, 2))
        stop.set()
        p.join()


def slow():
    s = serve("-q")
    n = number or 10000
    hear(s, 3)
    runs = ([], [])
    for beside in (0, 1, 1, 0) * 2:
        if beside:
            p = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "hold.py"), str(s.port),
                                  str(n), *rest[1:2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            if APART:
                os.sched_setaffinity(p.pid, CORES[-1:])
            else:  # they would be other machines: what their program computes is not to be taken from the server
                os.sched_setscheduler(p.pid, os.SCHED_IDLE, os.sched_param(0))
            p.stdout.readline()
            time.sleep(6)  # the first of them are shut out after 5 s
        r = hear(s, 60)
        runs[beside].append(r)
        show_heard("beside slow ones" if beside else "without", r, runs[0][0] if beside else None,
                   memory_mb=memory_mb(s))
        if beside:
            show("slow ones", connections=n, **json.loads(p.communicate(b"\n")[0]))
            time.sleep(3)
    p99 = [round(statistics.mean(r["audible_ms"]["p99"] for r in some), 3) for some in runs]
    show("slow", mean_p99_ms=p99, ratio=round(p99[1] / p99[0], 4))
    s.stop()


# --- those who leave

def request(text, seed, frames):
    body = json.dumps({"input": text, "response_format": "pcm", "seed": seed, "max_new_tokens": frames}).encode()
    return b"POST /v1/audio/speech HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body


SESSION = upgrade(HOST) + b"".join(map(framed, (
    b'{"type":"session.config"}', b'{"type":"input.text","text":"Hello there, how are you today?"}',
    b'{"type":"input.done"}')))


def leave(port, n, seed, left):
    """Each at a moment drawn anew: within its request, behind it, at the first sound, or some pieces later."""
    if APART:
        os.sched_setaffinity(0, CORES[-3:])
    draw = random.Random(seed)
    for i in range(n):
        try:
            c = socket.create_connection(("127.0.0.1", port))
            c.settimeout(0.5)
            data = SESSION if draw.random() < 0.2 else request(LONG, i, 200)
            moment = draw.random()
            if moment < 0.1:
                c.sendall(data[:draw.randrange(len(data))])
            else:
                c.sendall(data)
            if 0.1 <= moment < 0.4:
                time.sleep(0.05 * draw.random())
            for _ in range(int(moment >= 0.4) * (1 + int(20 * draw.random() ** 3))):
                if not c.recv(4096):
                    break
            if draw.random() < 0.3:  # with a reset
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            c.close()
        except OSError:
            pass
        with left.get_lock():
            left.value += 1


def stay(port, alone, wrong, whole, stop):
    """Hears the same speeches over and over: the bytes are those that they had alone."""
    while not stop.is_set():
        for text, frames, sound in alone:
            try:
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                c.request("POST", "/v1/audio/speech", json.dumps({
                    "input": text, "response_format": "pcm", "seed": 7, "max_new_tokens": frames}))
                answer = c.getresponse()
                body = answer.read()
                if answer.status == 200:
                    (whole if body == sound else wrong).value += 1
                c.close()
            except (OSError, http.client.HTTPException):
                wrong.value += 1
            time.sleep(0.02)


def storm():
    s = serve("--lanes", "16", "--queue", "16")
    n, crews = number or 100000, 8
    alone = [(LONG, frames, s.speak(input=LONG, seed=7, max_new_tokens=frames)[2]) for frames in (5, 20, 40)]
    left, wrong, whole = (multiprocessing.Value("q") for _ in range(3))
    stop = multiprocessing.Event()
    some = [multiprocessing.Process(target=leave, args=(s.port, n // crews, seed * crews + i, left))
            for i in range(crews)]
    stayer = multiprocessing.Process(target=stay, args=(s.port, alone, wrong, whole, stop))
    memory = memory_mb(s)
    began = time.time()
    for p in (*some, stayer):
        p.start()
    for p in some:
        p.join()
    took = time.time() - began
    stop.set()
    stayer.join()
    idle = wait_for(lambda: s.metric("requests_running") == 0, 20)
    n_steps = s.metric("step_seconds_count")
    longer = {f"{at} s": n_steps - s.metric(f'step_seconds_bucket{{le="{at}"}}') for at in (0.005, 0.01, 0.02, 0.03)}
    freed = {}
    for line in s.said().splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "freed":
            freed.setdefault(event["stage"], []).append(event["seconds"])
    show("storm", left=left.value, seconds=round(took, 1), survivors_whole=whole.value, survivors_wrong=wrong.value,
         lanes_all_free=idle, steps=n_steps, mean_step_s=round(s.metric("step_seconds_sum") / max(1, n_steps), 5),
         steps_longer_than=longer, freed_s={stage: spread(f) for stage, f in freed.items()},
         worker_deaths=s.metric("worker_deaths_total"), memory_mb=[memory, memory_mb(s)])
    show("storm", code=s.stop())


# --- servers that are told to end

def listen(port, text, frames):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=90)  # a drain may take 30 s
    began = connected = time.time()
    try:
        c.connect()
        connected = time.time()
        c.request("POST", "/v1/audio/speech", json.dumps({
            "input": text, "response_format": "pcm", "seed": 7, "max_new_tokens": frames}))
        answer = c.getresponse()
        body = answer.read()
    except http.client.IncompleteRead:
        return "told: cut", b""
    except TimeoutError:
        return "HANGS", b""
    except ConnectionRefusedError:
        return "came too late", b""
    except (OSError, http.client.HTTPException) as e:
        show("closed", why=repr(e), seconds_to_connect=connected - began, seconds_then=time.time() - connected)
        return "closed: " + type(e).__name__, b""
    finally:
        c.close()
    if answer.status != 200:
        return f"told: {answer.status}", body
    return "whole", body


def listen_16(port, frames, results):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(16) as crew:
        results.send(list(crew.map(lambda _: listen(port, LONG, frames), range(16))))


def ended(s, drain):
    """The code with which it ended. Who takes long is told and waited for, as a machine at other work may be slow; a
    server that is there after minutes hangs."""
    try:
        return s.process.wait(drain + 5)
    except subprocess.TimeoutExpired:
        show("slow end", drain=drain, load=os.getloadavg()[0], workers=s.workers(), log=s.said()[-2000:])
    try:
        return s.process.wait(300)
    except subprocess.TimeoutExpired:
        s.process.kill()
        return "HANGS"


def sigterm():
    draw = random.Random(seed)
    outcomes, seconds, codes, sound = {}, [], {}, {}
    for _ in range(number or 1000):
        drain = draw.choice((0, 1, 30))
        s = Server(program, "-q", "--lanes", "16", "--drain", str(drain), *options)
        frames = draw.choice((5, 40, 200))
        if frames not in sound:
            sound[frames] = s.speak(input=LONG, seed=7, max_new_tokens=frames)[2]
        ours, theirs = multiprocessing.Pipe()
        p = multiprocessing.Process(target=listen_16, args=(s.port, frames, theirs))
        p.start()
        wanted = draw.choice((1, 8, 16))
        wait_for(lambda: ours.poll(0) or s.metric("requests_running") >= wanted, 2, 0.001)
        time.sleep(draw.random() ** 2 * 0.6)
        began = time.time()
        s.process.send_signal(signal.SIGTERM)
        code = ended(s, drain)
        seconds.append(time.time() - began - drain)
        codes[code] = codes.get(code, 0) + 1
        for outcome, body in ours.recv():
            if outcome == "whole" and body != sound[frames]:
                outcome = "WRONG"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        p.join()
    show("sigterm", servers=len(seconds), seed=seed, codes=codes, outcomes=outcomes, load=os.getloadavg()[0],
         seconds_beyond_drain=spread(seconds))


resource.setrlimit(resource.RLIMIT_NOFILE, 2 * resource.getrlimit(resource.RLIMIT_NOFILE)[1:])
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
{"floods": floods, "slow": slow, "storm": storm, "sigterm": sigterm}[what]()
