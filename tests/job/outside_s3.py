"""utter job with moto's server as its object store, which reckons signatures by botocore's code and not by ours.
Usage: outside_s3.py PROGRAM. Needs moto[server] of PyPI (`make outside-s3`
installs it). Ends with `N passed, N failed`."""

import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

import boto3

program = os.path.abspath(sys.argv[1])
ALLOWED = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
UNSIGNED = 4  # calls that the server takes without a key: those that make one
# moto 5.2.1 takes the slashes of a query out of their escapes before it reckons its signature, so that a list below
# "a/" is refused to boto3, too. It is given the query as it came.
SERVER = """
import flask
import sys
from moto.core.authorization import ActionAuthenticatorMixin as Mixin
from moto.server import main
before = Mixin._authenticate_and_authorize_action
def with_query(self, *arguments):
    kept = self.uri
    self.uri = kept.partition("?")[0] + "?" + flask.request.query_string.decode()
    before(self, *arguments)
    self.uri = kept
Mixin._authenticate_and_authorize_action = with_query
main(sys.argv[1:])
"""
counts = {"passed": 0, "failed": 0}


def check(what, good, *why):
    counts["passed" if good else "failed"] += 1
    if not good:
        print(f"FAIL job/{what}", *why)


def client(kind, address, key="none", secret="none"):
    return boto3.client(kind, endpoint_url=address, region_name="us-east-1", aws_access_key_id=key,
                        aws_secret_access_key=secret)


def start():
    """The server, and a key that it knows."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", SERVER, "-H", "127.0.0.1", "-p", str(port)],
                              env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(UNSIGNED)},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    for _ in range(200):
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    iam = client("iam", address)
    iam.create_user(UserName="worker")
    iam.put_user_policy(UserName="worker", PolicyName="store", PolicyDocument=json.dumps(ALLOWED))
    key = iam.create_access_key(UserName="worker")["AccessKey"]
    client("s3", address).create_bucket(Bucket="sounds")
    return server, address, key["AccessKeyId"], key["SecretAccessKey"]


def job(folder, address, key, secret, *arguments):
    environment = {**os.environ, "AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
                   "AWS_REGION": "us-east-1", "UTTER_DEVICE": "cpu", "XDG_CONFIG_HOME": folder,
                   "XDG_CACHE_HOME": folder}
    return subprocess.run([program, "job", *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def hashes(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".flac"):
            with open(os.path.join(folder, name), "rb") as f:
                found[name] = hashlib.sha256(f.read()).hexdigest()
    return found


def run(folder, address, key, secret):
    lines = [{"id": f"line {i} ä", "text": f"Number {i} of them."} for i in range(6)]
    with open(os.path.join(folder, "lines.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    whole = {}
    for results in ("results", "s3://sounds/books/a"):
        where = ["--queue", "q-" + hashlib.sha256(results.encode()).hexdigest()[:8], "--results", results]
        submit = job(folder, address, key, secret, "submit", "lines.jsonl", *where, "--json")
        check("outside: submitted", '"submitted":6' in submit.stdout.replace(" ", ""), submit)
        work = job(folder, address, key, secret, "work", *where, "--until-empty", "--json")
        check("outside: made", work.returncode == 0 and json.loads(work.stdout)["made"] == 6, work)
        again = job(folder, address, key, secret, "submit", "lines.jsonl", *where, "--json", "--quick")
        check("outside: nothing is left, by the list", json.loads(again.stdout or "{}").get("submitted") == 0, again)
        again = job(folder, address, key, secret, "submit", "lines.jsonl", *where, "--json")
        check("outside: nothing is left", json.loads(again.stdout or "{}").get("submitted") == 0, again)
        out = "out-" + where[1]
        collect = job(folder, address, key, secret, "collect", "lines.jsonl", "--results", results, "-o", out)
        check("outside: collected", collect.returncode == 0, collect)
        whole[results] = hashes(os.path.join(folder, out))
    check("outside: the same bytes", len(whole["results"]) == 6 and len(set(map(str, whole.values()))) == 1, whole)
    stored = client("s3", address, key, secret).list_objects_v2(Bucket="sounds")
    names = [x["Key"] for x in stored["Contents"]]
    check("outside: two objects a line", len(names) == 12 and all(n.startswith("books/a/") for n in names), names)
    shared = client("s3", address, key, secret)
    copy = os.path.join(folder, "utter", "voices", "sounds+v", "ann.voice")
    for data in (b"one", b"another", None):
        if data:
            shared.put_object(Bucket="sounds", Key="v/ann.voice", Body=data)
        else:
            shared.delete_object(Bucket="sounds", Key="v/ann.voice")
        listed = job(folder, address, key, secret, "status", "lines.jsonl", "--results", "results", "--voices",
                     "s3://sounds/v")
        found = None
        if os.path.exists(copy):
            with open(copy, "rb") as f:
                found = f.read()
        check("outside: voices are copied", found == data, found, listed)
    for wrong in ((key, "x" * 40), ("AKIA" + "X" * 16, secret)):
        refused = job(folder, address, *wrong, "submit", "lines.jsonl", "--queue", "q3", "--results", "s3://sounds/b")
        check("outside: a wrong key is told", refused.returncode != 0 and "403" in refused.stderr, refused)
    gone = job(folder, address, key, secret, "submit", "lines.jsonl", "--queue", "q4", "--results", "s3://nowhere/b")
    check("outside: no such bucket", gone.returncode != 0 and "nowhere" in gone.stderr, gone)


def main():
    server, *where = start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            run(folder, *where)
    finally:
        server.kill()
        server.wait()
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else 0


sys.exit(main())
