"""The versioned JSON model file: documents in and out, nothing executed, nothing half-written."""

from isoroc.store.checks import check_array
from isoroc.store.codec import decode, encode
from isoroc.store.document import FORMAT, VERSION, ModelFileError, read, write
from isoroc.store.files import replacing
from isoroc.store.schema import Fault, schema

__all__ = [
    "FORMAT",
    "VERSION",
    "Fault",
    "ModelFileError",
    "check_array",
    "decode",
    "encode",
    "read",
    "replacing",
    "schema",
    "write",
]
