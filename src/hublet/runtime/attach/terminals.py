"""Pseudo-terminal among the job's own devices, so that programs inside find it under its name."""

import errno
import fcntl
import os
import stat
import struct
import termios

_MULTIPLEXER = os.makedev(5, 2)
# TIOCGPTPEER opens the other end of a terminal without its name.
_GET_PEER, _LOCK = 0x5441, 0x40045431

# RFC 4254, section 8: opcodes of control characters, and of flags with their place in termios.
_CHARACTERS = {
    1: termios.VINTR,
    2: termios.VQUIT,
    3: termios.VERASE,
    4: termios.VKILL,
    5: termios.VEOF,
    6: termios.VEOL,
    7: termios.VEOL2,
    8: termios.VSTART,
    9: termios.VSTOP,
    10: termios.VSUSP,
    12: termios.VREPRINT,
    13: termios.VWERASE,
    14: termios.VLNEXT,
}
_INPUT, _OUTPUT, _LOCAL = 0, 1, 3
_FLAGS = {
    34: (_INPUT, termios.ISTRIP),
    35: (_INPUT, termios.INLCR),
    36: (_INPUT, termios.IGNCR),
    37: (_INPUT, termios.ICRNL),
    38: (_INPUT, termios.IXON),
    39: (_INPUT, termios.IXANY),
    40: (_INPUT, termios.IXOFF),
    50: (_LOCAL, termios.ISIG),
    51: (_LOCAL, termios.ICANON),
    53: (_LOCAL, termios.ECHO),
    54: (_LOCAL, termios.ECHOE),
    55: (_LOCAL, termios.ECHOK),
    56: (_LOCAL, termios.ECHONL),
    57: (_LOCAL, termios.NOFLSH),
    70: (_OUTPUT, termios.OPOST),
    72: (_OUTPUT, termios.ONLCR),
}


def open_terminal(size: tuple[int, int, int, int]) -> tuple[int, int]:
    """Return master and slave; the size is columns, rows, and the same in pixels."""
    master = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(master)
    # The master goes to the hub, and the job could have put another file here.
    if not stat.S_ISCHR(found.st_mode) or found.st_rdev != _MULTIPLEXER:
        raise OSError(errno.ENOTTY, "the job has no terminals")
    fcntl.ioctl(master, _LOCK, struct.pack("i", 0))
    slave = fcntl.ioctl(master, _GET_PEER, os.O_RDWR | os.O_NOCTTY)
    resize(master, size)
    return master, slave


def resize(master: int, size: tuple[int, int, int, int]) -> None:
    columns, rows, width, height = (min(max(each, 0), 0xFFFF) for each in size)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, width, height))


def set_modes(slave: int, modes: dict[int, int]) -> None:
    """Set the control characters and flags of the client's terminal."""
    setting = termios.tcgetattr(slave)
    for opcode, value in modes.items():
        if (character := _CHARACTERS.get(opcode)) is not None:
            setting[6][character] = bytes([value & 0xFF])
        elif (flag := _FLAGS.get(opcode)) is not None:
            place, bit = flag
            setting[place] = setting[place] | bit if value else setting[place] & ~bit
    termios.tcsetattr(slave, termios.TCSANOW, setting)
