"""A PostgreSQL server for the tests that need one."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "a password with @ : / and %"
_USERS = ("postgres", "nobody")


@dataclass(frozen=True)
class Server:
    """A running server with the user "tester".

    Attributes:
        port: Port of 127.0.0.1 on which it listens.
    """

    port: int

    def url(self, name: str, user: str = "tester", password: str = PASSWORD) -> str:
        """The URL of one of its databases."""
        from sqlalchemy.engine import URL

        url = URL.create("postgresql", user, password, "127.0.0.1", self.port, name)
        return url.render_as_string(hide_password=False)

    def run(self, statement: str) -> None:
        """Run a statement that stands outside of databases."""
        import psycopg

        with psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="tester",
            password=PASSWORD,
            dbname="postgres",
            autocommit=True,
        ) as connection:
            connection.execute(statement.encode())


def programs() -> Path | None:
    """The folder with initdb and pg_ctl, if PostgreSQL is installed."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


@contextmanager
def running_server(bin_folder: Path, *, durable: bool = False) -> Iterator[Server]:
    """Start a server on a free port with its data in a new folder, and stop it at the end.

    Unless it is to be durable it does not wait for the disk, which tests need not.
    It refuses to run as root; then an unprivileged user runs it, who could not enter pytest's own folders.
    """
    user = _unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="intarsia-postgresql-"))
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data, password = folder / "data", folder / "password"
        password.write_text(PASSWORD + "\n")
        password.chmod(0o644)
        options = ("--username=tester", "--auth=scram-sha-256", f"--pwfile={password}", "--no-sync")
        _run(user, folder, bin_folder / "initdb", "-D", data, "--encoding=UTF8", "--locale=C", *options)
        port = _free_port()
        settings = (
            f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync={'on' if durable else 'off'}"
        )
        log = folder / "log"
        _run(
            user,
            folder,
            bin_folder / "pg_ctl",
            "-D",
            data,
            "-w",
            "-t",
            120,
            "-l",
            log,
            "-o",
            settings,
            "start",
        )
        try:
            yield Server(port)
        finally:
            _run(user, folder, bin_folder / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Who runs the server instead of root; None where that is not needed."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam(next(name for name in _USERS if name in names))


def _run(user: pwd.struct_passwd | None, folder: Path, *command: object) -> None:
    ids = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
    output = folder / "output"  # no pipe: the server would keep it open
    with output.open("wb") as file:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
            **ids,  # type: ignore[call-overload]  # these are its arguments
        )
    assert done.returncode == 0, output.read_text()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
