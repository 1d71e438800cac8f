# What floods a server: bytes that a client begins with, and those that it then sends over and over.
import json

STRANGER = "127.0.0.2"  # from where they come


def upgrade(head, path="/v1/audio/speech/stream"):
    """A request with these lines in its head that opens a WebSocket."""
    return (b"GET " + path.encode() + b" HTTP/1.1\r\n" + head + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")


def framed(data, first=0x81):
    """A frame of a client, with a mask that changes nothing."""
    n = len(data)
    size = bytes([0x80 | n]) if n < 126 else b"\xfe" + n.to_bytes(2, "big") if n < 65536 else \
        b"\xff" + n.to_bytes(8, "big")
    return bytes([first]) + size + b"\0\0\0\0" + data


NONSENSE = json.dumps({"type": "nonsense", "pad": "x" * 26000}).encode()


def kinds(head):
    """`malformed`: the length of its frames stands in eight bytes, which is forbidden where two do."""
    return {"pongs": (upgrade(head), framed(b"", 0x8a) * 10000),
            "fragments": (upgrade(head) + framed(b"x", 1), framed(b"x", 0) * 10000),
            "unknown": (upgrade(head), framed(NONSENSE)),
            "malformed": (upgrade(head), b"\x81\xff" + len(NONSENSE).to_bytes(8, "big") + b"\0\0\0\0" + NONSENSE),
            "bodies": (b"POST /v1/audio/voices HTTP/1.1\r\n" + head + b"Content-Length: 14000000\r\n\r\n",
                       b"x" * 65536),
            "idle": (b"", b"")}


def asked(head):
    """Requests that cost little, each said whole: what monitors ask, what programs ask, and speech that is refused."""
    paths, no_text = (b"/health", b"/openapi.json", b"/v1/models"), b'{"input": ""}'
    return [b"GET " + path + b" HTTP/1.1\r\n" + head + b"\r\n" for path in paths] + [
        b"POST /v1/audio/speech HTTP/1.1\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(no_text) + no_text]
