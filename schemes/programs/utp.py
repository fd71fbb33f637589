"""One end of a uTP flow, by libtorrent: a seed that sends, or a peer that receives. See ``utp.yaml``.

The torrent takes no disk. All its pieces have the same random content, and its files are descriptors of one file in
memory, by the names ``/proc/self/fd/N``. Both ends make the same torrent of the same seed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import warnings
from collections.abc import Iterable
from typing import Any

PIECE_BYTES = 2**20
FILE_BYTES = 64 * PIECE_BYTES
"""Memory that an end takes for the data."""
DESCRIPTORS = range(100, 356)
"""The numbers of the files: 16 GiB, 20 minutes at 100 Mbit/s."""


def torrent(lt: Any, content: bytes) -> Any:
    """The description of the torrent."""
    files = lt.file_storage()
    files.set_name("fd")
    for number in DESCRIPTORS:
        files.add_file(f"fd/{number}", FILE_BYTES)
    made = lt.create_torrent(files, PIECE_BYTES, lt.create_torrent.v1_only)
    digest = hashlib.sha1(content).digest()
    for piece in range(made.num_pieces()):
        made.set_hash(piece, digest)
    return lt.torrent_info(lt.bencode(made.generate()))


def open_files(pieces: Iterable[bytes]) -> None:
    """Open the files, all of them one file in memory that holds the pieces."""
    memory = os.memfd_create("utp")
    for piece in pieces:
        os.write(memory, piece)
    for number in DESCRIPTORS:
        os.dup2(memory, number)


def settings(lt: Any, port: int, target_ms: int) -> dict[str, Any]:
    """Settings of a session that speaks uTP alone, has no limits, and meets nobody but its peer."""
    return {
        "listen_interfaces": f"0.0.0.0:{port}",
        "enable_outgoing_tcp": False,
        "enable_incoming_tcp": False,
        "enable_dht": False,
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "utp_target_delay": target_ms,
        "peer_dscp": 0,
        # Enough is asked for and at hand to fill 1 Gbit/s over 100 ms.
        "max_out_request_queue": 2000,
        "max_allowed_in_request_queue": 4000,
        "send_buffer_watermark": 16 * 2**20,
        "alert_mask": lt.alert.category_t.error_notification,
    }


def run(lt: Any, args: argparse.Namespace) -> None:
    """Send or receive until SIGTERM, with a line each second."""
    sends = args.command == "send"
    content = random.Random(1).randbytes(PIECE_BYTES)
    open_files([content] * (FILE_BYTES // PIECE_BYTES) if sends else [])
    made = lt.add_torrent_params()
    made.ti = torrent(lt, content)
    made.save_path = "/proc/self"
    made.flags = lt.torrent_flags.seed_mode if sends else lt.torrent_flags.default_flags
    made.flags &= ~(lt.torrent_flags.paused | lt.torrent_flags.auto_managed)
    session = lt.session(settings(lt, 0 if sends else args.port, args.target))
    handle = session.add_torrent(made)
    if sends:
        handle.connect_peer((args.address, args.port))
    while True:
        session.wait_for_alert(1000)
        for alert in session.pop_alerts():
            print(alert.message())
        status = handle.status()
        rates = f"sends {status.upload_rate} B/s, receives {status.download_rate} B/s"
        print(f"{status.state}, {status.num_peers} peers, {rates}", flush=True)


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description="One end of a uTP flow, by libtorrent.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version", help="print the library's version")
    send = commands.add_parser("send", help="send to a peer")
    send.add_argument("address")
    receive = commands.add_parser("receive", help="wait for a seed, and receive")
    for command in (send, receive):
        command.add_argument("port", type=int)
        command.add_argument("--target", type=int, default=100, metavar="MS", help="target delay (default: 100)")
    args = parser.parse_args()
    try:
        import libtorrent as lt
    except ImportError as error:
        sys.exit(f"{error}: pip install libtorrent")
    if args.command == "version":
        print(f"libtorrent {lt.__version__}")
        return
    # What replaces the constructor of torrents in 2.1 is not in 2.0.
    warnings.simplefilter("ignore", DeprecationWarning)
    run(lt, args)


if __name__ == "__main__":
    main()
