// What a start would find of the files that a configuration names: part of `server --check` (check-start.ts).
// The network's config.yaml, key directories, TLS files, the roots of the database's certificate, and the folder of the
// SQLite database. Stores are not opened, and nothing is written.

import { accessSync, constants, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { renderPath, type Violation } from '../../command-line/violations.ts';
import { errorCode } from '../../formats/error-code.ts';
import { readNetwork } from '../config/network.ts';
import type { Config, OptionPath } from '../config/options.ts';
import type { ConfigWarning } from '../config/warnings.ts';
import { DESCRIPTOR_NAME, KEYSTORE_NAME } from '../keys/files/listing.ts';
import { parsePostgresUrl } from '../slashing/postgres/connection/address.ts';
import { certificateWarning, clientCaWarning, judgeCertificatePair } from '../tls/file.ts';
import { readKnownClientsFile } from '../tls/known-clients-file.ts';
import { lookAtKeyFiles } from './check-keys.ts';

export interface FilesFound {
  readonly violations: readonly Violation[];
  readonly warnings: readonly ConfigWarning[];
}

/** An enclave has no files but its image's: nothing is looked at for one. */
export async function lookAtFiles(config: Config, nowMs: number = Date.now()): Promise<FilesFound> {
  if (config.tee.platform === 'nitro') return { violations: [], warnings: [] };
  const network = networkFile(config);
  const certificate = await certificateOf(config, nowMs);
  return {
    violations: [
      ...network.violations,
      ...keyDirectories(config),
      ...certificate.violations,
      ...clientFiles(config),
      ...slashingFiles(config),
    ],
    warnings: [
      ...network.warnings,
      ...emptyFolders(config),
      ...(await lookAtKeyFiles(config)),
      ...certificate.warnings,
    ],
  };
}

/** Schedules of other networks are a matter of the configuration alone, and are checked with it. */
function networkFile(config: Config): FilesFound {
  const at: OptionPath = 'custom_network.config_file';
  if (config.custom_network.config_file === undefined) return { violations: [], warnings: [] };
  const reading = readNetwork(config, (path) => readFileSync(path));
  if ('network' in reading) {
    const says = ({ name, epoch }: { name: string; epoch: number }) =>
      `plans ${name} at epoch ${epoch}, a fork that this release does not know: install one that does before that epoch`;
    return { violations: [], warnings: reading.unknownForks.map((fork) => ({ at, says: says(fork) })) };
  }
  const violations = reading.findings.map(({ at, within = [], problem, remedy }) =>
    found(renderPath([at, ...within]), problem, remedy),
  );
  return { violations, warnings: [] };
}

function keyDirectories({ key_sources: { filesystem, memory } }: Config): Violation[] {
  const { path, passwords_path, password_file } = filesystem.keystores;
  return [
    ...(memory.persist_dir === undefined ? [] : unwritable(memory.persist_dir)),
    ...filesystem.paths.flatMap((folder, index) => unreadable(`paths[${index}]`, folder, readdirSync)),
    ...(path === undefined ? [] : unreadable('keystores.path', path, readdirSync)),
    ...(passwords_path === undefined ? [] : unreadable('keystores.passwords_path', passwords_path, readdirSync)),
    ...(password_file === undefined ? [] : unreadable('keystores.password_file', password_file, readableFile)),
  ];
}

/** A folder of bare keystores is a common slip: the start finds nothing in it, and says `ready keys=0`. */
function emptyFolders({ key_sources: { filesystem } }: Config): ConfigWarning[] {
  return filesystem.paths.flatMap((folder) => {
    const names = namesIn(folder);
    if (names === undefined || names.some((name) => DESCRIPTOR_NAME.test(name))) return [];
    const keystores = names.filter((name) => KEYSTORE_NAME.test(name)).length;
    const advice =
      keystores === 0
        ? 'Put one there for each key, beside its keystore (README.md)'
        : `It has ${keystores} .json files: bare keystores are for key_sources.filesystem.keystores.path`;
    const says = `names a folder without a descriptor (*.yaml), so no key is loaded from it: ${folder}. ${advice}`;
    return [{ at: 'key_sources.filesystem.paths', says }];
  });
}

function namesIn(folder: string): string[] | undefined {
  try {
    return readdirSync(folder);
  } catch {
    return undefined; // said as a violation
  }
}

function unreadable(option: string, path: string, read: (path: string) => unknown): Violation[] {
  const code = failure(() => read(path));
  if (code === undefined) return [];
  const what = read === readableFile ? 'file' : 'directory';
  const remedy = 'create it, give the signer’s user the right to read it, or correct the path';
  return [found(`key_sources.filesystem.${option}`, `names a ${what} that cannot be read: ${path} (${code})`, remedy)];
}

function unwritable(path: string): Violation[] {
  const code = failure(() => {
    readdirSync(path);
    accessSync(path, constants.W_OK);
  });
  if (code === undefined) return [];
  const problem = `names a directory that cannot be written: ${path} (${code})`;
  const remedy = 'create it for the signer’s user alone (mode 0700), or correct the path';
  return [found('key_sources.memory.persist_dir', problem, remedy)];
}

function readableFile(path: string): void {
  accessSync(path, constants.R_OK);
}

async function certificateOf({ tls: { mode, file, client_ca } }: Config, nowMs: number): Promise<FilesFound> {
  const { cert_path: certPath, key_path: keyPath } = file;
  if (mode !== 'file' || certPath === undefined || keyPath === undefined) return { violations: [], warnings: [] };
  const judged = await judgeCertificatePair({ certPath, keyPath, clientCaPath: client_ca });
  if ('faults' in judged) return { violations: judged.faults.map(unusable), warnings: [] };
  const { pair } = judged;
  pair.key.fill(0);
  const warnings = [
    { at: 'tls.file.cert_path', says: certificateWarning(pair, nowMs) },
    { at: 'tls.client_ca', says: clientCaWarning(pair.clientCa, nowMs) },
  ] as const;
  return { violations: [], warnings: warnings.flatMap(({ at, says }) => (says === undefined ? [] : [{ at, says }])) };
}

/** Files of known clients. */
function clientFiles({ tls: { known_clients } }: Config): Violation[] {
  return known_clients.flatMap(({ file }) => {
    try {
      if (file !== undefined) readKnownClientsFile(file);
      return [];
    } catch (error) {
      return [unusable(error)];
    }
  });
}

/** @param error whose message begins with the option */
function unusable(error: unknown): Violation {
  const message = error instanceof Error ? error.message : String(error);
  const [option = 'tls.file', ...problem] = message.split(': ');
  return found(option, problem.join(': '), 'correct the path, or the file');
}

function slashingFiles({ anti_slashing: { backend, path, url } }: Config): Violation[] {
  if (backend === 'sqlite') return sqliteFolder(path);
  if (backend !== 'postgres' || url === undefined) return [];
  const address = parsePostgresUrl(url.reveal().toString('utf8'));
  const roots = address.kind === 'address' ? address.rootCertificateFile : undefined;
  if (roots === undefined) return [];
  const code = failure(() => readFileSync(roots));
  if (code === undefined) return [];
  return [
    found(
      'anti_slashing.url',
      `names a file of root certificates that cannot be read: ${roots} (${code})`,
      'correct sslrootcert',
    ),
  ];
}

/** The database is made when it is missing, its folder is not. */
function sqliteFolder(path: string): Violation[] {
  const folder = resolve(dirname(path));
  const at: OptionPath = 'anti_slashing.path';
  const code = failure(() => {
    if (!statSync(folder).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' });
    accessSync(folder, constants.W_OK | constants.X_OK);
  });
  if (code === undefined) return [];
  const remedy = 'create the folder, and give it to the signer’s user';
  return [found(at, `lies in a folder that cannot be written: ${folder} (${code})`, remedy)];
}

/** The system's code of what went wrong. */
function failure(run: () => unknown): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    return errorCode(error) ?? 'unreadable';
  }
}

function found(path: string, problem: string, remedy: string): Violation {
  return { path, problem, remedy, origin: 'what is on this machine' };
}
