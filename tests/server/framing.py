"""Where one request ends and the next begins: what could be read in two ways is refused, and nothing is ever cut
elsewhere than h11 cuts it. A proxy in front that sees other boundaries than the server lets one client's bytes become
another's request.
Usage: framing.py FRAMING                      more than 400 ambiguous requests: each must be refused
       framing.py FRAMING --streams N [SEED]   N mutated streams, beside h11 (`pip install h11`)
FRAMING is the program of tests/server/framing.c. Ends with `N passed,
N failed`. tests/server/run sends the ambiguous ones
to a server."""
import random
import struct
import subprocess
import sys

CONTROLS = [bytes([c]) for c in range(32) if c not in b"\t\r\n"] + [b"\x7f"]
START = b"POST /v1/audio/speech HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODY = b"3\r\nabc\r\n0\r\n\r\n"


def cut(program, streams):
    """For each stream what the program says: [(method, bytes of the body, end)], and how it ended."""
    sent = b"".join(struct.pack("<I", len(s)) + s for s in streams)
    said = subprocess.run([program], input=sent, capture_output=True, check=True).stdout.decode("latin-1").splitlines()
    assert len(said) == len(streams), (len(said), len(streams))
    for line in said:
        words = line.split(" ")
        yield list(zip(words[0:-1:3], map(int, words[1:-1:3]), map(int, words[2:-1:3]))), words[-1]


def request_lines():
    for line in (b"POST  / HTTP/1.1", b"POST /  HTTP/1.1", b"POST\t/ HTTP/1.1", b"POST /\tHTTP/1.1",
                 b" POST / HTTP/1.1",
                 b"POST / HTTP/1.1 ", b"POST / http/1.1", b"POST / HTTP/1,1", b"POST / HTTP/01.1", b"POST / HTTP/1.10",
                 b"POST / HTTP/+1.1", b"POST / HTTP/1.1.1", b"POST / HTTP /1.1", b"POST / HTTP/", b"POST /", b"POST",
                 b"POST / HTTP/1", b"POST / XTTP/1.1", b"POST HTTP/1.1", b"/ HTTP/1.1", b"POST / / HTTP/1.1",
                 b"POST / HTTP/1.1\r", b"POST\r/ HTTP/1.1", b"POST /\r HTTP/1.1", b"POST / HTTP/0.9",
                 b"POST / HTTP/2.0",
                 b"P\xd6ST / HTTP/1.1"):
        yield line + b"\r\n" + HOST + CHUNKED + b"\r\n" + BODY
    for c in CONTROLS:
        yield b"POST /a" + c + b"b HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n" + BODY
        yield b"PO" + c + b"ST / HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n" + BODY
    for c in b'()<>@,;:\\"/[]?={}':
        yield b"PO" + bytes([c]) + b"ST / HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n" + BODY


def field_lines():
    """Two fields say where the body ends; every way to write them that two readers could take apart differently."""
    length, coding = b"Content-Length", b"Transfer-Encoding"
    for name, value in ((length, b"3"), (coding, b"chunked")):
        for c in CONTROLS + [b" ", b"\t", b"\r", b"(", b")", b"<", b">", b"@", b",", b";", b"\\", b'"', b"/", b"[",
                             b"]", b"?",
                             b"=", b"{", b"}", b"\x80", b"\xff"]:
            yield name + c + b": " + value
            if c not in b" \t":
                yield c + name + b": " + value
        for c in CONTROLS + [b"\r"]:
            yield name + b": " + c + value
            yield name + b": " + value + c
            yield name + b":" + value[:1] + c + value[1:]
        yield name + b" : " + value
        yield name + b" " + value
        yield name
        yield b": " + value
        yield b" " + name + b": " + value  # folded into the line before
        yield name + b":\r\n " + value
        yield name + b": " + value + b"\r\n\t"
        yield name + b": " + value + b"\nX: y"
        yield name + b": " + value + b"\rX: y"
        yield b"X: y\n" + name + b": " + value
        yield b"X: y\r" + name + b": " + value
    for value in (b"+3", b"-3", b"0x3", b"3 3", b"3;", b"3.", b"3.0", b"1e1", b"3,", b",3", b"3, 3", b"3,4", b"",
                  b" ", b"three",
                  b"\xb3", b"3\xa0", b"18446744073709551619", b"99999999999999999999999", b"3 \t 4", b"'3'", b'"3"'):
        yield length + b": " + value
    for value in (b"chunked, chunked", b"identity", b"chunked, identity", b"identity, chunked", b"gzip",
                  b"gzip, chunked",
                  b"chunked, gzip", b"xchunked", b"chunkedx", b"chunked;a=b", b'"chunked"', b"'chunked'",
                  b"chunked,\x0bchunked",
                  b"chunk", b"chunked chunked", b"", b"\xe3\x83\xbb"):
        yield coding + b": " + value
    for one in (b"3", b"4", b"03", b"0"):
        for other in (b"3", b"4"):
            yield length + b": " + one + b"\r\n" + length + b": " + other
            yield length + b": " + one + b"\r\nX: y\r\n" + length.lower() + b": " + other
    for one, other in ((b"chunked", b"chunked"), (b"chunked", b"identity"), (b"gzip", b"chunked"), (b"", b"chunked")):
        yield coding + b": " + one + b"\r\n" + coding + b": " + other
        yield coding + b": " + other + b"\r\n" + coding.upper() + b": " + one
    for a, b in ((length + b": 3", coding + b": chunked"), (length + b": 0", coding + b": chunked"),
                 (length + b": 3", coding + b": identity"), (length.lower() + b": 3", coding.lower() + b": Chunked")):
        yield a + b"\r\n" + b
        yield b + b"\r\n" + a
        yield a + b"\r\nX: y\r\n" + b


def hosts():
    for fields in (b"", HOST + HOST, HOST + b"Host: other\r\n", b"Host: a, b\r\n", b"Host: a b\r\n", b"Host : a\r\n",
                   b" Host: a\r\n", b"Host: a\r\n b\r\n", b"host: a\r\nHOST: b\r\n"):
        yield START + fields + CHUNKED + b"\r\n" + BODY
    for c in CONTROLS:
        yield START + b"Host: a" + c + b"b\r\n" + CHUNKED + b"\r\n" + BODY


def chunks():
    for body in (b"0x3\r\nabc\r\n", b"+3\r\nabc\r\n", b"-3\r\nabc\r\n", b" 3\r\nabc\r\n", b"3 \r\nabc\r\n",
                 b"3\t\r\nabc\r\n", b"\r\n",
                 b";\r\n", b"g\r\n", b"3g\r\nabc\r\n", b"3,\r\nabc\r\n", b"00000000000000000003\r\nabc\r\n",
                 b"10000000000000003\r\nabc\r\n", b"ffffffffffffffffff\r\n", b"3\nabc\n", b"3\r\nabc\n",
                 b"3\r\nabc\r", b"3\r\nabcd\r\n",
                 b"3\r\nab\r\n", b"3\r\nabcxx", b"3\rabc\r\n", b"3\r\r\nabc\r\n", b"3 ;a\r\nabc\r\n",
                 b"3\t;a=b\r\nabc\r\n", b"3 a=b\r\nabc\r\n", b"3;a\x00\r\nabc\r\n",
                 b"3;a\nb\r\nabc\r\n", b"3;a\rb\r\nabc\r\n", b"\xb3\r\nabc\r\n", b"3\xa0\r\nabc\r\n",
                 b"3\x0b\r\nabc\r\n", b"'3'\r\nabc\r\n"):
        yield body + b"0\r\n\r\n"
    for end in (b"0\r\nX\r\n\r\n", b"0\r\n X: y\r\n\r\n", b"0\r\nX : y\r\n\r\n", b"0\r\nX: a\x00b\r\n\r\n",
                b"0\r\nX: y\n\r\n", b"0\nX: y\r\n\r\n",
                b"0\r\n: y\r\n\r\n", b"0\r\nGET / HTTP/1.1\r\n\r\n", b"0\r\nTransfer-Encoding: chunked\r\n\r\n",
                b"0\r\nX: y\r\ncontent-length: 3\r\n\r\n", b"0\r\nHost: b\r\n\r\n", b"0\n\n", b"0\r\nX: a\rb\r\n\r\n",
                b"0 \r\n\r\n", b"0\r\n\rX"):
        yield b"3\r\nabc\r\n" + end
    for c in CONTROLS:
        yield b"3;a=" + c + b"\r\nabc\r\n0\r\n\r\n"


def ambiguous():
    yield from request_lines()
    for lines in field_lines():
        yield START + HOST + lines + b"\r\n\r\n" + BODY
    yield from hosts()
    for body in chunks():
        yield START + HOST + CHUNKED + b"\r\n" + body
    yield START.replace(b"1.1", b"1.0") + HOST + CHUNKED + b"\r\n" + BODY
    yield START + HOST + CHUNKED.replace(b"\r\n", b"\n") + b"\n" + BODY
    yield START.replace(b"\r\n", b"\n") + HOST + CHUNKED + b"\r\n" + BODY


def refuses_what_is_ambiguous(program):
    cases = list(dict.fromkeys(ambiguous()))
    failed = 0
    for stream, (requests, end) in zip(cases, cut(program, cases)):
        if requests or end != "bad":
            failed += 1
            print(f"FAIL server/framing: {stream!r}: taken as {requests}, {end}")
    print(f"{len(cases)} ambiguous requests")
    return len(cases) - failed, failed


# ---- Beside h11 ----

PIECES = [b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b",", b";", b"0", b"1", b"3", b"a", b"F", b"\x00", b"\x0b",
          b"\xff", b"chunked",
          b"identity", b"close", b"keep-alive", b"Content-Length: 3\r\n", b"Content-Length: 5\r\n", CHUNKED, HOST,
          b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Expect: 100-continue\r\n", b"HTTP/1.0",
          b"HTTP/1.1",
          b"GET / HTTP/1.1\r\n", b"0\r\n\r\n", b"3\r\nabc\r\n", b"\r\n\r\n", b"X: y\r\n"]


def some_request(draw):
    kind = draw.randrange(5)
    head = draw.choice([b"GET / HTTP/1.1\r\n", b"POST /v1/audio/speech HTTP/1.1\r\n", b"DELETE /a?b=c HTTP/1.1\r\n",
                        b"GET / HTTP/1.0\r\n", b"HEAD /x HTTP/1.1\r\n"])
    head += HOST + draw.choice([b"", b"X: y\r\n", b"Connection: close\r\n", b"Connection: keep-alive\r\n",
                                b"Accept: */*\r\n"])
    if kind == 0:
        return head + b"\r\n"
    body = bytes(draw.choice(b"abc\r\n0: ") for _ in range(draw.randrange(20)))
    if kind <= 2:
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    parts = b""
    while body:
        n = draw.randrange(1, len(body) + 1)
        parts += b"%x%s\r\n" % (n, draw.choice([b"", b"", b";a=b"])) + body[:n] + b"\r\n"
        body = body[n:]
    return head + CHUNKED + b"\r\n" + parts + b"0\r\n" + draw.choice([b"", b"", b"X: y\r\n"]) + b"\r\n"


def some_stream(draw):
    stream = b"".join(some_request(draw) for _ in range(draw.randrange(1, 4)))
    for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 3, 5])):
        at = draw.randrange(len(stream) + 1)
        how = draw.randrange(5)
        if how == 0:
            stream = stream[:at] + stream[at + draw.choice([1, 1, 2, 4]):]
        elif how <= 2:
            stream = stream[:at] + draw.choice(PIECES) + stream[at:]
        elif how == 3:
            stream = stream[:at] + bytes([draw.randrange(256)]) + stream[at + 1:]
        else:  # from another place
            begin = draw.randrange(len(stream) + 1)
            stream = stream[:at] + stream[begin:begin + draw.randrange(1, 40)] + stream[at:]
    return stream


def h11_cut(h11, stream):
    """What h11 makes of it, as a server that answers each request with nothing."""
    c = h11.Connection(h11.SERVER)
    requests, method, body = [], "", 0
    try:
        c.receive_data(stream)
        while True:
            event = c.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return requests
            if isinstance(event, h11.Request):
                method, body = event.method.decode(), 0
            elif isinstance(event, h11.Data):
                body += len(event.data)
            elif isinstance(event, h11.EndOfMessage):
                requests.append((method, body, len(stream) - len(c.trailing_data[0])))
                c.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                c.send(h11.EndOfMessage())
                if c.our_state is not h11.DONE or c.their_state is not h11.DONE:
                    return requests
                c.start_next_cycle()
            else:
                return requests
    except h11.RemoteProtocolError:
        return requests


def is_cut_as_by_h11(program, n, seed):
    import h11
    draw = random.Random(seed)
    n_requests = failed = 0
    for first in range(0, n, 20000):
        streams = [some_stream(draw) for _ in range(min(20000, n - first))]
        for stream, (requests, _) in zip(streams, cut(program, streams)):
            theirs = h11_cut(h11, stream)
            n_requests += len(requests)
            if requests != theirs[:len(requests)]:
                failed += 1
                if failed <= 20:
                    print(f"FAIL server/framing: {stream!r}: {requests}, h11 {theirs}")
    print(f"{n} streams of seed {seed}, {n_requests} requests were taken")
    return n - failed, failed


def main():
    if len(sys.argv) > 3 and sys.argv[2] == "--streams":
        seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
        passed, failed = is_cut_as_by_h11(sys.argv[1], int(sys.argv[3]), seed)
    else:
        passed, failed = refuses_what_is_ambiguous(sys.argv[1])
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
