"""The rows of docs/speed.md for two cores, several rounds of all of them in one go, each with the bandwidth it had.

    python3 rows.py --program build/release/utter --serial build/release/tools/bench/serial --cores 14,15 \\
        --rounds 3 --small CHECKPOINT --large CHECKPOINT [--only q8,q4] [--out FILE]

First what the machine is: whether the two cores are one core's two threads (a loop on both takes longer than on one),
what a read loop gets on 1, 2, 4, 8 and 16 cores. Then rounds of rows: `utter bench` measures what a read loop gets on
the cores just before each of them. Beside it stand the time that other guests took of the cores (steal), and
how busy this machine's other cores were. Prints a line a row and round as it ends, and a table: of each row the round
with the least real time factor, the median, and all of them. --quick leaves out what has been met by far.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

# Name, model, options of `utter bench`, its goal (field, at most), only in the first round.
ROWS = [
    ("q4, 53 words", "small", "--weights q4 --words 53", ("rtf", 0.75), False),
    ("q4, 13 words", "small", "--weights q4 --words 13", ("rtf", 0.75), False),
    ("q8, 13 words", "small", "--weights q8 --words 13", ("rtf", 1.05), False),
    ("bf16, 13 words", "small", "--weights bf16 --words 13 --max-frames 65", ("rtf", 1.9), False),
    ("1.7B q4, 13 words", "large", "--weights q4 --words 13 --max-frames 40", ("rtf", 1.3), False),
    ("q8, avx512vnni", "small", "--weights q8 --words 13 --max-frames 40 --kernels avx512vnni", None, True),
    ("q8, avx2", "small", "--weights q8 --words 13 --max-frames 40 --kernels avx2", None, True),
    ("q8, 4 lanes", "small", "--weights q8 --words 13 --max-frames 40 --lanes 4", None, True),
]
LOOP = "import time\nn=0\ne=time.monotonic()+0.25\nwhile time.monotonic()<e: n+=1\nprint(n)"


def jiffies():
    """Per core: (busy, steal, all) since the start."""
    cores = {}
    for line in open("/proc/stat"):
        word = line.split()
        if word[0].startswith("cpu") and word[0] != "cpu":
            n = [int(x) for x in word[1:9]]
            cores[int(word[0][3:])] = (sum(n) - n[3] - n[4] - n[7], n[7], sum(n))
    return cores


def shares(before, after, cores):
    """Steal on our cores in percent, and how many other cores were busy on average."""
    part = {c: [b - a for a, b in zip(before[c], after[c])] for c in after}
    total = sum(part[c][2] for c in cores) or 1
    busy = sum(p[0] / (p[2] or 1) for c, p in part.items() if c not in cores)
    return 100 * sum(part[c][1] for c in cores) / total, busy


def pinned(cores, command):
    return ["taskset", "-c", ",".join(map(str, cores))] + command


def loops(cores):
    """What each of some cores counts while all of them do."""
    runs = [subprocess.Popen(pinned([c], ["python3", "-c", LOOP]), stdout=subprocess.PIPE) for c in cores]
    return [int(r.communicate()[0]) for r in runs]


def siblings(cores):
    alone = max(loops(cores[:1])[0] for _ in range(3))
    both = max(loops(cores[:2])[0] for _ in range(3))
    return both / alone


def bandwidth(args, cores):
    command = [args.program, "bench", "--words", "1", "--max-frames", "1", "--runs", "1", "--json", "-q",
               "--device", "cpu", "--threads", str(len(cores))]
    if args.small:
        command += ["-m", args.small]
    done = subprocess.run(pinned(cores, command), capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[0])["limit_gb_per_s"] if done.returncode == 0 else 0


def one_row(args, row, cores):
    name, model, options, goal, _ = row
    folder = args.small if model == "small" else args.large
    command = [args.program, "bench", "-m", folder, "--device", "cpu", "--runs", "1", "--json", "-q",
               "--threads", str(len(cores))] + options.split()
    before = jiffies()
    done = subprocess.run(pinned(cores, command), capture_output=True, text=True)
    steal, busy = shares(before, jiffies(), cores)
    if done.returncode:
        print(f"{name}: {done.stderr.strip()[-200:]}", flush=True)
        return None
    figures = json.loads(done.stdout.splitlines()[0])
    kept = {"row": name, "rtf": figures["rtf"], "first": figures["ttfc_ms"]["median"], "frames": figures["frames"],
            "frame": figures["frame_ms"]["median"], "talker": figures["talker_ms"],
            "predictor": figures["predictor_ms"], "vocoder": figures["vocoder_ms"], "prefill": figures["prefill_ms"],
            "peak": figures["peak_mb"], "read": figures["limit_gb_per_s"], "steal": steal, "busy": busy,
            "bound": figures["bound_ms"]}
    print(f"{name:20} RTF {kept['rtf']:.3f}  first {kept['first']:6.1f}  talker {kept['talker']:5.1f}"
          f" ({kept['bound']['talker']:.1f})  predictor {kept['predictor']:5.1f} ({kept['bound']['predictor']:.1f})"
          f"  vocoder {kept['vocoder']:5.1f} ({kept['bound']['vocoder']:.1f})  prefill {kept['prefill']:6.1f}"
          f"  peak {kept['peak']:.0f}  read {kept['read']:.1f} GB/s  steal {steal:.1f}%  others {busy:.1f}", flush=True)
    return kept


def print_table(results):
    print("| Row | Goal | Best: RTF, first sound, talker, predictor, vocoder, peak, read loop | Median RTF | All RTF |")
    print("|---|---|---|---|---|")
    for name, _, _, goal, _ in ROWS:
        found = sorted((r for r in results if r["row"] == name), key=lambda r: r["rtf"])
        if found:
            b = found[0]
            print(f"| {name} | {goal[1] if goal else ''} | {b['rtf']:.3f}, {b['first']:.0f} ms, {b['talker']:.1f}, "
                  f"{b['predictor']:.1f}, {b['vocoder']:.1f}, {b['peak']:.0f} MB, {b['read']:.1f} GB/s | "
                  f"{statistics.median(r['rtf'] for r in found):.3f} | "
                  f"{', '.join('%.2f (%.1f)' % (r['rtf'], r['read']) for r in found)} |")


def machine(args, cores):
    name = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; cores {cores}")
    for c in cores:
        path = f"/sys/devices/system/cpu/cpu{c}/topology/thread_siblings_list"
        print(f"core {c}: threads {open(path).read().strip() if os.path.exists(path) else '?'}")
    if len(cores) > 1:
        print(f"a loop on both at once counts {siblings(cores):.2f} of what it counts alone (0.5 to 0.7: one core)")
    last = max(jiffies())
    for n in (1, 2, 4, 8, 16):
        if n <= os.cpu_count() and not args.quick:
            some = cores[:n] if n <= len(cores) else list(range(last - n + 1, last + 1))
            print(f"read loop, {n} cores: {bandwidth(args, some):.1f} GB/s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--serial")
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small")
    parser.add_argument("--large")
    parser.add_argument("--only", help="rows whose names contain one of these")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out")
    args = parser.parse_args()
    cores = [int(c) for c in args.cores.split(",")]
    machine(args, cores)
    results = []
    for i in range(args.rounds):
        print(f"round {i + 1}, {time.strftime('%H:%M:%S')}", flush=True)
        for row in ROWS:
            wanted = not args.only or any(word in row[0] for word in args.only.split(","))
            there = args.small if row[1] == "small" else args.large
            if wanted and there and not (row[4] and (i > 0 or args.quick)):
                results.append(one_row(args, row, cores))
        for weights, each in (("q8", "1"), ("q8", "4"), ("bf16", "1"), ("bf16", "4")) if args.serial else ():
            command = [args.serial, "-w", weights, "-v", each, "-n", "16", args.small, str(len(cores))]
            done = subprocess.run(pinned(cores, command), capture_output=True, text=True)
            lines = "\n".join(done.stdout.splitlines()[1:])
            print(f"vocoder beside {weights}, {each} frames a call:\n{lines}", flush=True)
        if args.out:
            json.dump(results, open(args.out, "w"))
    print_table([r for r in results if r])


if __name__ == "__main__":
    main()
