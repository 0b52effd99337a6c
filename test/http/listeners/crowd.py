# A crowd that is none of ours, on Python's standard library alone: attackers of one address that open connections, say
# nothing or only begin to, and open each again when it is cut; and meanwhile, one after another, honest clients of
# another address. Its plan is JSON on standard input; what became of the honest ones, JSON on standard output.

import json
import selectors
import socket
import ssl
import struct
import sys
import threading

plan = json.load(sys.stdin)
counted = {"opened": 0, "cut": 0}


def proxy_header(source):
    """PROXY protocol, version 2: TCP over IPv4."""
    addresses = socket.inet_aton(source) + socket.inet_aton("127.0.0.1") + struct.pack("!HH", 51234, 9443)
    return b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + struct.pack("!H", len(addresses)) + addresses


def connected(source):
    if "path" in plan["at"]:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(plan["at"]["path"])
    else:
        stream = socket.create_connection(("127.0.0.1", plan["at"]["port"]), source_address=(source, 0))
    if plan["proxyHeader"]:
        stream.sendall(proxy_header(source))
    return stream


def attack(filled, over):
    open_ones = selectors.DefaultSelector()
    while not over.is_set():
        while len(open_ones.get_map()) < plan["attackers"]:
            try:
                stream = connected(plan["attacker"])
                counted["opened"] += 1
                # so that no port is kept waiting
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                stream.sendall(bytes.fromhex(plan["says"]))
                stream.setblocking(False)
                open_ones.register(stream, selectors.EVENT_READ)
            except OSError:
                counted["cut"] += 1
                break
        if counted["opened"] >= plan["attackers"]:
            filled.set()
        for key, _ in open_ones.select(0.01):
            try:
                is_cut = key.fileobj.recv(4096) == b""
            except BlockingIOError:
                continue
            except OSError:
                is_cut = True
            if is_cut:
                counted["cut"] += 1
                open_ones.unregister(key.fileobj)
                key.fileobj.close()


def honest():
    """The status of one request on a connection of its own, or what it failed with."""
    try:
        with connected(plan["honest"]) as stream:
            if not plan["tls"]:
                return asked(stream)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(["http/1.1"])
            with context.wrap_socket(stream) as secure:
                return asked(secure)
    except OSError as error:
        return repr(error)


def asked(stream):
    stream.sendall(f"GET {plan['request']} HTTP/1.1\r\nHost: signer\r\nAuthorization: Bearer {plan['token']}\r\n\r\n".encode())
    received = b""
    while b"\r\n" not in received:
        piece = stream.recv(4096)
        if piece == b"":
            return "the end of the connection"
        received += piece
    return int(received.split(b" ")[1])


filled, over = threading.Event(), threading.Event()
attacker = threading.Thread(target=attack, args=(filled, over), daemon=True)
attacker.start()
filled.wait()
statuses = [honest() for _ in range(plan["newcomers"])]
over.set()
attacker.join()
json.dump({"statuses": statuses, **counted}, sys.stdout)
