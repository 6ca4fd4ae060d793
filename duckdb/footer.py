"""Makes an extension of a shared library: `footer.py LIBRARY EXTENSION PLATFORM VERSION`.

DuckDB reads the last 534 bytes of an extension before it opens it: a header as sections of
WebAssembly have it, eight fields of 32 bytes, the last first, and room for a signature of 256 bytes,
which an unsigned extension leaves empty. The fields, from the first: the kind of footer, the
platform, the oldest interface of C that the extension needs, its own version, and the kind of
interface.
"""

from __future__ import annotations

import pathlib
import sys

#: The interface that `min_duckdb_version` in src/lib.rs names.
INTERFACE = "v1.2.0"
HEADER = bytes([0, 0x93, 0x04, 16]) + b"duckdb_signature" + bytes([0x80, 0x04])


def footer(platform: str, version: str) -> bytes:
    """What stands behind the library."""
    fields = ["4", platform, INTERFACE, version, "C_STRUCT", "", "", ""]
    padded = [field.encode("ascii").ljust(32, b"\0") for field in reversed(fields)]
    if any(len(field) != 32 for field in padded):
        raise ValueError(f"a field has more than 32 bytes: {fields}")
    return HEADER + b"".join(padded) + bytes(256)


def main() -> None:
    """Writes the extension beside its final name, and renames it."""
    library, extension, platform, version = sys.argv[1:]
    whole = pathlib.Path(library).read_bytes() + footer(platform, version)
    temporary = pathlib.Path(extension + ".part")
    temporary.write_bytes(whole)
    temporary.rename(extension)


if __name__ == "__main__":
    main()
