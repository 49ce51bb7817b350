"""Run inside a sandbox: forward connections on 127.0.0.1 to the proxy's socket while the command runs.

    python3 forward.py PORT SOCKET COMMAND...

The namespace has no interface but loopback; this socket is the only way out, and the proxy at its other end decides.
Exits with the command's exit code, or 128 plus its signal.
"""

import os
import socket
import sys
import threading


def main(port: int, path: str, command: list[str]) -> int:
    server = socket.create_server(("127.0.0.1", port))
    child = os.fork()
    if child == 0:
        os.execvp(command[0], command)
    threading.Thread(target=_accept, args=(server, path), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _accept(server: socket.socket, path: str) -> None:
    while True:
        client, _ = server.accept()
        threading.Thread(target=_join, args=(client, path), daemon=True).start()


def _join(client: socket.socket, path: str) -> None:
    with client, socket.socket(socket.AF_UNIX) as proxy:
        try:
            proxy.connect(path)
            answer = threading.Thread(target=_pour, args=(proxy, client), daemon=True)
            answer.start()
            _pour(client, proxy)
            answer.join()
        except OSError:
            return


def _pour(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
