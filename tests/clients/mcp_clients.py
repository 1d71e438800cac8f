# The package of the Model Context Protocol starting utter mcp, by its handshake and without one.
import asyncio
import base64


def mcp_speaks(program):
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def talk(mode):
        async with Client(stdio_client(StdioServerParameters(command=str(program), args=["mcp"])), mode=mode) as c:
            assert {t.name for t in (await c.list_tools()).tools} == {"speak", "list_voices"}
            voices = await c.call_tool("list_voices", {})
            assert "voice clara" in [b.text for b in voices.content]
            for _ in range(2):
                r = await c.call_tool("speak", {"text": "Hello there.", "voice": "clara"})
                assert not r.is_error and len(base64.b64decode(r.content[1].data)) > 30000, r
                try:
                    await asyncio.wait_for(c.call_tool("speak", {"text": "The quick brown fox. " * 300}), 0.3)
                    raise AssertionError("a long text was whole at once")
                except TimeoutError:
                    pass
                assert (await c.call_tool("speak", {"text": "Hi.", "voice": "nobody"})).is_error
    for mode in ("legacy", "auto"):
        asyncio.run(asyncio.wait_for(talk(mode), 60))
