"""Gearhash: where the public clients cut a content into chunks.

A chunk ends where a hash of its last 64 bytes begins with 16 zero bits, so that a change moves only
the cuts near it. numpy computes the hashes of many places at once; it is loaded with this module,
which only worker processes import.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from hublet.storage.xorbs import LARGEST_CHUNK, SMALLEST_CHUNK, Buffer

_Indices = NDArray[np.intp]
_Hashes = NDArray[np.uint64]

# Each byte adds a number of this table to the hash, which is then doubled with every further byte:
# after 64 bytes nothing is left of it. This is the default table of the Rust crate `gearhash`.
_TABLE = np.frombuffer(
    bytes.fromhex(
        """
        b088d3a9e840f5595652c7f739ed20d645b28969898972ab6b0a89d5b68ec777368f573e8b7a31b7
        1dc636dce936d94b207a4c4e5554d5b6a474b34628239acb3b06a83e1ca3b91290e78d6c2f02baf7
        e1c92df7150d9a8a8e95053a1086d3ad5a2ef4f1b83a0722a50fac949f807fae0e7303eb80d8d681
        99b07edc1570ad0f689d2fb555fd307600005082119ea468c4b08306a88fcc283eb0678af6374afd
        f19f87ab86ad7436f2129fbfbe6bc736481149575c98a4ed0000010695477bc51fba37801a9ceacc
        3bf06fd663a49b6d99687e9782e3874b79a10673aa50d8e3e4accf9e6211f4202520e71f87579071
        2bd5d3fd781a8a9b00de4dcddd11c873eaa9311c5a87392fdb748eb617bc40ffaf579a8df620bf6f
        86a6e5da1b09c2b1cc2fc30ac322a12e355e2afec1f742672d99c8f4c021a47bbade4b4a9404cfc3
        f7b518721d707d693286b6587bf32c200000b68886af270ca115d6e4db8a9079484f7e9c97b2e199
        ccca7bb75713e301bf2584a62bb0f160ade7e813625dbcc8000070940d87955a8ae69108139e626f
        bd776ad72fde38a2fb6b001fc2fcc0cfc7a474b8e67bc427baf6f11610eb5d5809cb1f5b6de770d1
        b0b219e6977d4c4700ccbc386ea7ad4acc849d0adf973f0173a3ef7d016af770c807d2d386bdbdfe
        7f2ac9966c791730d037a86bc6c504daf3f17c661eaa609daca626b04daae687755a99374f4a5b07
        90837ee65b2caede6ee8ad93fd5607850000d9e11053edd89e063bb2d21cdbd707ab77f12a01d2b2
        ec550255e6641b4478fb94a8449c14c6c7510e1bc6c0f5f50000320b36e4cae3827c33262c8b1a2d
        14675f0b48ea4144267bd3a6498decebf1916ff982f5035e86221b7ff434fb889dbecee7386f49d8
        ea58f8cac80f8f4a008d198692fc64d86d38704fbabf9a36e032cb07d1e7be4c228d21f6ad450890
        635cb1bfc02589a54620a1739ca2ce71a7e7dfe3aae5fb580c10ca932b3c0deb2727fee884afed7b
        a2df1c6df9e2ab1f4dcdd1ac0774f523000070ffad33e24ea2ace87bc59778169892275ab4286049
        c2861181ddf18959bb9972a042483e19ef70cd376651307800000513abfc9864c058b61858c94083
        09e850859725e0de9197fb3bf83e7d947e1e626d12b64bce520c54507f7b57d1bee1797174e22416
        6fd9ac3222e955870023957c9adfbf3ea01c7d7e234bbe15aba2c758b8a38cbb0d1fa0ceec3e2b30
        0bb6a58b7e60b9914333dd5b9fa26635c2fd3b7d4001c1a3fb4180245473112765a56185a50d18cb
        f67a02bd8784b54f696f11dd67e6506300002022fca814ab8cd6be912db9d852695189b6e9ae8a57
        ee9453b50ada0c28d8fc5ea91a78845eab86bf191a4aa7670000c6b5c86415e5267310178e08a22e
        ed2d101b078bca253b41ed84b226a8fb13e622120f28dc06a315f5ebfb706d268816c34e3301bace
        e9395b9cbb71fdae002ce9202e7216484283db1d2bb3c91cd77d461ad2b1a6a5e2ec17e46eeb866b
        b8e0be4039fbc47cdea160c4d5299d047eec86c8d28c36342119ad129f98a399a6ccf46b61a283ef
        2c52cedef658c6172db4871169acdd830000f0d6f39ecbe93dd5d8c98d2f94898a1872a22b01f584
        f282a4c40e7b3cf28020ec2ccb1ba1966693b6e09e59e3130000ce19cc7c83eb20cb5735f6479c3b
        762ebf3759d75a5b207bfe823d693975d77dc112339cd9d59ba7834284627d03217dc513e95f51e9
        b27b1a29fc5e781600d5cd9831bb662d71e39b806d75734c7e572af006fb1a23a2734f2f6ae91f85
        bf82c6b5022cddf25c3beac60761a0decdc893bb474169986d1085615c187e0177f8ae30ac277c5d
        917c6b81122a2c915b75b699add169670000cf6ae79a069bf3c40afa60de11042063127aa59167c3
        621de62269d1894dd188ac1de62b4726107036e2154b673c0000b85f28553a1df2ef4e4c18236f3d
        d9d6de6611b9f602a1fc7955fb47911ceb85fd032f298dbdbe27502fb3befae1e3034251c4cd661e
        441364d3540718360082b36c75f2983eb145910316fa66f0021c069c9847caf72910dfc75a4b5221
        735b353e1c57a8b5ce44312ce98ed96cbc942e4506bdfa65f05086a71257941bfec3b215d351cead
        00ae1055e0144202f54b40846f42e45400007fd9c8bcbcc8bfbd9ef317de9bfea804302ff2854e12
        39ce4957a5e5d8d4ffb9e2a45637ba8455b9ad1d9ea0818b00008acbf319178a48e2bfc8d0fbfb38
        8be39841e848b5e80e2712160696a08bd51096e84b44242a1101ba176792e13ac22e770f4531689d
        1689eff272bbc56c00a92a197f5650ecbc765990bda1784ec61441e392fcb8ae07e13a2ced31e4a0
        92cbe984234e9d4d8f4ff572bb7d8ac50b9670c00b963bd062955a581a03eb01645f83e5ea000254
        41fce516cd88f299bbda9748da7a98cf0000aab2fe4845fa19761b069bf565558b8f5e8343b6ad56
        3e5d1cfd144821d9ec5c1e2ca2b0cd8ffaf7e0fea7fbb57f000000d3ba12961bda3f90178401b18e
        70ff906de33a5feb0527d5a7c06970e722d8e773607c13e9c9ab70df643c3baceda4c6dc8abe12e3
        ecef1f410033e78a0024c2b274ac72cb06740d954fa900b41d7a299b323d6304b3c37cb298cbead5
        c986e3c76178739b9fabea364b46f58a6da214c5af85cc5617a43ed8b7a38f846eccec511d9adbeb
        f9cab30913335afb4a5e60c5f415eed200006967503672b49da51d121454bb8784321e13b9bbc816
        fb3d6fb6ab2fdd8d60305eed8e160a8dcbbf4b14e9946ce800004f63381b10c307d5b7816fcc4e10
        e5a536726a6a815557afb23447a07fdd18f346f7abc9d394636dc655d61ad33dcc8bab4939f7f3f6
        63c7a906c1dd187b
        """
    ),
    dtype=">u8",
).astype(np.uint64)
_WINDOW = 64
_STEPS = (1, 2, 4, 8, 16, 32)
_FIRST_HASH_WITHOUT_CUT = np.uint64(1 << 48)
# As much as stays in the cache of a processor with the hashes of all its places.
_BLOCK_BYTES = 32 * 1024
# Whatever follows the last cut of a piece is hashed again with the next one.
_PIECE_BYTES = 1024 * 1024


def cut(pieces: Iterable[Buffer]) -> Iterator[memoryview]:
    """Yield the chunks of a content that is given in pieces of any length."""
    scratch = _Scratch()
    rest = b""
    for joined in _joined(pieces):
        rest += joined
        end = 0
        for start, end in _complete_chunks(rest, scratch):
            yield memoryview(rest)[start:end]
        rest = rest[end:]
    if rest:
        yield memoryview(rest)


def _joined(pieces: Iterable[Buffer]) -> Iterator[bytes]:
    gathered: list[Buffer] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)


class _Scratch:
    """Space for the hashes of a block, which is taken from the system only once."""

    def __init__(self) -> None:
        room = _BLOCK_BYTES + _WINDOW - 1
        self.indices = np.empty(room, dtype=np.intp)
        self.hashes = np.empty(room, dtype=np.uint64)
        self.older = np.empty(room, dtype=np.uint64)


def _complete_chunks(data: bytes, scratch: _Scratch) -> Iterator[tuple[int, int]]:
    """Yield where chunks begin and end, except the last: more bytes may belong to it."""
    ends = _possible_ends(data, scratch)
    start = 0
    while True:
        at = bisect_left(ends, start + SMALLEST_CHUNK)
        end = min(ends[at], start + LARGEST_CHUNK) if at < len(ends) else start + LARGEST_CHUNK
        if end > len(data):
            return
        yield start, end
        start = end


def _possible_ends(data: bytes, scratch: _Scratch) -> list[int]:
    """Return behind which bytes the hash says that a chunk may end, except the first 63."""
    values = np.frombuffer(data, dtype=np.uint8)
    indices, hashes, older = scratch.indices, scratch.hashes, scratch.older
    ends: list[int] = []
    for start in range(0, len(data), _BLOCK_BYTES):
        # The hash of a place needs the bytes before it.
        first = max(start - _WINDOW + 1, 0)
        block = values[first : start + _BLOCK_BYTES]
        count = len(block)
        indices[:count] = block
        _hash(indices[:count], hashes[:count], older[:count])
        found = np.flatnonzero(hashes[_WINDOW - 1 : count] < _FIRST_HASH_WITHOUT_CUT)
        ends += (found + (first + _WINDOW)).tolist()
    return ends


def _hash(indices: _Indices, hashes: _Hashes, older: _Hashes) -> None:
    """Compute the hash of the 64 bytes that end at each place; `older` is scratch space."""
    # With an array for the result and no check of the indices this is twice as fast.
    _TABLE.take(indices, out=hashes, mode="clip")
    for step in _STEPS:
        # From the hashes of so many bytes to those of twice as many.
        behind = hashes[step:]
        np.left_shift(hashes[:-step], np.uint64(step), out=older[step:])
        np.add(behind, older[step:], out=behind)
