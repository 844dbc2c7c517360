"""The versioned JSON model file: documents in and out, nothing executed, nothing half-written."""

from isoroc._persistence.checks import check_array
from isoroc._persistence.codec import decode, encode
from isoroc._persistence.document import (
    FORMAT,
    VERSION,
    ModelFileError,
    checksum,
    read,
    write,
)
from isoroc._persistence.schema import Fault, schema

__all__ = [
    "FORMAT",
    "VERSION",
    "Fault",
    "ModelFileError",
    "check_array",
    "checksum",
    "decode",
    "encode",
    "read",
    "schema",
    "write",
]
