"""A pytest plugin: clients of HTTP load no public certificate authorities, which takes 25 ms for each client.

No test meets a certificate by one of them. Authorities that a test names are loaded, those of variables too.
"""

import os
import ssl
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True, scope="session")
def no_public_authorities() -> Iterator[None]:
    """Make contexts skip the authorities of the system, and of the variables with which the tests began."""
    began = variables()
    public = {ssl.get_default_verify_paths().openssl_cafile, *began}
    load_default, load = ssl.SSLContext.load_default_certs, ssl.SSLContext.load_verify_locations

    def load_named_default(self: ssl.SSLContext, *purpose: ssl.Purpose) -> None:
        if variables() != began:
            load_default(self, *purpose)

    def load_others(self: ssl.SSLContext, cafile: Any = None, *others: Any, **more: Any) -> None:
        if cafile is None or cafile not in public:
            load(self, cafile, *others, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_default_certs", load_named_default)
        patch.setattr(ssl.SSLContext, "load_verify_locations", load_others)
        yield


def variables() -> list[str | None]:
    return [os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")]
