"""A local server of the OpenAI protocol with scripted replies and errors."""

import asyncio
import json
import threading


class FakeServer:
    """A minimal HTTP server; `script(number, body)` returns each response.

    A script returns (status, headers, body), where the body is bytes or JSON, or one of the words
    "hang", "close", "half", "drip".
    """

    def __init__(self, script, latency=0.0):
        self.script = script
        self.latency = latency
        self.reason = "X"
        self.requests = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def bodies(self):
        return [request["body"] for request in self.requests]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def _run(self):
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self):
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader, writer):
        try:
            while await self._request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _request(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.split("\r\n")
        headers = {k.lower(): v for k, v in (f.split(": ", 1) for f in fields if f)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        number = len(self.requests)
        self.requests.append({"path": line.split()[1], "headers": headers, "body": body})
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency)
            return await self._answer(self.script(number, body), writer)
        finally:
            self.in_flight -= 1

    async def _answer(self, planned, writer):
        if planned == "hang":
            await asyncio.sleep(30)
            return False
        if planned == "close":
            return False
        if planned == "drip":
            writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 5000\r\n\r\n")
            for _ in range(200):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
            return False
        status, headers, body = (200, {}, reply("half")) if planned == "half" else planned
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = data[: len(data) // 2] if planned == "half" else data
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        head = f"HTTP/1.1 {status} {self.reason}\r\ncontent-length: {len(data)}\r\n{lines}\r\n"
        writer.write(head.encode() + sent)
        await writer.drain()
        return planned != "half"


def reply(text, *, model="m-1", finish="stop", chat=False):
    """Return a response body of the protocol."""
    choice = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    return {
        "model": model,
        "choices": [{**choice, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
