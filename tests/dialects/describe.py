# How long Home Assistant waits for an answer to `describe`, on a new connection each time, while the server opens a
# model. Where it may, it gives the front end and itself the machine's turn at once (not the worker): what others do on
# the machine does not count then. Usage: describe.py PROGRAM MODEL [MS]; ends with 1 where one waited longer than MS
# (100). For a large model: build/release/tools/make_model 1.7b custom_voice MODEL.
import os
import pathlib
import select
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from client import Server, free_port  # noqa: E402
from wyoming_replay import ask  # noqa: E402


def main():
    port, times = free_port(), []
    s = Server(sys.argv[1], "-m", sys.argv[2], "-q", "--wyoming", f"tcp://127.0.0.1:{port}", held=True)
    for pid in s.process.pid, os.getpid():
        try:
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
        except PermissionError:
            print("others on this machine count, too", file=sys.stderr)
    os.kill(s.workers()[0], signal.SIGCONT)
    began = time.perf_counter()
    while not select.select([s.process.stdout], [], [], 0)[0]:
        asked = time.perf_counter()
        w = ask(port, "describe")
        w.until("info")
        w.close()
        times.append(1000 * (time.perf_counter() - asked))
        time.sleep(0.005)
    seconds = time.perf_counter() - began
    s.read_line()
    s.stop()
    times.sort()
    print(f"{len(times)} answers in {seconds:.1f} s: median {times[len(times) // 2]:.2f} ms, "
          f"99 of 100 within {times[len(times) * 99 // 100]:.1f}, longest {', '.join(f'{t:.1f}' for t in times[-3:])}")
    return times[-1] > (float(sys.argv[3]) if len(sys.argv) > 3 else 100)


if __name__ == "__main__":
    sys.exit(main())
