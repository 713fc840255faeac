"""Attachments: uploaded with a token, seen by whoever has the address."""

import re

import httpx2
import pytest

from hublet.core.database import Database
from hublet.repos import attachments
from people import Headers, sign_in

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


async def upload(
    client: httpx2.AsyncClient, headers: Headers, content: bytes, media_type: str = "image/png"
) -> httpx2.Response:
    return await client.post(
        "/uploads", headers=headers | {"Content-Type": media_type}, content=content
    )


async def test_an_attachment_is_served_as_what_it_is(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    uploaded = await upload(client, ada, PNG, "image/PNG; charset=binary")
    got = await client.get(uploaded.text)

    assert uploaded.status_code == 200
    assert uploaded.headers["content-type"] == "text/plain; charset=utf-8"
    assert re.fullmatch(r"http://hub\.test/uploads/[A-Za-z0-9]{32}\.png", uploaded.text)
    assert (got.status_code, got.content) == (200, PNG)
    assert got.headers["content-type"] == "image/png"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert got.headers["content-disposition"].startswith("inline; ")
    assert got.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_a_document_is_saved_and_a_video_is_sent_in_parts(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    document = (await upload(client, ada, b"%PDF", "application/pdf")).text
    video = (await upload(client, ada, b"video", "video/mp4")).text

    saved = await client.get(document)
    part = await client.get(video, headers={"Range": "bytes=0-1"})

    assert document.endswith(".pdf")
    assert saved.headers["content-disposition"].startswith("attachment; ")
    assert (part.status_code, part.content) == (206, b"vi")


async def test_the_same_content_twice_has_two_addresses(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    first, second = [await upload(client, ada, PNG) for _ in range(2)]

    assert first.text != second.text


async def test_only_media_can_be_attached(client: httpx2.AsyncClient, ada: Headers) -> None:
    for media_type in ("image/svg+xml", "text/html", "application/octet-stream", ""):
        response = await upload(client, ada, PNG, media_type)

        assert (response.status_code, response.json()) == (
            400,
            {
                "error": "Content-Type must be one of image/png, image/jpeg, image/gif, image/webp, "
                "video/mp4, video/quicktime, video/webm, audio/mpeg, audio/wav, application/pdf."
            },
        )


async def test_nothing_cannot_be_attached(client: httpx2.AsyncClient, ada: Headers) -> None:
    response = await upload(client, ada, b"")

    assert (response.status_code, response.json()) == (
        400,
        {"error": "The body must be the content of a file; it is empty."},
    )


async def test_an_attachment_has_a_largest_size_and_a_video_a_larger_one(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (attachments.LARGEST, attachments.LARGEST_VIDEO) == (10_485_760, 52_428_800)
    monkeypatch.setattr(attachments, "LARGEST", 2_000_000)
    monkeypatch.setattr(attachments, "LARGEST_VIDEO", 2_000_001)

    fits = await upload(client, ada, bytes(2_000_000))
    too_large = await upload(client, ada, bytes(2_000_001))
    video = await upload(client, ada, bytes(2_000_001), "video/webm")

    assert (fits.status_code, video.status_code) == (200, 200)
    assert (too_large.status_code, too_large.json()) == (
        413,
        {"error": "A file must have at most 2000000 bytes."},
    )


async def test_uploading_needs_a_token_that_may_take_part_in_discussions(
    client: httpx2.AsyncClient, database: Database
) -> None:
    discussing = await sign_in(database, "ada", scopes=["write-discussions"])
    reading = await sign_in(database, "ada", scopes=["read-repos"])

    answers = [await upload(client, headers, PNG) for headers in ({}, reading, discussing)]

    assert [answer.status_code for answer in answers] == [401, 403, 200]


async def test_an_unknown_attachment_is_not_found(client: httpx2.AsyncClient) -> None:
    response = await client.get("/uploads/nothing.png")

    assert (response.status_code, response.json()) == (
        404,
        {"error": "There is no attachment nothing.png."},
    )
