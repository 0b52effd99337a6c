// Profiles: named sets of the common flags in one YAML file. It decides where tokens go, so a file that others can
// write is refused; one that holds a token itself also when others may read it. Messages name places, never content.

import type { Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { nearest } from '../common/command-line/nearest.ts';
import { profilePath } from '../common/command-line/profile-path.ts';
import type { Terminal } from '../common/command-line/terminal.ts';
import { bounded, renderPlace } from '../common/command-line/text.ts';
import { explainIssue } from '../common/formats/issues.ts';
import { parseStrictYaml } from '../common/formats/yaml.ts';
import { localFailure } from './exit.ts';
import { readIfThere } from './profile-file.ts';

const DEFAULT_PROFILE = 'default';

const text = z.string().min(1);
const profileSchema = z.strictObject({
  signer_url: text.exactOptional(),
  token: text.refine((token) => token !== '-', 'a profile cannot read the token from stdin').exactOptional(),
  json: z.boolean().exactOptional(),
  tls_ca: text.exactOptional(),
  tls_server_name: text.exactOptional(),
  allow_plaintext_signer: z.boolean().exactOptional(),
  timeout_seconds: z.int().exactOptional(),
  pcrs: text.exactOptional(),
  pcr: z.record(z.string(), z.union([text, z.array(text)])).exactOptional(),
  any_configuration: z.boolean().exactOptional(),
  max_age: z.int().exactOptional(),
});
const fileSchema = z.strictObject({ profiles: z.record(z.string(), profileSchema) });

export interface Profile {
  readonly name: string;
  /** By the names of the flags. Paths are absolute: in the file they are relative to its folder. */
  readonly values: Readonly<Record<string, string>>;
}

export function readProfile(name: string | undefined, env: Terminal['env']): Profile | undefined {
  const path = profilePath(env);
  const profiles = readProfiles(path);
  if (profiles === undefined) {
    if (name === undefined) return undefined;
    throw localFailure(`there is no profile ${bounded(name, 60)}: ${path} does not exist`, WRITE_IT);
  }
  const wanted = name ?? DEFAULT_PROFILE;
  const profile = profiles.find((one) => one.name === wanted);
  if (profile !== undefined || name === undefined) return profile;
  const names = profiles.map((one) => one.name);
  throw localFailure(`there is no profile ${bounded(name, 60)} in ${path}`, adviceFor(name, names));
}

/** All of a file. @returns undefined where there is none @throws CommandFailure also when others may write it */
export function readProfiles(path: string): readonly Profile[] | undefined {
  const file = readIfThere(path);
  if (file === undefined) return undefined;
  refuseWhenForeign(path, file.stats);
  const { profiles } = parseProfiles(path, file.content);
  const literal = Object.values(profiles).some(({ token }) => token !== undefined && !/^(env:|@|file:)/.test(token));
  if (literal) refuseWhenShared(path, file.stats);
  return Object.entries(profiles).map(([name, profile]) => ({ name, values: byFlagName(profile, dirname(path)) }));
}

const WRITE_IT =
  'write the profile into this file (`strongroom operator --help` shows one), or name the signer with --signer-url';
const MAX_NAMES = 10;

function adviceFor(wanted: string, names: readonly string[]): string {
  const near = nearest(wanted, names);
  if (near !== undefined) return `did you mean ${bounded(near, 60)}?`;
  if (names.length === 0) return WRITE_IT;
  const shown = names.slice(0, MAX_NAMES).map((name) => bounded(name, 60));
  return `there are: ${shown.join(', ')}${names.length > MAX_NAMES ? `, … (${names.length})` : ''}`;
}

function parseProfiles(path: string, content: string): z.output<typeof fileSchema> {
  const document = parseStrictYaml(content);
  if ('problems' in document) {
    const [first] = document.problems;
    throw localFailure(`${path} line ${first?.line}: ${first?.problem}`);
  }
  const parsed = fileSchema.safeParse(document.value, { error: explainIssue });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const place = renderPlace(issue?.path ?? []);
  throw localFailure(`${path}: ${bounded(`${place === '' ? 'the file' : place}: ${issue?.message}`, 200)}`);
}

/** A user who can write the file can have a token sent to a signer of their own. Root can do that anyway. */
function refuseWhenForeign(path: string, { mode, uid }: Stats): void {
  if (uid !== 0 && uid !== process.getuid?.()) {
    throw localFailure(
      `${path} belongs to another user (uid ${uid})`,
      'look what is in it, then write it anew as yourself, or set XDG_CONFIG_HOME to a folder of your own',
    );
  }
  if ((mode & 0o022) === 0) return;
  throw localFailure(
    `${path} can be written by others (mode ${octal(mode)})`,
    `look whether it is still as you wrote it, then: chmod go-w ${path}`,
  );
}

function refuseWhenShared(path: string, { mode }: Stats): void {
  if ((mode & 0o077) === 0) return;
  throw localFailure(
    `${path} holds a token and others may read it (mode ${octal(mode)})`,
    `chmod 600 ${path}, or keep the token elsewhere: token: "@/path/to/file"`,
  );
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0');
}

function byFlagName(profile: z.output<typeof profileSchema>, folder: string): Record<string, string> {
  const values = Object.entries(profile).map(([key, value]): [string, string] => {
    if (typeof value === 'object') return [key, registers(value)];
    const written = String(value);
    if (key === 'tls_ca' || key === 'pcrs') return [key.replaceAll('_', '-'), resolve(folder, written)];
    if (key === 'token' && written.startsWith('@')) return ['token', `@${resolve(folder, written.slice(1))}`];
    return [key.replaceAll('_', '-'), written];
  });
  return Object.fromEntries(values);
}

function registers(values: Readonly<Record<string, string | string[]>>): string {
  const written = Object.entries(values).flatMap(([index, accepted]) =>
    [accepted].flat().map((hex) => `${index}=${hex}`),
  );
  return written.join(',');
}
