#!/usr/bin/env python3
"""Bulk beside listeners: listeners at a fixed rate ask one server, by turns with a bulk worker on it and without, and
the p95 of their first audible sound is compared. Both turns of a pair ask for the same texts at the same times.

Usage: [RATE=1] [SECONDS=20] [TURNS=6] [WORDS=5-20] [DEVICE=cpu] [MODEL=DIR] tools/bench/bulk.py PROGRAM
Two cores: taskset -c 0,1 nice -n -10 tools/bench/bulk.py build/release/utter
"""
import json
import math
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

PROGRAM = os.path.abspath(sys.argv[1])
RATE = os.environ.get("RATE", "1")
SECONDS = os.environ.get("SECONDS", "20")
TURNS = int(os.environ.get("TURNS", "6"))
WORDS = os.environ.get("WORDS", "5-20")
DEVICE = os.environ.get("DEVICE", "cpu")
MODEL = ["-m", os.path.abspath(os.environ["MODEL"])] if "MODEL" in os.environ else []
TEXT = "the river morning we found a small garden beside old stone bridge and children were reading letters".split()


def percentile(values, share):
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def start_server(folder, port):
    log = open(os.path.join(folder, "serve.log"), "w", encoding="utf-8")
    command = [PROGRAM, "serve", "--port", str(port), "--device", DEVICE, *MODEL]
    server = subprocess.Popen(command, stdout=log, stderr=log)
    for _ in range(600):
        time.sleep(0.1)
        try:
            get(f"http://127.0.0.1:{port}/ready")
            return server
        except OSError:
            pass
    sys.exit("the server is not ready")


def submit(folder):
    """More lines than a run can make."""
    draw = random.Random(1)
    with open(os.path.join(folder, "lines.jsonl"), "w", encoding="utf-8") as file:
        for i in range(20000):
            text = " ".join(draw.choices(TEXT, k=draw.randint(8, 30)))
            file.write(json.dumps({"id": str(i), "text": f"{text} {i}."}) + "\n")
    subprocess.run([PROGRAM, "job", "submit", "lines.jsonl", "--queue", "queue", "--results", "results", *MODEL],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def listen(port, seed):
    command = [PROGRAM, "load", "--port", str(port), "--rate", RATE, "--seconds", SECONDS, "--words", WORDS]
    told = subprocess.run([*command, "--seed", str(seed), "--json"], check=True, capture_output=True, text=True)
    return json.loads(told.stdout)


def wait_until_running(port):
    for _ in range(300):
        time.sleep(0.1)
        if re.search(r"^tts_background_running [1-9]", get(f"http://127.0.0.1:{port}/metrics"), re.M):
            return
    sys.exit("no line is spoken in the background")


def interval(turns):
    """Where the ratio of all turns' p95 may lie: 95 of 100 draws of as many pairs of turns."""
    draw, ratios = random.Random(1), []
    for _ in range(2000):
        some = draw.choices(turns, k=len(turns))
        p95 = [percentile([each for pair in some for each in pair[way]], 0.95) for way in (False, True)]
        ratios.append(p95[1] / p95[0])
    return percentile(ratios, 0.025), percentile(ratios, 0.975)


def turn(folder, port, seed, with_bulk):
    worker = None
    if with_bulk:
        worker = subprocess.Popen(
            [PROGRAM, "job", "work", "--server", f"http://127.0.0.1:{port}", "--queue", "queue", "--results",
             "results", "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        wait_until_running(port)
    told, made = listen(port, seed), {}
    if worker:
        worker.send_signal(signal.SIGTERM)
        made = json.loads(worker.communicate()[0])
        time.sleep(1)
    return told, made


def main():
    both, ratios, turns, paces = {False: [], True: []}, [], [], []
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        server = start_server(folder, port)
        submit(folder)
        listen(port, 999)
        for i in range(TURNS):
            p95, pair = {}, {}
            for with_bulk in ((False, True) if i % 2 == 0 else (True, False)):
                told, made = turn(folder, port, i, with_bulk)
                each = pair[with_bulk] = told["audible_each_ms"]
                both[with_bulk] += each
                p95[with_bulk] = percentile(each, 0.95)
                bulk = ""
                if made:
                    pace = made["seconds"] / made["took_s"]
                    paces.append(pace)
                    bulk = f", bulk {pace:.1f} x real time, {made['given_back']} given back"
                print(f"turn {i} {'with' if with_bulk else 'without'} bulk: {told['good']} of {told['requests']} good, "
                      f"audible p50 {percentile(each, 0.5):.1f} p95 {p95[with_bulk]:.1f} ms, "
                      f"{told['underruns']} ran dry{bulk}", flush=True)
            ratios.append(p95[True] / p95[False])
            turns.append(pair)
        server.terminate()
        server.wait()
    for share in (0.5, 0.95):
        a, b = percentile(both[False], share), percentile(both[True], share)
        print(f"all: p{share * 100:.0f} {a:.2f} ms without, {b:.2f} ms with bulk, ratio {b / a:.3f}")
    least, most = interval(turns)
    print(f"p95 of all: {len(both[True])} listeners each way, ratio {least:.3f} to {most:.3f} in 95 of 100 draws; "
          f"bulk {statistics.median(paces):.1f} x real time (median)")
    print("p95 of turns: ratio " + ", ".join(f"{r:.3f}" for r in ratios) + f"; median {statistics.median(ratios):.3f}")


main()
