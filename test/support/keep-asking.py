# Sends requests one after another over one kept TLS connection with Python's http.client, and says how many were
# answered as they should be. argv: URL, file of the CA, token, file with a JSON list of requests.

import http.client
import json
import ssl
import sys
import urllib.parse

url, ca, token, path = sys.argv[1:]
target = urllib.parse.urlsplit(url)
connection = http.client.HTTPSConnection(target.hostname, target.port, context=ssl.create_default_context(cafile=ca))
connections = 0
answered = 0
with open(path) as file:
    requests = json.load(file)
for request in requests:
    if connection.sock is None:
        connections += 1
    try:
        body = request["body"].encode() or None
        connection.request(request["method"], request["path"], body, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status == request["status"] and len(content) > 0:
            answered += 1
        else:
            print(f"{request['method']} {request['path']}: {answer.status} {content[:200]!r}", file=sys.stderr)
    except (OSError, http.client.HTTPException) as error:
        print(f"{request['method']} {request['path']}: {error!r}", file=sys.stderr)
        connection.close()
print(f"{answered} answered on {connections} connection{'' if connections == 1 else 's'}")
