"""The TLS settings of connections to AWS.

Loading all 140 authorities of an operating system takes longer than everything else in a first call. AWS's
endpoints have certificates by Amazon Trust Services (https://www.amazontrust.com/repository/). So these
authorities are loaded first, as far as the operating system trusts them, and all only if these do not
suffice.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from mcp_roundtrip.aws.client_interface import AwsError

AMAZON_HOSTS: Final = (".amazonaws.com", ".api.aws")
"""The ends of the names of hosts with certificates by Amazon. Other partitions may have other authorities."""

AMAZON_AUTHORITIES: Final = frozenset(
    {
        "8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e",  # Amazon Root CA 1
        "1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4",  # Amazon Root CA 2
        "18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4",  # Amazon Root CA 3
        "e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092",  # Amazon Root CA 4
        "568d6905a2c88708a4b3025190edcfedb1974a606a13c6e5290fcb2ae63edab5",  # Starfield Services Root G2
    }
)
"""The SHA-256 digests of the certificates."""

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


@cache
def trust_all(ca_bundle: str | None) -> ssl.SSLContext:
    """Trust the authorities in a file, or those of the operating system.

    Raises AwsError if the file cannot be read.
    """
    try:
        return _with_known_flags(ssl.create_default_context(cafile=ca_bundle))
    except OSError as error:  # also ssl.SSLError
        raise AwsError("invalid_ca_bundle") from error


@cache
def trust_amazon() -> ssl.SSLContext | None:
    """Trust only Amazon's authorities. None if the operating system's file has none of them."""
    bundle = ssl.get_default_verify_paths().cafile
    if bundle is None:
        return None
    trusted = b""
    for text in Path(bundle).read_text("ascii", "replace").split(_END):
        try:
            certificate = b64decode(text.partition(_BEGIN)[2])
        except ValueError:
            continue
        if sha256(certificate).hexdigest() in AMAZON_AUTHORITIES:
            trusted += certificate
    return _with_known_flags(ssl.create_default_context(cadata=trusted)) if trusted else None


def _with_known_flags(context: ssl.SSLContext) -> ssl.SSLContext:
    # Python 3.13 began to refuse authorities that other clients accept, such as those of some proxies.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
