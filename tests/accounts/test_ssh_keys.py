"""The fingerprints were printed by OpenSSH 9.2; nobody has the private halves of the keys."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from hublet.accounts.errors import InvalidSshKey
from hublet.accounts.settings.ssh_keys import TYPES, PublicKey, parse

ED25519 = "AAAAC3NzaC1lZDI1NTE5AAAAIPfkitQ9pkxbKcFaqrc1YyQh52pYsQJyD8TKVHZopPxS"
ECDSA_256 = (
    "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBGDlC8b4MwvPDOjSaDHqLo92Lsmd"
    "x0smxDvwupEpzpL+NQaqvCCypej4xgPv+mnfPpHGaFBMKQdiDxnMgN4/Uso="
)
ECDSA_384 = (
    "AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBE66yNdC/ZTss2bwe0HHcXLosfk7"
    "1T7VwB/Nif93lnCuDnqYZ03ArR3biuPZP3MYUCBikkXA7HMQqh9E+JxM6h1ypZtIU93QLsNVggftCMw6"
    "xND361mhDZ7ar7IOXcfClA=="
)
ECDSA_521 = (
    "AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAD4mAcCDCkEOab/xFCn9G4nl8SD"
    "2zRwa5tS1KMr14pCcoyS78jxhaqydjOZHkrvua5BIAjGrB/+BmUPlZZW+YbGLAGk1aBt110lOM65UVyl"
    "6/F8tw0+mdMovnp4WFzD6/LRta25I+CoV3ZapkWAzLKV+8rXgDlxZ8nayXw7xvG5uc7v2A=="
)
RSA_2048 = (
    "AAAAB3NzaC1yc2EAAAADAQABAAABAQC8s+0xM755FI1Dn+5VOMQUScneX5elFmT0fAKTYeE7Xi8AdlPX"
    "X+3VwxmgOSv8e5HP1HDxwPZE6D+xOydgNyVnBDjJ27cdgQmjJV+dfBPDAV9Q2oXJPQ1BqYA03ERDLWCj"
    "TFoMLHzvxT6LldRBDy9L0BP6A15HgHG6JugpAshSX9PE6sc5NYytATMazlcf+Op2UsLTklPi/y7VAEkk"
    "gzTC3CEHseKDp/VeH6761ug2tLu3j182cD2hCz1gDHXuZ0fnSmUrRqS5eRXMsl8dITXM/iHfnSJlOUcn"
    "ugsNHhgbE4FXAOllxyHvxNpNRAuC+mg3OKmrNsMfdSXq2NNWQsof"
)
RSA_3072 = (
    "AAAAB3NzaC1yc2EAAAADAQABAAABgQDCgJsJ+Ib1P3fYQlAPVXT0XO0hiTDNy7nh66RFlW4hEs0vJ3sT"
    "FDldbN7gjNxQzGBBV9PEfGVVMpPv056jeHmwv7d2w5wcFIB4L3nKqqqHaTYQOyevRm+S0sWQOqBShBBc"
    "XwZCssHEniq7ecyIyLl/X1GrvXf4egHXm+VYtwvxBSg187o4kWKWRQ/bE9yfC9G48O0i4kvfHK2zbF8k"
    "rBahtPerEdhWo+AORjuwZfDYRd06I326dohb0BejuGEPuBv5Usy66+NgiKBrAVpOSPHyuGA/tsS2NPay"
    "JyrzAE8Ldp4jkZKYPWblPR1QQDRJykw/f86efkGpzcAuUCMuNzBAjG8h17rubLDyOfdZmZgCM+mKMXtv"
    "w9iNyg7HZ8+HBOd4AkKPLDJApFeQF4JOqyc3pzVNwOQ6t9XbDYdwTdd4Z/r4oVaR4jW1mdWhbon8GIOR"
    "i8VxHFTy8kyPZi/yOrpB+Xc0/gkFoiG7/Vy/renOzI4j3gxB6oJLn8Jo+g7zKeU="
)
SK_ED25519 = (
    "AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIGqrhcmOjDaNG1wi3AXIYqdPLlRwZSDMxy1V"
    "iZewv2gNAAAABHNzaDo="
)
SK_ECDSA = (
    "AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb20AAAAIbmlzdHAyNTYAAABBBL8UBiyL"
    "9lDcRxEP2/BoPFdPSYRyP2bBfCBuXKJ9hkqTgPRfoMnL5RBJAQPQ8wW15+qRpFwuw/uI3/6Or4JFsO4A"
    "AAAEc3NoOg=="
)
RSA_1024 = (
    "AAAAB3NzaC1yc2EAAAADAQABAAAAgQDn6XW9LNw4s2X6NSL4GCOh5gaimvQAmMxPXijA1vGMWHxy7Jtb"
    "8pXEOXXTumC4+orWy0OKxlmxz050Jb6rLxbuijeZyuMxNfEUpmNvrx2GbEqF6W4GJXq2Npo+WxSKcLid"
    "OVaJHB65UgLSrdCEFMjcxXrB9WFJmZ7sK4v5atQSqw=="
)
DSA = (
    "AAAAB3NzaC1kc3MAAACBAPOpif4szdbuh4QPzq9k71X7wrHCQroN2cs22FTo+VOpT5GQHPtEISv13jtO"
    "UPRIfQluHmHzzuCobLHqggz85A9XLDKXhgB5o8rR7RLngCVRgpzQ+kjyuyHhBotusR/cHPRImHMupdk+"
    "oDJu2u63GuUqD4sGSx/4+36/oSG9hmNDAAAAFQD5YKzBze9oeZQEkn/RSghWvb1g3wAAAIEAr/C7EmUc"
    "eVaXD7kjVkTggzvkVmpHyHlQuwszBmdtMr/BDWxkHoTu2vyzapDuRPAW40a4ErtpPD3mIrfdaDSh/GzY"
    "2TtAhTs6tsT2x5zcQfJw+Hd9+3L/bJBWEtQxNYTMRnl9qwv3JiPnJcd1l1VMo3LTqtJ9tETuLHHlTIfK"
    "O7kAAACAdA9NAI8z+fNb9fydM8zHSXiQNEhofCngUb0rnmQDCfphD9cgpdQbSbDFAsfMDbaOJB7om2fV"
    "EklSnIYdbE93pFo/jUuRSpbuWV2/Hxs9MdFozmiEg/rQoNeu+jAaFnl0tMv+KYWomcl+sKUu/8OQiSOd"
    "9yED7lo9nfGQMroeOwo="
)


PRIVATE = "This is a private key. Make a new pair, and paste the line of its .pub file."
SEVERAL = "An SSH key is one line; add several keys one by one."
OPTIONS = "An SSH key starts with its type, without options in front of it."
UNKNOWN = (
    "An SSH key starts with its type, one of ssh-ed25519, ecdsa-sha2-nistp256, "
    "ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, ssh-rsa, sk-ssh-ed25519@openssh.com, "
    "sk-ecdsa-sha2-nistp256@openssh.com."
)
DSA_REFUSED = "DSA keys are too weak. Make a key of type ssh-ed25519."
INCOMPLETE = "An SSH key is its type, its data in base64, and a comment."
BASE64 = "The data of the SSH key is not valid base64."
OTHER_TYPE = "The data of the SSH key is not of the type in front of it."
DAMAGED = "The data of the SSH key is damaged."


def key_line(*fields: bytes) -> str:
    """Put fields together as the data of a key, each after its length."""
    return base64.b64encode(b"".join(len(f).to_bytes(4) + f for f in fields)).decode()


@pytest.mark.parametrize(
    ("key_type", "data", "fingerprint"),
    [
        pytest.param(
            "ssh-ed25519",
            ED25519,
            "SHA256:29GBDggzEvVTjPuP3G7Gg6rBhxsCpf/QYrgbg5CN7eo",
            id="ed25519",
        ),
        pytest.param(
            "ecdsa-sha2-nistp256",
            ECDSA_256,
            "SHA256:wNM2IVslOq8fOmnViSHLf2zbwHCC7adwL+k4Hy9NZPk",
            id="ecdsa256",
        ),
        pytest.param(
            "ecdsa-sha2-nistp384",
            ECDSA_384,
            "SHA256:lsbgZHb0alG2viTbTXuHl8bKFKwrUuyHEwc4cosO2MI",
            id="ecdsa384",
        ),
        pytest.param(
            "ecdsa-sha2-nistp521",
            ECDSA_521,
            "SHA256:zWO4LERrQqULphOUavfqiwmE0hY5+cbVDb0Y8637xyY",
            id="ecdsa521",
        ),
        pytest.param(
            "ssh-rsa", RSA_2048, "SHA256:Ec/2a8OMXZ4VKv8BCM99EyMtnri2dSTB+1nRyKbMDL4", id="rsa2048"
        ),
        pytest.param(
            "ssh-rsa", RSA_3072, "SHA256:IC+fKlJsDqlSTm7HKJyabo4Lftvq5Ay/GkBMBQb5Kyw", id="rsa3072"
        ),
        pytest.param(
            "sk-ssh-ed25519@openssh.com",
            SK_ED25519,
            "SHA256:V1j4k0vayryE9s8K7awFWGVs3I+5QSZNCfakCz2yJPQ",
            id="sk0",
        ),
        pytest.param(
            "sk-ecdsa-sha2-nistp256@openssh.com",
            SK_ECDSA,
            "SHA256:U62RyMcEOtMzbNmkHaq3A8lK1+0ierJ00ggXYnxxtts",
            id="sk1",
        ),
    ],
)
def test_a_key_is_read_as_openssh_prints_it(key_type: str, data: str, fingerprint: str) -> None:
    assert parse(f"{key_type} {data} ada@engine\n") == PublicKey(
        type=key_type, data=data, comment="ada@engine", fingerprint=fingerprint
    )


@pytest.mark.parametrize(
    ("line", "comment"),
    [
        pytest.param(f"ssh-ed25519 {ED25519}", "", id="no comment"),
        pytest.param(f"  ssh-ed25519 {ED25519}  \r\n\n", "", id="blanks around it"),
        pytest.param(f"ssh-ed25519\t{ED25519}\tada", "ada", id="tabs"),
        pytest.param(f"ssh-ed25519 {ED25519} Ada  on tour", "Ada on tour", id="several words"),
        pytest.param(f"ssh-ed25519 {ED25519} Zürich", "Zürich", id="letters outside ASCII"),
        pytest.param(f"ssh-ed25519 {ED25519} was ssh-dss", "was ssh-dss", id="a type in it"),
    ],
)
def test_the_comment_is_free(line: str, comment: str) -> None:
    assert parse(line).comment == comment


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("", UNKNOWN, id="empty"),
        pytest.param("hello", UNKNOWN, id="something else"),
        pytest.param(ED25519, UNKNOWN, id="data without its type"),
        pytest.param(f"ssh-ed448 {ED25519}", UNKNOWN, id="an unknown type"),
        pytest.param(f"SSH-ED25519 {ED25519}", UNKNOWN, id="a type in capitals"),
        pytest.param(f"ssh-ed25519-cert-v01@openssh.com {ED25519}", UNKNOWN, id="a certificate"),
        pytest.param("ssh-ed25519", INCOMPLETE, id="a type without data"),
        pytest.param(f"ssh-dss {DSA} ada@engine", DSA_REFUSED, id="DSA"),
        pytest.param(
            f"ssh-rsa {RSA_1024} ada@engine", "An RSA key has at least 2048 bits.", id="short RSA"
        ),
        pytest.param(f"ssh-ed25519 {ED25519}\nssh-ed25519 {ED25519}", SEVERAL, id="several lines"),
        pytest.param(
            f"ssh-ed25519 {ED25519} ada\rssh-rsa", SEVERAL, id="lines of an old Macintosh"
        ),
        pytest.param(f"ssh-ed25519 {ED25519} ada\u2028ssh-rsa", SEVERAL, id="lines of Unicode"),
        pytest.param(
            f"ssh-ed25519 {ED25519} a\0b", "An SSH key has no control characters.", id="a zero byte"
        ),
        pytest.param(f"no-pty ssh-ed25519 {ED25519}", OPTIONS, id="an option in front"),
        pytest.param(
            f'command="ls -l",no-pty ssh-ed25519 {ED25519}', OPTIONS, id="an option with spaces"
        ),
        pytest.param(f"ssh-ed25519 *{ED25519}", BASE64, id="a character outside base64"),
        pytest.param(f"ssh-ed25519 {ED25519[:-1]}", BASE64, id="base64 cut short"),
        pytest.param("ssh-ed25519 äöü=", BASE64, id="data outside ASCII"),
        pytest.param(f"ssh-rsa {ED25519}", OTHER_TYPE, id="another type inside"),
        pytest.param("ssh-rsa AAAA", OTHER_TYPE, id="nothing inside"),
        pytest.param(f"ssh-ed25519 {ED25519[:-4]}", DAMAGED, id="a key cut short"),
        pytest.param(f"ssh-ed25519 {ED25519}AAAA", DAMAGED, id="bytes after the key"),
        pytest.param(
            "ssh-ed25519 " + key_line(b"ssh-ed25519", bytes(31)), DAMAGED, id="a key of 31 bytes"
        ),
        pytest.param(
            "ecdsa-sha2-nistp256 "
            + key_line(b"ecdsa-sha2-nistp256", b"nistp256", b"\x04" + b"\x01" * 64),
            DAMAGED,
            id="a point that is not on the curve",
        ),
        pytest.param(
            f"ssh-ed25519 {ED25519} ".ljust(4097, "a"),
            "An SSH key has at most 4096 characters.",
            id="a very long comment",
        ),
    ],
)
def test_a_bad_key_is_refused_with_its_rule(text: str, sentence: str) -> None:
    with pytest.raises(InvalidSshKey) as refusal:
        parse(text)

    assert refusal.value.message == sentence
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    "format_", [PrivateFormat.OpenSSH, PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL]
)
def test_a_private_key_is_refused_and_not_repeated(format_: PrivateFormat) -> None:
    private = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, format_, NoEncryption())

    with pytest.raises(InvalidSshKey) as refusal:
        parse(private.decode())

    assert refusal.value.message == PRIVATE
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n", id="a file of PuTTY"
        ),
        pytest.param(
            "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ", id="a body without its first line"
        ),
        pytest.param(
            f"ssh-ed25519 {ED25519}\n-----BEGIN OPENSSH PRIVATE KEY-----", id="both halves"
        ),
    ],
)
def test_other_forms_of_private_keys_are_recognised(text: str) -> None:
    with pytest.raises(InvalidSshKey) as refusal:
        parse(text)

    assert refusal.value.message == PRIVATE


def test_a_line_of_4096_characters_is_accepted() -> None:
    assert parse(f"ssh-ed25519 {ED25519} ".ljust(4096, "a")).type == "ssh-ed25519"


def test_unused_bits_of_the_last_character_do_not_make_another_key() -> None:
    twisted = SK_ED25519.removesuffix("o=") + "p="

    assert parse(f"sk-ssh-ed25519@openssh.com {twisted}").data == SK_ED25519


@given(st.text(), st.sampled_from(TYPES), st.binary(max_size=64))
def test_nothing_but_a_refusal_comes_of_foreign_text(text: str, key_type: str, data: bytes) -> None:
    inner = key_line(key_type.encode(), data)
    for line in (text, f"{key_type} {text}", f"{key_type} {inner}"):
        try:
            parse(line)
        except InvalidSshKey:
            continue
        assert key_type == "ssh-ed25519"
