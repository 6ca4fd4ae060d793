#!/usr/bin/env python3
"""Registries of crates, wheels and packages for npm on one address, which refuse what the real ones refuse.

    tests/release/registries.py FOLDER    prints its address; what was published lies in FOLDER

Each speaks the protocol that its real client publishes and installs by. Crates that are not here are those of the real
index, which is asked once for each. A version is published once, as there. FOLDER/fail with the name of a package
refuses its next upload once, as a registry that is down would.
"""

import base64
import email.parser
import email.policy
import functools
import hashlib
import io
import json
import pathlib
import re
import ssl
import struct
import sys
import tarfile
import threading
import urllib.error
import urllib.request
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import trove_classifiers
from packaging.licenses import canonicalize_license_expression
from packaging.metadata import Metadata

CRATE_BYTES, WHEEL_BYTES = 10 << 20, 100 << 20
PLACEHOLDER = "/OWNER/"
# Wheels of a system whose libraries no other has, such as linux_x86_64, are refused.
PLATFORM = re.compile(r"any|(many|musl)linux\w+|macosx_\w+|win32|win_\w+")
INDEX, FILES = "https://index.crates.io", "https://static.crates.io/crates"
# One for all requests: to read the certificates takes 40 ms.
TLS = ssl.create_default_context()


class Refused(Exception):
    """Why a registry does not take what was uploaded."""


def check_crate(told, package):
    """What crates.io asks of a crate, and a link to where its binaries lie."""
    missing = [name for name in ("description", "license", "repository") if not (told.get(name) or "").strip()]
    if missing:
        raise Refused(f"missing or empty metadata fields: {', '.join(missing)}")
    if PLACEHOLDER in told["repository"]:
        raise Refused(f"repository is a placeholder: {told['repository']}")
    if len(package) > CRATE_BYTES:
        raise Refused(f"{len(package)} bytes are more than {CRATE_BYTES}")
    if len(told["keywords"]) > 5 or len(told["categories"]) > 5:
        raise Refused("at most 5 keywords and 5 categories")
    if any(dependency["version_req"] == "*" for dependency in told["deps"]):
        raise Refused("a dependency without a version")
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        outside = [name for name in files.getnames() if not name.startswith(f"{told['name']}-{told['vers']}/")]
    if outside:
        raise Refused(f"files outside of its folder: {outside}")


def check_distribution(name, content, fields):
    """What PyPI asks of a wheel or an sdist."""
    if hashlib.sha256(content).hexdigest() != fields["sha256_digest"]:
        raise Refused("the digest is another one")
    if len(content) > WHEEL_BYTES:
        raise Refused(f"{len(content)} bytes are more than {WHEEL_BYTES}")
    if name.endswith(".whl"):
        if not all(PLATFORM.fullmatch(tag) for tag in name[:-4].split("-")[-1].split(".")):
            raise Refused(f"no platform that is taken: {name}")
        with zipfile.ZipFile(io.BytesIO(content)) as files:
            raw = files.read(next(path for path in files.namelist() if path.endswith(".dist-info/METADATA")))
    else:
        with tarfile.open(fileobj=io.BytesIO(content)) as files:
            raw = files.extractfile(name.removesuffix(".tar.gz") + "/PKG-INFO").read()
    told = Metadata.from_email(raw)
    if not (told.summary and told.description and told.license_expression and told.project_urls):
        raise Refused("summary, description, license expression and project URLs are needed")
    if any(PLACEHOLDER in url + "/" for url in told.project_urls.values()):
        raise Refused("project URLs are placeholders")
    canonicalize_license_expression(told.license_expression)
    unknown = set(told.classifiers or []) - trove_classifiers.classifiers
    if unknown:
        raise Refused(f"unknown classifiers: {', '.join(sorted(unknown))}")


def check_npm(told, package):
    """What npm asks of a package, and publint of its exports."""
    if told["dist"]["integrity"] != "sha512-" + base64.b64encode(hashlib.sha512(package).digest()).decode():
        raise Refused("the digest is another one")
    repository = told.get("repository") or {}
    if not repository.get("url") or PLACEHOLDER in repository["url"]:
        raise Refused(f"provenance needs the repository that publishes, not {repository.get('url', '')!r}")
    missing = [name for name in ("description", "license", "homepage", "bugs", "keywords") if not told.get(name)]
    if missing:
        raise Refused(f"missing fields: {', '.join(missing)}")
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        names = {name.removeprefix("package/") for name in files.getnames()}
    for path, conditions in told["exports"].items():
        targets = [conditions] if isinstance(conditions, str) else list(conditions.values())
        gone = [target for target in targets if target.removeprefix("./") not in names]
        if gone:
            raise Refused(f"exports[{path!r}] names files that are not packed: {gone}")
        if not isinstance(conditions, str) and "types" in conditions and list(conditions)[0] != "types":
            raise Refused(f"exports[{path!r}]: types must stand first")
    if not {"LICENSE-MIT", "README.md"} <= names:
        raise Refused("no licence or no README.md is packed")


@functools.cache
def of_the_real_index(path):
    try:
        with urllib.request.urlopen(f"{INDEX}/{path}", timeout=60, context=TLS) as answer:
            return answer.read()
    except urllib.error.HTTPError:
        return b""


class Registries(BaseHTTPRequestHandler):
    """Files lie as they are served: FOLDER/crates/NAME/…, FOLDER/simple/NAME/…, FOLDER/npm/NAME/…."""

    protocol_version = "HTTP/1.1"
    # Head and body of an answer go together: the second of two small packets waits until the first is acknowledged.
    wbufsize = -1
    folder = None
    one_at_a_time = threading.Lock()

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json", **headers):
        body = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def keep(self, kind, name, file, content):
        """Keeps a file that is not there yet."""
        fail = self.folder / "fail"
        if fail.exists() and fail.read_text().strip() == name:
            fail.unlink()
            raise ConnectionError(f"{name} cannot be taken now")
        path = self.folder / kind / name / file
        if path.exists():
            raise Refused(f"{file} is there already")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{kind}: took {file}, {len(content):,} bytes", file=sys.stderr, flush=True)

    def address(self, path):
        return f"http://{self.headers['host']}{path}"

    def do_GET(self):
        path = self.path.split("?")[0].strip("/")
        parts = path.split("/")
        if path == "index/config.json":
            return self.answer(200, {"dl": self.address("/crates"), "api": self.address("")})
        if parts[0] == "index":
            lines = sorted((self.folder / "crates" / parts[-1]).glob("*.json"))
            if lines:
                return self.answer(200, "".join(line.read_text() + "\n" for line in lines), "text/plain")
            lines = of_the_real_index("/".join(parts[1:]))
            return self.answer(200 if lines else 404, lines, "text/plain")
        if parts[0] == "crates":
            file = self.folder / "crates" / parts[1] / f"{parts[1]}-{parts[2]}.crate"
            if file.exists():
                return self.answer(200, file.read_bytes(), "application/gzip")
            return self.answer(302, "", location=f"{FILES}/{parts[1]}/{parts[2]}/download")
        folder = self.folder.joinpath(*parts)
        if parts[0] == "simple" and folder.is_dir():
            links = "".join(
                f'<a href="{self.address("/" + path)}/{file.name}#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}">'
                f"{file.name}</a>\n" for file in sorted(folder.iterdir())
            )
            return self.answer(200, f"<!DOCTYPE html><html><body>\n{links}</body></html>", "text/html")
        if parts[0] == "npm" and (folder / "package.json").exists():
            return self.answer(200, (folder / "package.json").read_bytes())
        if folder.is_file():
            return self.answer(200, folder.read_bytes(), "application/octet-stream")
        self.answer(404, {"error": "not found"})

    def do_PUT(self):
        self.publish()

    def do_POST(self):
        self.publish()

    def publish(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        take = {"/api/v1/crates/new": self.take_crate, "/upload/": self.take_distribution}.get(self.path, self.take_npm)
        try:
            with self.one_at_a_time:
                take(body)
        except ConnectionError as error:
            self.answer(503, {"error": str(error), "errors": [{"detail": str(error)}]})
        except Exception as error:  # Whatever is wrong with it, it is not taken, and who sent it learns why.
            reason = " ".join(str(error).split())
            print(f"{self.path}: refused: {reason}", file=sys.stderr, flush=True)
            self.answer(400, {"error": reason, "errors": [{"detail": reason}]})

    def take_crate(self, body):
        length = struct.unpack("<I", body[:4])[0]
        told, package = json.loads(body[4 : 4 + length]), body[8 + length :]
        check_crate(told, package)
        name, version = told["name"], told["vers"]
        # As the index has them: a renamed dependency by its name in the manifest.
        same = ("features", "optional", "default_features", "target", "kind")
        dependencies = [
            {name: one[name] for name in same}
            | {"name": one.get("explicit_name_in_toml") or one["name"], "req": one["version_req"], "registry": None}
            | ({"package": one["name"]} if one.get("explicit_name_in_toml") else {})
            for one in told["deps"]
        ]
        line = {"name": name, "vers": version, "deps": dependencies, "cksum": hashlib.sha256(package).hexdigest()}
        line |= {"features2": told["features"], "features": {}, "yanked": False, "links": told["links"], "v": 2}
        line |= {"rust_version": told.get("rust_version")}
        self.keep("crates", name, f"{name}-{version}.crate", package)
        (self.folder / "crates" / name / f"{version}.json").write_text(json.dumps(line))
        self.answer(200, {"warnings": {"invalid_categories": [], "invalid_badges": [], "other": []}})

    def take_distribution(self, body):
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        parts = {part.get_param("name", header="content-disposition"): part for part in message.iter_parts()}
        fields = {name: part.get_payload(decode=True).decode() for name, part in parts.items() if name != "content"}
        name, content = parts["content"].get_filename(), parts["content"].get_payload(decode=True)
        check_distribution(name, content, fields)
        self.keep("simple", re.sub(r"[-_.]+", "-", fields["name"]).lower(), name, content)
        self.answer(200, "")

    def take_npm(self, body):
        document = json.loads(body)
        name, (version, told) = document["name"], *document["versions"].items()
        file, attached = next(iter(document["_attachments"].items()))
        package = base64.b64decode(attached["data"])
        check_npm(told, package)
        self.keep("npm", name, file, package)
        told["dist"]["tarball"] = self.address(f"/npm/{name}/{file}")
        known = self.folder / "npm" / name / "package.json"
        all_versions = json.loads(known.read_text())["versions"] if known.exists() else {}
        all_versions[version] = told
        known.write_text(json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": all_versions}))
        self.answer(201, {"ok": True})


if __name__ == "__main__":
    Registries.folder = pathlib.Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registries)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
