import io
import secrets
import urllib.error
import urllib.request
from contextlib import closing
from datetime import UTC, datetime
from unittest.mock import create_autospec
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Context, ResourceLink, Server, UsageError
from mcp_roundtrip.aws.boto3_client import s3_client
from mcp_roundtrip.s3 import MAX_BYTES, MAX_TTL_MS, Bucket, Stored
from mcp_roundtrip_testing import Player
from mcp_roundtrip_tools.run.services.ministack import serve_ministack

REGION = "eu-west-1"
NOW = 1_795_000_000.0
CSV = b"id;price\n1;9.50\n"
REPORT = Stored("reports/key", "report.csv", "text/csv", len(CSV))


@pytest.fixture(scope="module", autouse=True)
def credentials():
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ACCESS_KEY_ID", "test")
        patched.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patched.delenv("AWS_SESSION_TOKEN", raising=False)
        patched.setattr(boto3, "DEFAULT_SESSION", None)  # boto3 caches credentials
        yield


@pytest.fixture(scope="module")
def client():
    with serve_ministack({"SERVICES": "s3"}) as url, closing(s3_client(REGION, url)) as connected:
        yield connected


@pytest.fixture(scope="module")
def bucket(client):
    name = f"exports-{secrets.token_hex(8)}"
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    return Bucket(name, prefix="reports/", client=client)


@pytest.fixture(scope="module")
def offline():
    """Return a client of an address without a server."""
    connected = s3_client(REGION, "http://127.0.0.1:1")
    yield Bucket("example-exports", client=connected, clock=lambda: NOW)
    connected.close()


def fetched(url):
    with urllib.request.urlopen(url) as response:
        return response.headers, response.read()


@pytest.mark.parametrize("data", [CSV, bytearray(CSV), io.BytesIO(CSV)], ids=lambda data: type(data).__name__)
def test_a_stored_result_is_downloaded_with_its_type_and_name(bucket, data):
    stored = bucket.put(data, "Größe; 6/26.csv", "text/csv")
    assert (stored.name, stored.mime_type, stored.size) == ("Größe; 6/26.csv", "text/csv", len(CSV))
    headers, body = fetched(bucket.link(stored).uri)
    assert body == CSV
    assert headers["Content-Type"] == "text/csv"
    assert headers["Content-Disposition"] == "attachment; filename*=UTF-8''Gr%C3%B6%C3%9Fe%3B%206%2F26.csv"


def test_a_file_is_uploaded_from_its_beginning(bucket, tmp_path):
    path = tmp_path / "report"
    path.write_bytes(CSV)
    with path.open("rb") as file:
        file.read()
        assert fetched(bucket.link(bucket.put(file, "report.csv")).uri)[1] == CSV


def test_the_object_key_is_unguessable(bucket):
    first, second = (bucket.put(CSV, "report.csv") for _ in range(2))
    assert first.key != second.key
    assert all(stored.key.startswith("reports/") and len(stored.key) == 40 for stored in (first, second))


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east-1", "s3.amazonaws.com"),
        ("eu-west-1", "s3.eu-west-1.amazonaws.com"),
        ("ap-south-2", "s3.ap-south-2.amazonaws.com"),
    ],
)
def test_a_link_uses_the_host_of_the_bucket_by_default_in_the_region_of_the_function(
    region, host, monkeypatch
):
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    with closing(s3_client(region)) as client:
        for bucket in (Bucket("example-exports", client=client), Bucket("example-exports")):
            url = urlsplit(bucket.link(REPORT).uri)
            assert (url.scheme, url.hostname, url.path) == (
                "https",
                f"example-exports.{host}",
                "/reports/key",
            )


@given(ttl_ms=st.integers(1_000, MAX_TTL_MS))
def test_url_and_description_of_a_link_have_its_expiry(offline, ttl_ms):
    link = offline.link(REPORT, ttl_ms=ttl_ms, description="All orders.")
    seconds = int(parse_qs(urlsplit(link.uri).query)["X-Amz-Expires"][0])
    assert seconds == ttl_ms // 1000
    until = datetime.fromtimestamp(NOW + seconds, UTC).isoformat().replace("+00:00", "Z")
    assert link.description == f"All orders. Available until {until}."


@pytest.mark.parametrize("ttl_ms", [999, MAX_TTL_MS + 1, 0, -1, 3600.0, True, None])
def test_a_link_is_valid_for_a_second_to_seven_days(offline, ttl_ms):
    with pytest.raises(UsageError):
        offline.link(REPORT, ttl_ms=ttl_ms)


def test_a_link_is_a_resource_link_with_name_type_and_size(offline):
    link = offline.link(REPORT, annotations={"audience": ["user"]}).to_wire()
    assert {name: link[name] for name in link if name not in ("uri", "description")} == {
        "type": "resource_link",
        "name": "report.csv",
        "mimeType": "text/csv",
        "size": len(CSV),
        "annotations": {"audience": ["user"]},
    }


def test_a_replay_uploads_nothing_and_signs_again(bucket):
    server, uploads = Server("reports"), []

    def upload(orders: int) -> Stored:
        uploads.append(orders)
        return bucket.put(CSV * orders, "orders.csv", "text/csv")

    @server.tool
    def export(ctx: Context, orders: int) -> ResourceLink:
        stored = ctx.step("upload", upload, orders)
        link = ctx.step("link", bucket.link, stored)
        ctx.elicit("sure", f"{stored.size} bytes at {link.uri}. Sure?", bool)
        return bucket.link(stored)

    done = Player(server, always_replay=True).call("export", {"orders": 3}, sure=True)
    assert uploads == [3]
    [link] = done.result["content"]
    assert fetched(link["uri"])[1] == CSV * 3
    assert "structuredContent" not in done.result


@pytest.mark.parametrize("data", ["text", io.StringIO("text"), None, 7, io.RawIOBase()])
def test_data_other_than_bytes_is_refused_before_sending(offline, data):
    with pytest.raises(UsageError):
        offline.put(data, "report.csv")


def test_a_file_over_the_upload_limit_is_refused_with_both_sizes(offline):
    endless = create_autospec(io.BytesIO, instance=True)
    endless.seek.return_value = MAX_BYTES + 1
    with pytest.raises(UsageError, match=rf"{MAX_BYTES + 1}.*{MAX_BYTES}"):
        offline.put(endless, "dump.bin")


@pytest.mark.parametrize(
    "given",
    [
        *((name,) for name in ("", "a\r\nSet-Cookie: a", "a\0", "\ud800", "a" * 256, None, b"a")),
        *(("report.csv", mime_type) for mime_type in ("", "csv", "text/csv\r\na: b", "text/", None)),
    ],
)
def test_a_name_is_plain_text_and_a_type_a_mime_type(offline, given):
    with pytest.raises(UsageError):
        offline.put(CSV, *given)


def test_a_client_with_signature_version_2_is_refused():
    client = boto3.client("s3", region_name=REGION, config=Config(signature_version="s3"))
    with pytest.raises(UsageError, match="s3_client"):
        Bucket("example-exports", client=client).link(REPORT)
    client.close()


def test_a_failed_upload_is_logged_with_bucket_and_permission(client):
    with pytest.raises(ClientError) as failed:
        Bucket("no-such-bucket", prefix="reports/", client=client).put(CSV, "report.csv")
    assert failed.value.response["Error"]["Code"] == "NoSuchBucket"
    [note] = failed.value.__notes__
    assert "s3:PutObject on no-such-bucket/reports/*" in note
