"""Signatures of requests to an S3 server: those of AWS' own example, and of another implementation."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from muniment.core.outside.s3_signing import Credentials, credentials_in, encoded, query_of, signed
from muniment.errors import ObjectsRefused
from s3_room import s3_python

EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
NOW = datetime(2013, 5, 24, tzinfo=UTC)
HOST = "examplebucket.s3.amazonaws.com"


def signature(headers: dict[str, str]) -> str:
    return headers["Authorization"].rpartition("Signature=")[2]


@pytest.mark.req("LG-11")
def test_the_examples_of_the_signature_s_own_page() -> None:
    got = signed("GET", HOST, "/test.txt", "", {"Range": "bytes=0-9"}, b"", EXAMPLE, "us-east-1", NOW)
    assert signature(got) == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    asked = query_of({"prefix": "J", "max-keys": "2"})
    got = signed("GET", HOST, "/", asked, {}, b"", EXAMPLE, "us-east-1", NOW)
    assert signature(got) == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    got = signed(
        "PUT", HOST, f"/{encoded('test$file.text')}", "",
        {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
        b"Welcome to Amazon S3.", EXAMPLE, "us-east-1", NOW,
    )  # fmt: skip
    assert signature(got) == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"


TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x2FFF), min_size=1, max_size=30)
CASES = st.tuples(st.dictionaries(TEXT, TEXT, max_size=4), TEXT, st.text(max_size=20), st.booleans())
BOTOCORE = """
import json, sys
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
for line in sys.stdin:
    case = json.loads(line)
    request = AWSRequest("PUT", case["url"], data=case["body"].encode(), headers=case["headers"])
    request.context["timestamp"] = case["headers"]["x-amz-date"]
    signer = S3SigV4Auth(Credentials("AKID", "secret"), "s3", "eu-central-1")
    print(signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request))
"""


@pytest.mark.soak
@pytest.mark.req("LG-11")
@settings(max_examples=4)
@given(st.lists(CASES, min_size=40, max_size=60))
def test_another_implementation_signs_the_same(cases: list[tuple[dict[str, str], str, str, bool]]) -> None:
    asked, signatures = [], []
    for query, key, body, has_token in cases:
        path, said = f"/{encoded(key, '/')}", query_of(query)
        given_ = Credentials("AKID", "secret", "token/+=" if has_token else None)
        ours = signed("PUT", "bucket.example", path, said, {}, body.encode(), given_, "eu-central-1", NOW)
        signatures.append(signature(ours))
        headers = {name: value for name, value in ours.items() if name != "Authorization"}
        url = f"https://bucket.example{path}{'?' if said else ''}{said}"
        asked.append(json.dumps({"url": url, "body": body, "headers": headers}))
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    theirs = subprocess.run(
        [s3_python(), "-W", "ignore", "-c", BOTOCORE], input="\n".join(asked), text=True, capture_output=True, env=env
    )
    assert theirs.stdout.split() == signatures, theirs.stderr


def test_credentials_are_of_the_environment_and_shown_by_nobody() -> None:
    found = credentials_in({"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hidden"})
    assert found == ("id", "hidden", None)
    assert "hidden" not in repr(found)
    for env in ({}, {"AWS_ACCESS_KEY_ID": "id"}, {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": ""}):
        with pytest.raises(ObjectsRefused) as caught:
            credentials_in(env)
        assert "AWS_SECRET_ACCESS_KEY" in caught.value.hint
