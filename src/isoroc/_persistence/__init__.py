"""The versioned JSON model file: documents in and out, nothing executed, nothing half-written."""

from isoroc._persistence.codec import decode, encode
from isoroc._persistence.document import Fault, ModelFileError, checksum, read, schema, write
from isoroc._persistence.states import check_array

__all__ = ["Fault", "ModelFileError", "check_array", "checksum", "decode", "encode", "read",
           "schema", "write"]  # fmt: skip
