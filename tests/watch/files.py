# The files of examples/watch and examples/kubernetes against what the server and its queue say.
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

import yaml
from client import PATIENCE, free_port, wait_for
from picker import families

WORDS_OF_QUERIES = {"sum", "rate", "histogram_quantile", "and", "increase", "avg_over_time"}
# What each kind must have, by the interfaces of Kubernetes, of the inference extension and of KEDA.
NEEDED = {
    ("apps/v1", "Deployment"): ("selector.matchLabels", "template.metadata.labels", "template.spec.containers"),
    ("v1", "Service"): ("selector", "ports"),
    ("inference.networking.k8s.io/v1", "InferencePool"): (
        "selector.matchLabels", "targetPorts", "endpointPickerRef.name", "endpointPickerRef.port.number"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): ("parentRefs", "rules"),
    ("keda.sh/v1alpha1", "ScaledObject"): ("scaleTargetRef.name", "triggers"),
}


def examples(root, *place):
    return os.path.join(root, "examples", *place)


def names_in(query):
    """Metrics of an expression: words that are no function, no label and no time."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(by|on) \([^)]*\)", " ", query)
    return {w for w in re.findall(r"[a-zA-Z_:][\w:]*", bare) if w not in WORDS_OF_QUERIES}


def samples(server):
    """name -> the names of its labels."""
    found = {}
    for family in families(server).values():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def exists(query, there):
    for name in names_in(query):
        assert name in there, f"no metric {name}: {query}"
    for name, chosen in re.findall(r"([\w:]+)\{([^}]*)\}", query):
        for label in re.findall(r"(\w+)\s*=", chosen):
            assert label in there[name] | {"instance"}, f"{name} has no label {label}"
    return names_in(query)


def the_dashboard_is_what_its_tool_makes(s, root):
    """And with that shows every metric of ours, and none that is not there."""
    text = s.ask("GET", "/metrics")[2]
    tool = os.path.join(root, "tools/dashboard")
    made = subprocess.run([tool], input=text, stdout=subprocess.PIPE, check=True).stdout
    with open(examples(root, "watch/dashboard.json"), "rb") as f:
        assert f.read() == made, "run tools/dashboard again"
    there, shown = samples(s), set()
    for panel in json.loads(made)["panels"]:
        for target in panel.get("targets", []):
            shown |= exists(target["expr"], there)
    families_shown = {re.sub("_bucket$", "", name) for name in shown}
    ours = {re.sub("_(bucket|sum|count|created)$", "", name) for name in there if name.startswith("tts_")}
    assert families_shown == ours, families_shown ^ ours
    for wrong, what in ((text + b"# HELP tts_more x\n# TYPE tts_more gauge\ntts_more 1\n", "tts_more"),
                        (re.sub(rb"(?m)^.*tts_capacity.*\n", b"", text), "tts_capacity")):
        told = subprocess.run([tool], input=wrong, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False)
        assert told.returncode == 1 and what.encode() in told.stderr, told.stderr


def alerts_ask_for_what_is_there(s, root):
    with open(examples(root, "watch/alerts.yaml")) as f:
        rules = [rule for group in yaml.safe_load(f)["groups"] for rule in group["rules"]]
    there, names = samples(s), [rule["alert"] for rule in rules]
    assert len(names) == len(set(names)) > 5
    for rule in rules:
        assert exists(rule["expr"], there) and rule["labels"]["severity"] and rule["annotations"]["summary"], rule


def alerts_speak_when_they_should(root):
    """With Prometheus' own tool."""
    for command in (["check", "rules", examples(root, "watch/alerts.yaml")],
                    ["test", "rules", os.path.join(root, "tests/watch/alerts_tested.yaml")]):
        told = subprocess.run(["promtool", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert told.returncode == 0, told.stdout


def manifests(root):
    for name in sorted(os.listdir(examples(root, "kubernetes"))):
        with open(examples(root, "kubernetes", name)) as f:
            yield from yaml.safe_load_all(f)


def find(what, path):
    for word in path.split("."):
        what = what[word]
    return what


def options_of(program, *command):
    said = subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", said))


def manifests_fit_together(s, root, program):
    all_of = list(manifests(root))
    pods = {m["metadata"]["name"]: m["spec"]["template"] for m in all_of if m["kind"] == "Deployment"}
    labels = [pod["metadata"]["labels"] for pod in pods.values()]
    there = samples(s)
    with open(os.path.join(root, "tests/watch/alerts_tested.yaml")) as f:
        tested = [x["expr"] for x in yaml.safe_load(f)["tests"][0]["promql_expr_test"]]
    for m in all_of:
        spec = m["spec"]
        for path in NEEDED[m["apiVersion"], m["kind"]]:
            assert find(spec, path), (m["kind"], path)
        chosen = spec.get("selector", {})
        assert not chosen or chosen.get("matchLabels", chosen) in labels, m["metadata"]
        if m["kind"] == "ScaledObject":
            assert spec["scaleTargetRef"]["name"] in pods
            for trigger in spec["triggers"]:
                query = trigger["metadata"].get("query")
                assert trigger["type"] != "prometheus" or exists(query, there) and query in tested, query
                assert all(isinstance(value, str) for value in trigger["metadata"].values()), "KEDA takes texts only"
    for pod in pods.values():
        container = pod["spec"]["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if probe in container:
                asked = container[probe]["httpGet"]
                assert s.ask("GET", asked["path"])[0] == 200 and asked["port"] in ports
        command = container.get("command", ["utter", "serve"])[1:]
        given = [word for word in container["args"] if re.match("--?[a-z]", word)]
        assert given and set(given) <= options_of(program, *command), given
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    drain = pods["utter"]["spec"]
    args = drain["containers"][0]["args"]
    pause = int(drain["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert drain["terminationGracePeriodSeconds"] > int(args[args.index("--drain") + 1]) + pause


def the_queue_is_seen_as_it_is_scaled_by(root, program):
    """KEDA asks the broker's monitoring how much waits for the consumer that the manifest names."""
    trigger = next(t["metadata"] for m in manifests(root) if m["kind"] == "ScaledObject"
                   for t in m["spec"]["triggers"] if t["type"] == "nats-jetstream")
    port, monitor = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        broker = subprocess.Popen([server_of_nats(), "-a", "127.0.0.1", "-p", str(port), "-m", str(monitor),
                                   "--jetstream", "-sd", folder, "-l", os.path.join(folder, "log")])
        try:
            ask = f"http://127.0.0.1:{monitor}/jsz?acc={trigger['account']}&consumers=true&config=true"

            def waits():
                with urllib.request.urlopen(ask, timeout=5 * PATIENCE) as answer:
                    account = json.load(answer)["account_details"][0]
                stream = next(x for x in account["stream_detail"] if x["name"] == trigger["stream"])
                for consumer in stream.get("consumer_detail", []):
                    if consumer["name"] == trigger["consumer"]:
                        return consumer["num_pending"] + consumer["num_ack_pending"]
                return stream["state"]["last_seq"]  # all that have ever been, as the scaler has it
            assert wait_for(lambda: answers(ask))
            both = ["--queue", f"nats://127.0.0.1:{port}/{trigger['stream']}", "--results", os.path.join(folder, "out")]
            submit, work = ["submit", os.path.join(folder, "lines.jsonl")], ["work", "--until-empty"]
            for words, text, left in (submit, "Number", 5), (work, "", 0), (submit, "Other", 5), (submit, "Other", 5):
                if text:
                    with open(words[1], "w") as f:
                        f.writelines(json.dumps({"id": str(i), "text": f"{text} {i}."}) + "\n" for i in range(5))
                subprocess.run([program, "job", *words, *both, "-q"], check=True, stdout=subprocess.DEVNULL)
                assert waits() == left, (words, waits())
        finally:
            broker.kill()
            broker.wait()


def server_of_nats():
    return shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        time.sleep(0.05)
        return False
