"""Objects in a bucket of an S3-compatible server: put and looked for again, read whole, deleted in every version."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import NamedTuple
from xml.etree import ElementTree

from muniment.core.outside.s3_server import Answer, S3Server, parsed
from muniment.core.ports.objects import Listed, Removal
from muniment.errors import ObjectsRefused

__all__ = ["S3Objects"]

_DENIED = (400, 401, 403, 405, 409, 501)
"""What a server answers to a question about versions that it does not know, or does not let be asked."""


class _Version(NamedTuple):
    id: str
    is_marker: bool


class S3Objects:
    """A bucket, or the part of one below a prefix."""

    def __init__(self, server: S3Server) -> None:
        self._server = server

    @property
    def location(self) -> str:
        place = self._server.place
        at = "" if place.endpoint is None else f" at {place.endpoint}"
        return f"s3://{place.bucket}/{place.prefix}{at}"

    def put(self, key: str, data: bytes) -> None:
        """A server that says yes is asked once more whether the object is there, whole: some say so too early."""
        named = self._named(key)
        for _ in range(self._server.place.attempts_max):
            self._server.ask("PUT", named, body=data)
            seen = self._server.ask("HEAD", named, allowed=(404,))
            if seen.status != 404 and seen.headers.get("content-length") == str(len(data)):
                return
        raise self._server.unavailable("it says that it holds an object which it does not have")

    def get(self, key: str) -> bytes | None:
        answer = self._server.ask("GET", self._named(key), allowed=(404,))
        return None if answer.status == 404 else answer.body

    def remove(self, key: str) -> Removal:
        named = self._named(key)
        versions = self._versions(named)
        if versions is None:
            return self._remove_newest(key, named)
        refused = ""
        for version in versions:
            try:
                self._server.ask("DELETE", named, {"versionId": version.id}, allowed=(404,))
            except ObjectsRefused as error:
                refused = str(error.details.get("answer") or error.details.get("http_status"))
        left = [version for version in self._versions(named) or () if not version.is_marker]
        if left:
            return Removal(key, len(left), f"the bucket keeps them: {refused or 'they came back'}")
        return Removal(key)

    def _remove_newest(self, key: str, named: str) -> Removal:
        """Where versions cannot be listed: what is deleted may stay as one."""
        try:
            gone = self._server.ask("DELETE", named, allowed=(404,))
        except ObjectsRefused as error:
            return Removal(key, 1, f"the bucket refuses it: {error.details.get('answer') or 'denied'}")
        if gone.headers.get("x-amz-delete-marker") == "true" or "x-amz-version-id" in gone.headers:
            return Removal(key, 1, "the bucket keeps versions, and lets nobody list them with these credentials")
        return Removal(key)

    def _versions(self, named: str) -> list[_Version] | None:
        """Every version of an object, and what marks it as deleted; None where the server does not tell."""
        found: list[_Version] = []
        asked = {"versions": "", "prefix": named}
        while True:
            answer = self._server.ask("GET", "", asked, allowed=_DENIED)
            if answer.status in _DENIED:
                return None
            page = self._page(answer)
            found += [
                _Version(element.findtext("VersionId") or "null", element.tag == "DeleteMarker")
                for element in page
                if element.tag in ("Version", "DeleteMarker") and element.findtext("Key") == named
            ]
            if page.findtext("IsTruncated") != "true":
                return found
            asked |= {
                "key-marker": page.findtext("NextKeyMarker") or "",
                "version-id-marker": page.findtext("NextVersionIdMarker") or "",
            }

    def listed(self, prefix: str) -> Iterator[Listed]:
        """Ages are the difference of two readings of the server's own clock."""
        asked = {"list-type": "2", "prefix": self._named(prefix)}
        cut = len(self._server.place.prefix)
        while True:
            answer = self._server.ask("GET", "", asked)
            page, now = self._page(answer), _date_of(answer)
            for element in page.iter("Contents"):
                key, made = element.findtext("Key") or "", element.findtext("LastModified") or ""
                try:
                    age_s = (now - datetime.fromisoformat(made)).total_seconds()
                    size = int(element.findtext("Size") or "0")
                except (ValueError, TypeError):
                    raise self._server.unavailable("a list of objects that cannot be read") from None
                yield Listed(key[cut:], size, max(0.0, age_s))
            following = page.findtext("NextContinuationToken")
            if page.findtext("IsTruncated") != "true" or not following:
                return
            asked["continuation-token"] = following

    def _named(self, key: str) -> str:
        return f"{self._server.place.prefix}{key}"

    def _page(self, answer: Answer) -> ElementTree.Element:
        try:
            return parsed(answer.body)
        except HTTPException:
            raise self._server.unavailable("an answer that is no list of objects") from None


def _date_of(answer: Answer) -> datetime:
    """When the server answered, by its own clock; of one that does not say, by ours."""
    try:
        return parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return datetime.now(UTC)
