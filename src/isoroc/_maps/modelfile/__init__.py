"""The versioned JSON model file: documents in and out, nothing executed, nothing half-written."""

from isoroc._maps.modelfile.checks import check_array
from isoroc._maps.modelfile.codec import decode, encode
from isoroc._maps.modelfile.document import Fault, ModelFileError, checksum, read, write

__all__ = [
    "Fault",
    "ModelFileError",
    "check_array",
    "checksum",
    "decode",
    "encode",
    "read",
    "write",
]
