// Every request to its end. Only this part returns what a request holds, so a client that goes away cannot keep it.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpRequest } from './context.ts';

/** Requests of one connection that wait for their answer. No client of ours pipelines; a flood that does is cut. */
export const MAX_UNANSWERED_REQUESTS = 16;

/** For the rest of a body that the signer does not read: as long as an admitted client has for a whole body. */
const UNREAD_BODY_MS = 30_000;

interface OpenRequests {
  /** False when the connection has too many already: it is closed, and the request goes no further. */
  begin(request: HttpRequest, response: ServerResponse): boolean;
}

const byConnection = new WeakMap<Socket, Map<HttpRequest, ServerResponse>>();

export function hasOpenRequests(socket: Socket): boolean {
  return (byConnection.get(socket)?.size ?? 0) > 0;
}

/** @param onEnd called exactly once for each request that began */
export function trackOpenRequests(onEnd: (request: HttpRequest, response: ServerResponse) => void): OpenRequests {
  const openOf = (socket: Socket): Map<HttpRequest, ServerResponse> => {
    const known = byConnection.get(socket);
    if (known !== undefined) return known;
    const open = new Map<HttpRequest, ServerResponse>();
    byConnection.set(socket, open);
    // An answer that waits behind another one on this connection never hears that the connection is gone.
    socket.once('close', () => {
      for (const [request, response] of open) end(open, request, response);
    });
    return open;
  };
  const end = (open: Map<HttpRequest, ServerResponse>, request: HttpRequest, response: ServerResponse): void => {
    if (open.delete(request)) onEnd(request, response);
  };

  return {
    begin(request, response) {
      const { socket } = request.raw;
      const open = openOf(socket);
      if (open.size >= MAX_UNANSWERED_REQUESTS) {
        socket.destroy();
        return false;
      }
      open.set(request, response);
      // After the last byte is handed over, and also when the connection breaks before.
      response.once('close', () => {
        end(open, request, response);
        boundUnreadBody(request);
      });
      return true;
    },
  };
}

/** Node reads on until the body is over: who sends it byte by byte would have the connection for ever. */
function boundUnreadBody({ raw }: HttpRequest): void {
  if (raw.complete || raw.destroyed) return;
  const timer = setTimeout(() => {
    if (!raw.complete) raw.destroy(); // and with it its connection, where it has one: under inject() it has none
  }, UNREAD_BODY_MS);
  timer.unref();
  raw.once('close', () => clearTimeout(timer));
}
