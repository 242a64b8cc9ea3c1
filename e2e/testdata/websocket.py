# A WebSocket server: sends back what it gets, and closes with a code of its own if told so.
import asyncio

import websockets


async def echo(ws, path=None):
    async for message in ws:
        if isinstance(message, str) and message.startswith("close "):
            await ws.close(int(message.removeprefix("close ")), "as you wish")
            return
        await ws.send(message)


async def main():
    async with websockets.serve(echo, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        print(f"listening on {host} port {port}")
        await asyncio.Future()


asyncio.run(main())
