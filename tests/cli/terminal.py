"""terminal.py LINE COMMAND ...: runs a command that has a terminal for what it tells people. Prints whether it showed
such a line of progress, which has N for each number, whether no share was ever above 100 %, and whether it never had
an hour to go."""
import os
import pty
import re
import subprocess
import sys

ours, its = pty.openpty()
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stderr=its)
os.close(its)
shown = b""
while True:
    try:
        shown += os.read(ours, 1 << 16)
    except OSError:  # the last who had the terminal is gone
        break
lines = [line.strip() for line in re.split(r"[\r\n]+(?:\x1b\[K)?|\x1b\[K", shown.decode())]
told = [re.sub(r"[0-9]+(\.[0-9]+)?", "N", line) for line in lines]
most = max((float(share) for line in lines for share in re.findall(r"([0-9.]+) %", line)), default=0)
hours = max((int(left) for line in lines for left in re.findall(r"([0-9]+):[0-9]+:[0-9]+ left", line)), default=0)
print(sys.argv[1] in told, most <= 100, hours == 0)
sys.exit(process.wait())
