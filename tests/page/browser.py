# Chromium without a window, driven through the DevTools protocol.
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from client import Socket  # noqa: E402


class Port:
    def __init__(self, port):
        self.port = port


class Browser:
    def __init__(self, *options):
        self.n, self.requests, self.faults = 0, [], []
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
             "--remote-allow-origins=*", "--mute-audio", "--autoplay-policy=user-gesture-required", *options,
             f"--user-data-dir={self.folder.name}/profile", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = os.path.join(self.folder.name, "profile", "DevToolsActivePort")
        port = self.until(lambda: os.path.exists(port_file) and open(port_file).read().split("\n")[0])
        page = self.until(lambda: [p for p in json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
                                   if p["type"] == "page"])[0]
        self.socket = Socket(Port(int(port)), "/" + page["webSocketDebuggerUrl"].split("/", 3)[3])
        for domain in ("Page", "Runtime", "Network", "Log", "DOM", "Accessibility"):
            self.call(domain + ".enable")
        self.downloads = os.path.join(self.folder.name, "downloads")
        os.mkdir(self.downloads)
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.downloads)

    @staticmethod
    def until(what, seconds=30):
        end = time.time() + seconds
        while time.time() < end:
            got = what()
            if got:
                return got
            time.sleep(0.05)
        raise AssertionError("the browser does not start")

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(10)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, **parameters):
        self.n += 1
        self.socket.send({"id": self.n, "method": method, "params": parameters})
        while True:
            m = self.socket.receive()
            if m.get("method") == "Network.requestWillBeSent":
                self.requests.append(m["params"]["request"]["url"])
            if m.get("method") == "Runtime.exceptionThrown" or (
                    m.get("method") == "Log.entryAdded" and m["params"]["entry"]["level"] == "error"):
                self.faults.append(m["params"])
            if m.get("id") == self.n:
                return m.get("result", m)

    def value(self, expression, gesture=False):
        said = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True,
                         userGesture=gesture)
        assert "exceptionDetails" not in said, (expression, said["exceptionDetails"])
        return said["result"].get("value")

    def wait(self, expression, seconds=40):
        for _ in range(seconds * 20):
            if self.value(expression):
                return
            time.sleep(0.05)
        raise AssertionError(f"{expression} never came; the page says: {self.state()}")

    def measured(self, what):
        """By a function of measure.js."""
        text = (pathlib.Path(__file__).parent / "measure.js").read_text()
        return self.value(f"(() => {{ {text}\nreturn {what}(); }})()")

    def state(self):
        return self.value("document.getElementById('state')?.textContent")

    def screen(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setTouchEmulationEnabled", enabled=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def go(self, url):
        # How far things move by themselves is counted from the first drawing on.
        self.call("Page.addScriptToEvaluateOnNewDocument", source="""
            globalThis.moved = 0;
            globalThis.now = () => [...(CSS.highlights.get('now') || [])].join();
            new PerformanceObserver(list => {
                for (const e of list.getEntries()) if (!e.hadRecentInput) moved += e.value;
            }).observe({ type: "layout-shift", buffered: true });""")
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && !document.body.classList.contains('waits')")

    def reload(self):
        self.call("Page.reload")
        time.sleep(0.3)
        self.wait("document.readyState === 'complete' && !document.body.classList.contains('waits')")

    def picture(self, path):
        height = self.value("Math.ceil(document.documentElement.scrollHeight)")
        width = self.value("innerWidth")
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))

    def key(self, key, code=0, control=False, shift=False, text=None):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                      modifiers=(2 if control else 0) | (8 if shift else 0),
                      **({"text": text} if text and kind == "keyDown" else {}))

    def enter(self):
        self.key("Enter", 13, text="\r")

    def tab_to(self, name):
        for _ in range(90):
            if self.value("document.activeElement.id") == name:
                return
            self.key("Tab", 9)
        raise AssertionError(f"the keyboard does not reach {name}")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
