"""A private MariaDB server in a separate folder, for writing dumps with `mysqldump`."""

import getpass
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

_START_SECONDS = 60.0
_PROGRAMS = {
    "server": ("mariadbd", "mysqld"),
    "install": ("mariadb-install-db", "mysql_install_db"),
    "client": ("mariadb", "mysql"),
    "dump": ("mariadb-dump", "mysqldump"),
}
_OPTIONS = (
    *("--skip-networking", "--skip-log-bin", "--innodb-buffer-pool-size=32M"),
    *("--innodb-flush-log-at-trx-commit=0", "--max-allowed-packet=256M"),
    *("--character-set-server=binary", "--sql-mode=NO_AUTO_VALUE_ON_ZERO"),
)
"""Options of a small server without network access."""


class MariaDB:
    """A running server, accessible only by its socket."""

    def __init__(self, socket, programs):
        self.socket, self.programs = socket, programs

    def run(self, sql, *, database=None):
        """Run statements."""
        options = ["--batch", "--binary-mode", "--skip-column-names"]
        options += ["--default-character-set=binary", *([database] if database else [])]
        return self._call("client", options, sql)

    def dump(self, database, table, *options):
        """Return the dump of a table by `mysqldump`."""
        return self._call("dump", [*options, database, table], b"")

    def _call(self, program, arguments, text):
        """Run a client program on the socket."""
        command = [self.programs[program], "--no-defaults", f"--socket={self.socket}", *arguments]
        return _output(command, input=text)


def find_programs():
    """Find MariaDB's programs; those of the server may not be in the PATH of users."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = {
        use: next(filter(None, (shutil.which(name, path=places) for name in names)), None)
        for use, names in _PROGRAMS.items()
    }
    return found if all(found.values()) else None


@contextmanager
def running_mariadb(folder):
    """Start a server in a folder, and stop it at the end."""
    programs = find_programs()
    if programs is None:
        raise RuntimeError("MariaDB is not installed; on Debian: apt-get install mariadb-server")
    place = ["--no-defaults", f"--datadir={folder / 'data'}", f"--user={getpass.getuser()}"]
    methods = ["--auth-root-authentication-method=normal", "--skip-test-db"]
    _output([programs["install"], *place, *methods])
    log = folder / "server.log"
    with tempfile.TemporaryDirectory(prefix="mariadb-") as short, log.open("wb") as lines:
        socket = Path(short, "socket")
        place += [f"--socket={socket}", f"--pid-file={folder / 'data' / 'pid'}"]
        command = [programs["server"], *place, *_OPTIONS]
        server = subprocess.Popen(command, stdout=lines, stderr=lines)
        try:
            database = MariaDB(socket, programs)
            _wait(server, database, log)
            yield database
        finally:
            server.terminate()
            try:
                server.wait(timeout=_START_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _output(command, **options):
    """Run a program to its end."""
    done = subprocess.run(command, capture_output=True, check=False, **options)
    if done.returncode:
        output = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise RuntimeError(f"{command[0]} failed: {output[-1000:]}")
    return done.stdout


def _wait(server, database, log):
    """Wait until the server answers."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            database.run(b"SELECT 1")
        except RuntimeError:
            time.sleep(0.05)
        else:
            return
    lines = log.read_text(errors="replace").splitlines()[-5:]
    raise RuntimeError("MariaDB did not start: " + " | ".join(lines))
