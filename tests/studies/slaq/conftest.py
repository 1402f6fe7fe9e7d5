"""Facts and answers to judge."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from surface_consistency.schemas.slaq import SlaqQuestion
from surface_consistency.studies.slaq.judge import JudgeTask


@pytest.fixture
def questions():
    """Five facts of a topic; the last is no named entity."""
    answers = ("Rome", "Carthage", "Hannibal Barca.", "264 BCE", "because of trade")
    return tuple(
        SlaqQuestion(
            id=f"punic/{k}", index=k, question=f"Question {k}?", answer=answer, is_entity=k < 5
        )
        for k, answer in enumerate(answers, start=1)
    )


@pytest.fixture
def task(questions):
    """Builds a task."""

    def build(form, answer, prompt_id="p"):
        asked = questions[:1] if form == "short" else questions
        return JudgeTask(prompt_id=prompt_id, form=form, questions=asked, answer=answer)

    return build


class CountingServer:
    """Speaks the OpenAI protocol over 127.0.0.1 and counts what it is asked.

    `answer(text)` gives the reply to the last message; each takes `latency` seconds.
    """

    def __init__(self, answer, latency=0.0):
        self.asked = []
        self.answered = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                text = body["messages"][-1]["content"]
                owner.asked.append(text)
                time.sleep(latency)
                message = {"role": "assistant", "content": answer(text)}
                reply = {"model": "m-1", "choices": [{"message": message, "finish_reason": "stop"}]}
                data = json.dumps(reply).encode()
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    owner.answered.append(text)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # A client that is killed resets its connections, which is what is wanted.
        self._server.handle_error = lambda *_: None
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@pytest.fixture
def serve():
    """Starts servers: `serve(answer, latency=0.0)`; all stop at the end of the test."""
    started = []

    def start(answer, **options):
        started.append(CountingServer(answer, **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()
