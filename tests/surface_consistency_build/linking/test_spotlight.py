"""Test the client of DBpedia Spotlight with a server that simulates its responses."""

import pytest
from surface_consistency_build.linking.spotlight import SpotlightClient

from surface_consistency.errors import DataError, RunnerError

pytestmark = pytest.mark.enable_socket

BERLIN = "http://dbpedia.org/resource/Berlin"


def resource(surface, offset, uri=BERLIN):
    """A span as the service returns it, with all values as texts."""
    span = {"@URI": uri, "@support": "77", "@types": "", "@surfaceForm": surface}
    span |= {"@offset": str(offset), "@similarityScore": "0.875"}
    return span | {"@percentageOfSecondRank": "0.1"}


def client(server, **options):
    return SpotlightClient(f"{server.url}/rest", first_wait=0.001, timeout=5.0, **options)


def test_mentions_have_ids_and_settings_are_sent(replay):
    server = replay(lambda path, body: (200, {"@text": "x", "Resources": [resource("Berlin", 3)]}))

    found = list(client(server, entities={"Berlin": "Q64"}).link(["In Berlin.", " "]))

    assert found == [[(3, 9, "Berlin", "Q64", 0.875)], []]
    assert server.requests == [
        ("/rest/annotate", {"text": "In Berlin.", "confidence": "0.4", "support": "20"})
    ]


@pytest.mark.parametrize(
    ("text", "answer", "found"),
    [
        ("nothing", {"@text": "nothing"}, []),
        ("Berlin", {"Resources": resource("Berlin", 0)}, [(0, 6, "Berlin")]),
        # Java counts a character beyond U+FFFF twice.
        ("😀😀 Berlin", {"Resources": [resource("Berlin", 5)]}, [(3, 9, "Berlin")]),
        ("😀 Berlin", {"Resources": [resource("Berlin", 2)]}, [(2, 8, "Berlin")]),
        ("Zürich", {"Resources": [resource("Zürich", 0)]}, [(0, 6, "Zürich")]),
    ],
)
def test_all_formats_of_responses_are_read(replay, text, answer, found):
    (mentions,) = client(replay(lambda path, body: (200, answer))).link([text])

    assert [(m.start, m.stop, m.surface) for m in mentions] == found


@pytest.mark.parametrize(
    "invalid",
    [
        resource("Berlin", 4), resource("Berlin", 400), resource("Berlin", -1), resource("", 0),
        {"@URI": BERLIN, "@surfaceForm": "Berlin"}, resource("Berlin", "x"),
        resource("Berlin", "٣"), resource("Berlin", "3" * 400),
        {**resource("Berlin", 3), "@similarityScore": "١"},
    ],
)  # fmt: skip
def test_an_answer_with_words_that_are_not_in_the_text_is_rejected(replay, invalid):
    server = replay(lambda path, body: (200, {"Resources": [resource("Berlin", 3), invalid]}))

    assert list(client(server).link(["In Berlin."])) == [None]


@pytest.mark.parametrize("status", [400, 413, 414])
def test_a_text_that_the_server_rejects_fails_without_stopping_others(replay, status):
    def answer(path, body):
        if "long" in body["text"]:
            return status, b"too long"
        return 200, {"Resources": [resource("Berlin", 0)]}

    server = replay(answer)
    found = list(client(server).link(["long", "Berlin"]))

    assert found[0] is None
    assert len(found[1]) == 1
    assert len(server.requests) == 2


def test_answered_texts_are_not_sent_again(replay, tmp_path):
    server = replay(lambda path, body: (200, {"Resources": [resource(body["text"], 0)]}))
    cache = tmp_path / "answers.sqlite"

    first = list(client(server, cache=cache).link(["Berlin", "Paris"]))
    again = list(client(server, cache=cache).link(["Paris", "Berlin", "Rome"]))
    list(client(server, cache=cache, confidence=0.5).link(["Rome"]))

    assert again[:2] == first[::-1]
    assert [body["text"] for _, body in server.requests].count("Berlin") == 1
    assert len(server.requests) == 4
    cache.write_bytes(b"no database, but long enough to be taken for one" * 100)
    with pytest.raises(DataError, match="is not a cache of answers"):
        list(client(server, cache=cache).link(["Berlin"]))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, RunnerError, "Resources is not a list of objects"),
        ({"confidence": 1.5}, ValueError, "confidence must be from 0 to 1"),
        ({"support": -1}, ValueError, "support must be at least 0"),
        ({"base_url": "localhost:2222"}, ValueError, "base_url must be a URL"),
    ],
)
def test_invalid_settings_and_answers_are_rejected(replay, options, error, message):
    """Failing servers are tested with the client of web services."""
    server = replay(lambda path, body: (200, {"Resources": "x"}))
    where = {"base_url": server.url, "first_wait": 0.001, "max_retries": 1}

    with pytest.raises(error, match=message):
        list(SpotlightClient(**(where | options)).link(["Berlin"]))
