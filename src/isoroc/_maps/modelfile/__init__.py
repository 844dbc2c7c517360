"""The versioned JSON model file: documents in and out, nothing executed, nothing half-written."""

from isoroc._maps.modelfile.codec import decode as decode
from isoroc._maps.modelfile.codec import encode as encode
from isoroc._maps.modelfile.document import Fault as Fault
from isoroc._maps.modelfile.document import ModelFileError as ModelFileError
from isoroc._maps.modelfile.document import checksum as checksum
from isoroc._maps.modelfile.document import read as read
from isoroc._maps.modelfile.document import write as write
