"""All attacks on `requestState`, in every configuration that has the attacked part."""

from itertools import chain

from support.attacks_certificate import CERTIFICATES
from support.attacks_claims import BINDINGS
from support.attacks_encryption import ENCRYPTIONS
from support.attacks_signature import SIGNED_TOKENS
from support.attacks_spelling import SPELLINGS

TABLES = (SPELLINGS, SIGNED_TOKENS, BINDINGS, CERTIFICATES, ENCRYPTIONS)
CASES = {
    f"{name} ({configuration})": (attack, configuration)
    for name, attack in chain.from_iterable(table.items() for table in TABLES)
    for configuration in attack.on
}
