# The page at "/" in Chromium without a window, driven by the keyboard through the DevTools protocol.
import asyncio
import json
import os
import subprocess
import tempfile
import urllib.request

import websockets


class Browser:
    def __init__(self, url):
        self.url, self.n, self.requests, self.faults = url, 0, [], []

    async def __aenter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--mute-audio",
             "--autoplay-policy=no-user-gesture-required", f"--user-data-dir={self.folder.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = os.path.join(self.folder.name, "DevToolsActivePort")
        for _ in range(300):
            if os.path.exists(port_file) and "\n" in open(port_file).read():
                break
            await asyncio.sleep(0.1)
        port = open(port_file).read().split()[0]
        for _ in range(100):
            targets = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
            pages = [p for p in targets if p["type"] == "page"]
            if pages:
                break
            await asyncio.sleep(0.1)
        self.socket = await websockets.connect(pages[0]["webSocketDebuggerUrl"], max_size=None)
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(domain + ".enable")
        await self.call("Page.navigate", url=self.url)
        return self

    async def __aexit__(self, *_):
        await self.socket.close()
        self.process.terminate()
        self.process.wait(10)
        self.folder.cleanup()

    async def call(self, method, **parameters):
        self.n += 1
        await self.socket.send(json.dumps({"id": self.n, "method": method, "params": parameters}))
        while True:
            m = json.loads(await self.socket.recv())
            if m.get("method") == "Network.requestWillBeSent":
                self.requests.append(m["params"]["request"]["url"])
            if m.get("method") == "Runtime.exceptionThrown" or (
                    m.get("method") == "Log.entryAdded" and m["params"]["entry"]["level"] == "error"):
                self.faults.append(m["params"])
            if m.get("id") == self.n:
                return m.get("result", m)

    async def value(self, expression):
        return (await self.call("Runtime.evaluate", expression=expression))["result"].get("value")

    async def wait(self, expression, seconds=40):
        for _ in range(seconds * 20):
            if await self.value(expression):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{expression} never came; the page says: {await self.value('$(`state`).textContent')}")

    async def key(self, key, code=0, control=False, text=None):
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                            modifiers=2 if control else 0, **({"text": text} if text and kind == "keyDown" else {}))

    async def tab_to(self, name):
        for _ in range(90):
            if await self.value("document.activeElement.id") == name:
                return
            await self.key("Tab", 9)
        raise AssertionError(f"the keyboard does not reach {name}")


def the_page_by_keyboard(s):
    async def use():
        async with Browser(f"http://127.0.0.1:{s.port}/") as b:
            await b.wait("typeof $ === 'function' && $('voice').options.length > 1")
            await b.tab_to("text")
            await b.key("a", 65, control=True)
            await b.call("Input.insertText", text="Hello there, how are you?")
            await b.key("Enter", 13, control=True)
            await b.wait("$('state').textContent === 'done'")
            shown = await b.value("$('timings').textContent")
            assert "first sound" in shown and "times real time" in shown, shown
            assert await b.value("$('kept').children.length") == 1
            assert await b.value("$('wave').getContext('2d').getImageData(0, 0, 1600, 160).data.some(x => x > 0)")
            for name in ("voice", "language", "seed", "speed", "speak", "compare"):
                await b.tab_to(name)
            await b.key("Enter", 13, text="\r")
            await b.wait("$('kept').children.length === 4 && $('state').textContent === 'done'")
            await b.value("$('text').value = 'The quick brown fox jumps over the lazy dog. '.repeat(40)")
            await b.tab_to("speak")
            await b.key("Enter", 13, text="\r")
            await b.wait("$('timings').textContent && $('stop').ariaDisabled === 'false'")
            await b.key("Escape", 27)
            await b.wait("$('state').textContent === 'stopped'")
            await b.value("$('text').value = 'x'; $('speed').value = '1'; $('seed').value = '3'")
            assert await b.value("[...document.querySelectorAll('input,select,textarea,button')].every("
                                 "e => e.textContent.trim() || e.labels && e.labels.length)")
            assert not b.faults, b.faults
            outside = [u for u in b.requests if not u.startswith((b.url, "blob:", "data:"))]
            assert not outside, outside
    asyncio.run(asyncio.wait_for(use(), 120))


TESTS = [the_page_by_keyboard]
