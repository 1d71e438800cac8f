"""A small store that speaks S3 as its description has it: signatures of version 4 are checked, and so is the hash of
what is put. `faults` says what goes wrong with every n-th request: busy (503), slow, cut (half of what is asked for or
sent, then the connection ends), held (what is put waits until that is over, and is lost). It lists what it has, a page
at a time; what is `denied` is listed, and not given."""

import hashlib
import hmac
import http.server
import threading
import time
import urllib.parse
import xml.sax.saxutils

KEY, SECRET = "AKIDEXAMPLE", "a/secret+key"


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature_of(handler, payload):
    """The signature that the request must have, and the one that it has."""
    words = dict(word.strip().split("=", 1) for word in handler.headers["Authorization"].split(" ", 1)[1].split(","))
    who, day, region, service, last = words["Credential"].split("/")
    path, _, query = handler.path.partition("?")
    names = words["SignedHeaders"].split(";")
    lines = [f"{name}:{' '.join(handler.headers.get(name, '').split())}" for name in names]
    request = "\n".join([handler.command, path, query, *lines, "", ";".join(names), payload])
    scope = f"{day}/{region}/{service}/{last}"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], scope, hashed])
    key = ("AWS4" + SECRET).encode()
    for part in (day, region, service, last):
        key = sign(key, part)
    return who == KEY and "host" in names and sign(key, text).hex(), words["Signature"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:  # who asked was killed
            pass

    def answer(self, code, body=b"", length=None):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, code, reason):
        self.answer(code, f"<Error><Code>{reason}</Code></Error>".encode())

    def fault(self):
        store = self.server.store
        with store.lock:
            store.n_requests += 1
            due = store.every and store.n_requests % store.every == 0
        return store.kind if due else None

    def handle_any(self):
        store = self.server.store
        fault, length = self.fault(), int(self.headers.get("Content-Length") or 0)
        if fault == "cut" and self.command == "PUT":
            self.rfile.read(length // 2)
            self.close_connection = True
            return
        body = self.rfile.read(length)
        payload = self.headers.get("x-amz-content-sha256", "")
        wanted, has = signature_of(self, payload) if "Authorization" in self.headers else ("", None)
        bucket = self.path.split("/")[1]
        if fault == "slow":
            time.sleep(0.5)
        if fault == "held" and self.command == "PUT":
            store.n_held += 1
            while store.kind == "held":
                time.sleep(0.01)
            self.close_connection = True
            return
        if fault == "busy":
            self.refuse(503, "SlowDown")
        elif wanted != has:
            self.refuse(403, "SignatureDoesNotMatch")
        elif payload != hashlib.sha256(body).hexdigest():
            self.refuse(400, "XAmzContentSHA256Mismatch")
        elif self.path in store.denied:
            self.refuse(403, "AccessDenied")
        elif bucket != "bucket":
            self.refuse(404, "NoSuchBucket")
        elif "list-type=2" in self.path:
            self.list_objects(store, fault, self.path.partition("?")[2])
        else:
            self.serve(store, fault, body)

    def list_objects(self, store, fault, query):
        """ListObjectsV2: a token is odd enough that who forgets to escape it is found out."""
        asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        begin = asked.get("continuation-token", "")
        prefix = "/bucket/" + asked["prefix"]
        with store.lock:
            store.n_pages += 1
            names = {path for path in store.objects if path.startswith(prefix)}
            if asked.get("delimiter") == "/":  # what lies further down is told as its folder
                names = {prefix + "/".join(name[len(prefix):].split("/")[:1]) + "/" * ("/" in name[len(prefix):])
                         for name in names}
            names = sorted(names, key=store.order)[int(begin[3:-2]) if begin else 0:]
            told = [(name[len("/bucket/"):], len(store.objects.get(name, b"")),
                     hashlib.md5(store.objects.get(name, b"")).hexdigest()) for name in names[: store.page]]
            store.n_told += len(told)
        text = "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" if name.endswith("/") else
                       f"<Contents><Key>{xml.sax.saxutils.escape(name)}</Key><Size>{size}</Size>"
                       f"<ETag>&quot;{etag}&quot;</ETag></Contents>" for name, size, etag in told)
        is_more = len(names) > len(told)
        at = (int(begin[3:-2]) if begin else 0) + len(told)
        more = f"<NextContinuationToken>+/&amp;{at}==</NextContinuationToken>"
        more = more if is_more and fault != "forgets" else ""
        body = f"<ListBucketResult>{text}<IsTruncated>{str(is_more).lower()}</IsTruncated>{more}</ListBucketResult>"
        body = "<html>A page of something else.</html>" if fault == "other" else body
        if fault == "cut":
            self.answer(200, body[: len(body) // 2].encode(), len(body))
            self.close_connection = True
        else:
            self.answer(200, body.encode())

    def serve(self, store, fault, body):
        with store.lock:
            if self.command == "PUT":
                store.objects[self.path] = body
                store.puts.append(self.path)
            elif self.command == "DELETE":
                store.objects.pop(self.path, None)
            store.n_gets += self.command == "GET"
            found = store.objects.get(self.path)
        if self.command == "PUT":
            self.answer(200)
        elif self.command == "DELETE":
            self.answer(204)
        elif found is None:
            self.refuse(404, "NoSuchKey")
        elif self.command == "GET" and fault == "cut":
            self.answer(200, found[: len(found) // 2], len(found))
            self.close_connection = True
        else:
            self.answer(200, found)

    do_GET = do_HEAD = do_PUT = do_DELETE = handle_any


class Store:
    def __init__(self):
        self.objects, self.puts = {}, []
        self.order = None  # that names are listed in: a key of sorted
        self.page, self.n_pages, self.n_told, self.n_gets = 1000, 0, 0, 0
        self.lock = threading.Lock()
        self.n_requests, self.every, self.kind = 0, 0, None
        self.n_held, self.denied = 0, set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.store = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server.server_port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def goes_wrong(self, kind, every):
        with self.lock:
            self.kind, self.every = kind, every

    def close(self):
        self.server.shutdown()
        self.server.server_close()
