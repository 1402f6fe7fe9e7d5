"""A private MariaDB server on a folder of its own, for writing dumps with the real `mysqldump`."""

import getpass
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_START_SECONDS = 60.0
_PROGRAMS = {
    "server": ("mariadbd", "mysqld"),
    "install": ("mariadb-install-db", "mysql_install_db"),
    "client": ("mariadb", "mysql"),
    "dump": ("mariadb-dump", "mysqldump"),
}


class MariaDBError(RuntimeError):
    """The server could not be started, or refused a statement."""


@dataclass(frozen=True, slots=True)
class MariaDB:
    """A running server, reached by its socket only."""

    socket: Path
    programs: dict[str, str]

    def run(self, sql, *, database=None):
        """Run statements."""
        options = ["--batch", "--binary-mode", "--skip-column-names"]
        options += ["--default-character-set=binary", *([database] if database else [])]
        return self._call("client", options, sql)

    def dump(self, database, table, *options):
        """Write a table as `mysqldump` does."""
        return self._call("dump", [*options, database, table], b"")

    def _call(self, program, arguments, text):
        """Run a client program on the socket."""
        done = subprocess.run(
            [self.programs[program], "--no-defaults", f"--socket={self.socket}", *arguments],
            input=text,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise MariaDBError(done.stderr.decode(errors="replace").strip())
        return done.stdout


def find_programs():
    """Find MariaDB's programs."""
    found = {}
    for use, names in _PROGRAMS.items():
        paths = [shutil.which(name, path=_search_path()) for name in names]
        path = next(filter(None, paths), None)
        if path is None:
            return None
        found[use] = path
    return found


@contextmanager
def running_mariadb(folder):
    """Start a server in a folder, and stop it at the end."""
    programs = find_programs()
    if programs is None:
        raise MariaDBError("MariaDB is not installed; on Debian: apt-get install mariadb-server")
    data = folder / "data"
    log = folder / "server.log"
    _install(programs["install"], data)
    with tempfile.TemporaryDirectory(prefix="mariadb-") as short, log.open("wb") as lines:
        socket = Path(short, "socket")
        server = subprocess.Popen(
            [programs["server"], *_server_options(data, socket)], stdout=lines, stderr=lines
        )
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


def _search_path():
    """Return the folders of programs, with those of servers, which a user's path may lack."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


def _install(program, data):
    """Write the system tables."""
    command = [program, "--no-defaults", f"--datadir={data}", f"--user={getpass.getuser()}"]
    command += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise MariaDBError(f"{program} failed: {output[-1000:]}")


def _server_options(data, socket):
    """Return the options of a small server that no network reaches."""
    return [
        "--no-defaults",
        f"--datadir={data}",
        f"--socket={socket}",
        f"--pid-file={data / 'pid'}",
        f"--user={getpass.getuser()}",
        "--skip-networking",
        "--skip-log-bin",
        "--innodb-buffer-pool-size=32M",
        "--innodb-flush-log-at-trx-commit=0",
        "--max-allowed-packet=256M",
        "--character-set-server=binary",
        "--sql-mode=NO_AUTO_VALUE_ON_ZERO",
    ]


def _wait(server, database, log):
    """Wait until the server answers."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            database.run(b"SELECT 1")
        except MariaDBError:
            time.sleep(0.05)
        else:
            return
    lines = log.read_text(errors="replace").splitlines()[-5:]
    raise MariaDBError("MariaDB did not start: " + " | ".join(lines))
