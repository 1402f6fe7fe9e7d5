"""Querying a server: requests in flight or one by one, and a run that is killed and resumed.

Run `python benchmarks/bench_server.py`; prints a Markdown table. A local server in a separate
process takes 50 ms per request. The first budget is at least 20 times the throughput at concurrency
32. The second one is that no prompt with a stored answer is sent again, in a run of 3,000 short and
3,000 long generations with their judge requests that is killed several times. Exits with an error
if a budget is missed.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections import Counter
from pathlib import Path

from bench_slaq import made_up_topics

from surface_consistency.data.slaq_rows import write_slaq_csv
from surface_consistency.engine.generate import run_prompts
from surface_consistency.models.server.openai_compatible import OpenAICompatibleRunner
from surface_consistency.runs.log import RunLog
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource, GenerationParams, Message, Prompt

LATENCY_S = 0.05
CONCURRENCY = 32
SPEED_UP = 20
N_TOPICS, N_PERMUTATIONS = 600, 5
KILLS = (0.1, 0.35, 0.6, 0.85)


def answer_to(text):
    """Return a label for the prompt of a judge, and a distinct text for any other prompt."""
    n = len(re.findall("Reference: ", text))
    if n == 0:
        return f"Perhaps answer {zlib.crc32(text.encode())}"
    return "1" if n == 1 else str([1] * n)


class Server:
    """Implements the required part of the protocol, and counts requests."""

    def __init__(self, latency):
        self.latency = latency
        self.asked = Counter()

    async def serve(self, pipe):
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    async def _connection(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = re.search(r"content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1])) if length else b""
                writer.write(await self._reply(head, body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _reply(self, head, body):
        if head.startswith("get"):
            again = sum(count - 1 for count in self.asked.values())
            data = json.dumps({"n": self.asked.total(), "again": again}).encode()
        else:
            text = "\x1e".join(turn["content"] for turn in json.loads(body)["messages"])
            self.asked[zlib.crc32(text.encode()), len(text)] += 1
            await asyncio.sleep(self.latency)
            message = {"role": "assistant", "content": answer_to(text)}
            choice = {"message": message, "finish_reason": "stop"}
            data = json.dumps({"model": "m-1", "choices": [choice]}).encode()
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data)


def start_server(latency):
    """Start a server in a separate process; return the process and its address."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=run_server, args=(latency, there), daemon=True)
    process.start()
    return process, f"http://127.0.0.1:{here.recv()}/v1"


def run_server(latency, pipe):
    asyncio.run(Server(latency).serve(pipe))


def stats(url):
    """Return the number of requests to the server, and the number of repeated ones."""
    with urllib.request.urlopen(f"{url}/stats") as reply:
        return json.load(reply)


def throughput(url, concurrency, n_prompts, folder):
    """Return prompts per second, logged to disk as in a run."""
    runner = OpenAICompatibleRunner("m", base_url=url, concurrency=concurrency)
    params = GenerationParams(max_new_tokens=16, stop=())
    name = f"{concurrency}-{time.monotonic_ns()}"
    prompts = [
        Prompt(id=str(n), messages=(Message(role="user", content=f"{name} question {n}"),))
        for n in range(n_prompts)
    ]
    manifest = RunManifest(
        study="bench",
        model="m",
        data=DataSource(id="bench", revision=None, digest="d", n_questions=n_prompts),
        decoding={"answers": params.model_dump(mode="json")},
        runner=runner.fingerprint(),
        package_version="0",
        created_at="2026-01-01T00:00:00+00:00",
    )
    with RunLog.open(folder / f"{name}.jsonl", manifest) as log:
        start = time.perf_counter()
        run_prompts(runner, prompts, params, log, progress=False)
        return n_prompts / (time.perf_counter() - start)


def logged(out):
    """Return the prompt keys of all logs, one per line."""
    keys = []
    for path in (*out.glob("generations-*.jsonl"), *out.glob("judges/*/judge-generations.jsonl")):
        keys += re.findall(rb'"prompt_key":"(\w+)"', path.read_bytes())
    return keys


def killed_and_resumed(url, n_topics, folder):
    """Run the study, kill it several times, and return the numbers of requests."""
    data = folder / "topics.csv"
    write_slaq_csv(data, made_up_topics(n_topics))
    out = folder / "run"
    command = [sys.executable, "-m", "surface_consistency", "run", "slaq", "--json"]
    command += ["--source", str(data), "--permutations", str(N_PERMUTATIONS), "--repeat", "0"]
    command += ["--runner", "openai", "--model", "m", "--out", str(out)]
    command += ["--judge", "llm", "--judge-model", "j"]
    environment = os.environ | {"OPENAI_BASE_URL": url, "HF_HUB_OFFLINE": "1"}
    total = 2 * n_topics * (5 + N_PERMUTATIONS)
    start = time.perf_counter()
    for share in KILLS:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        while len(logged(out)) < share * total:
            if process.poll() is not None:
                raise SystemExit("the run ended before it was killed")
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    seconds = time.perf_counter() - start
    missing = json.loads(done.stdout)["tables"]["overall"][0]["n_missing"]
    keys = logged(out)
    return {
        "total": total,
        "seconds": seconds,
        "missing": missing,
        "kept twice": len(keys) - len(set(keys)),
        "answers": len(set(keys)),
        **stats(url),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (default: 3)")
    parser.add_argument("--topics", type=int, default=N_TOPICS, help="topics of the killed run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server, url = start_server(LATENCY_S)
        single, many = [], []
        for _ in range(options.rounds):
            single.append(throughput(url, 1, 40, folder))
            many.append(throughput(url, CONCURRENCY, 40 * CONCURRENCY, folder))
        server.terminate()
        server, url = start_server(LATENCY_S)
        found = killed_and_resumed(url, options.topics, folder)
        server.terminate()
    ratio = statistics.median(many) / statistics.median(single)
    in_flight = 2 * CONCURRENCY * len(KILLS)
    print(
        f"{1000 * LATENCY_S:.0f} ms per request, {options.rounds} rounds, Python "
        f"{platform.python_version()}\n"
    )
    print("| what | median | min to max |\n|---|---|---|")
    for label, rates in (("one by one", single), (f"{CONCURRENCY} in flight", many)):
        print(
            f"| {label}, prompts per second | {statistics.median(rates):.0f} | {min(rates):.0f} to "
            f"{max(rates):.0f} |"
        )
    print(f"| {CONCURRENCY} in flight compared with one by one | {ratio:.1f} | |")
    print(
        f"| {found['total']:,} generations and judgements, killed {len(KILLS)} times | "
        f"{found['seconds']:.0f} s | |\n"
        f"| requests, of which of prompts sent before | {found['n']:,} | {found['again']} |\n"
        f"| answers stored, of which twice | {found['answers']:,} | {found['kept twice']} |"
    )
    failures = []
    if ratio < SPEED_UP:
        failures.append(f"{CONCURRENCY} requests in flight are not {SPEED_UP} times as fast")
    if found["kept twice"] or found["missing"] or found["answers"] != found["total"]:
        failures.append("prompts with stored answers were sent again, or answers are missing")
    # Answers of the last fifth of a second are not yet on disk; their prompts are sent again.
    rate = statistics.median(many)
    if found["again"] > in_flight + 0.4 * rate * len(KILLS):
        failures.append("more prompts were sent again than a kill can lose")
    if failures:
        raise SystemExit("; ".join(failures))


if __name__ == "__main__":
    main()
