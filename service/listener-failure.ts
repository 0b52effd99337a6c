// Why a listener could not be opened, with the option that decides it. The system says only EADDRINUSE, and a signer
// has three listeners.

import { errorCode } from '../common/formats/error-code.ts';
import type { ListenAddress } from '../signer/http/listeners/ports.ts';

export type ListenerSection = 'server' | 'metrics' | 'tls';

export interface ListeningProblem {
  readonly path: `${ListenerSection}.listen_address` | `${ListenerSection}.listen_port`;
  readonly problem: string;
  readonly remedy: string;
  readonly isInUse: boolean;
}

export function listeningProblem(
  section: ListenerSection,
  { host, port }: ListenAddress,
  error: unknown,
): ListeningProblem {
  const code = errorCode(error) ?? 'failed';
  const atPort = `${section}.listen_port` as const;
  const atAddress = `${section}.listen_address` as const;
  const isInUse = code === 'EADDRINUSE';
  switch (code) {
    case 'EADDRINUSE': {
      const problem = `is ${port}, where another process listens already, on ${host} (${code})`;
      const remedy = `stop that process (\`ss -ltnp 'sport = :${port}'\` names it), or choose another port`;
      return { path: atPort, problem, remedy, isInUse };
    }
    case 'EACCES': {
      const problem = `is ${port}, which this user may not listen on (${code})`;
      return { path: atPort, problem, remedy: 'choose a port from 1024 on', isInUse };
    }
    case 'EADDRNOTAVAIL': {
      const remedy = 'name an address that `ip address` shows, or 0.0.0.0 or :: for all of them';
      return { path: atAddress, problem: `is ${host}, no address of this machine (${code})`, remedy, isInUse };
    }
    case 'ENOTFOUND':
    case 'EAI_AGAIN': {
      const problem = `is ${host}, a name that leads to no address (${code})`;
      return { path: atAddress, problem, remedy: 'correct the name, or write an IP address', isInUse };
    }
    default: {
      const said = error instanceof Error ? error.message : String(error);
      const problem = `is ${host}, and nothing can listen there on port ${port} (${said})`;
      return { path: atAddress, problem, remedy: 'correct listen_address or listen_port', isInUse };
    }
  }
}

/** @throws Error that names the option, when `listen` rejects */
export async function listening<Opened>(
  section: ListenerSection,
  address: ListenAddress,
  listen: () => Promise<Opened>,
): Promise<Opened> {
  try {
    return await listen();
  } catch (error) {
    const { path, problem, remedy } = listeningProblem(section, address, error);
    throw new Error(`${path} ${problem}: ${remedy}`, { cause: error });
  }
}
