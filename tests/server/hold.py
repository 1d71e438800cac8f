# Clients that are silent or slow: hold.py PORT N [BACK] keeps N connections until a line comes in, then prints what
# happened. By turns they send nothing; a head, byte by byte; a body, byte by byte; nothing after the head of a
# WebSocket. Who is shut out comes back within BACK seconds (5).
import heapq
import json
import os
import random
import select
import socket
import sys
import time

port, n = int(sys.argv[1]), int(sys.argv[2])
back_s = float(sys.argv[3]) if len(sys.argv) > 3 else 5
HEAD = b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\n"
SOCKET = (b"GET /v1/audio/speech/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
SAYS = ((b"", b""), (HEAD, b"X-Slow: and slower\r\n" * 20), (HEAD + b"Content-Length: 1000\r\n\r\n", b" " * 999),
        (SOCKET, b""))
poll = select.epoll()
clients, due, random_at = {}, [], random.Random(1)
shut, sent, most = 0, 0, 0


def connect(kind):
    c = socket.create_connection(("127.0.0.1", port))
    c.setblocking(False)
    c.sendall(SAYS[kind][0])
    clients[c.fileno()] = [c, kind, 0]
    poll.register(c, select.EPOLLIN | select.EPOLLRDHUP)
    if SAYS[kind][1]:
        heapq.heappush(due, (time.time() + 2 * random_at.random(), c.fileno(), kind, id(c)))


def leave(fd):
    global shut
    c, kind, _ = clients.pop(fd)
    poll.unregister(fd)
    c.close()
    shut += 1
    heapq.heappush(due, (time.time() + back_s * random_at.random(), -1, kind, 0))


def act(fd, kind, who):
    """The next byte of a slow client, or one that comes back."""
    global sent
    if fd < 0:
        connect(kind)
    elif fd in clients and id(clients[fd][0]) == who:
        c, _, at = clients[fd]
        try:
            c.send(SAYS[kind][1][at:at + 1])
        except OSError:
            leave(fd)
            return
        sent += 1
        clients[fd][2] += 1
        heapq.heappush(due, (time.time() + 1, fd, kind, who))


for i in range(n):
    connect(i % 4)
print("holding", flush=True)
poll.register(0, select.EPOLLIN)
go_on = True
while go_on:
    wait = max(0, due[0][0] - time.time()) if due else 1
    for fd, event in poll.poll(wait):
        if fd == 0:
            go_on = False
        elif fd in clients:
            try:
                closed = clients[fd][0].recv(4096) == b""
            except OSError:
                closed = True
            if closed:
                leave(fd)
    while due and due[0][0] <= time.time():
        act(*heapq.heappop(due)[1:])
    most = max(most, len(clients))
times = os.times()
print(json.dumps({"most": most, "shut_out": shut, "bytes": sent, "its_processor_s": times.user + times.system}))
