// The certificate authorities that the enclave trusts: Amazon's own roots, taken from the list inside the pinned
// Node.js, for every host; and those that the image's owner names for one host, which alone vouch for that host. No
// authority is added for all hosts: who holds it could answer as KMS and as DynamoDB.

import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { basename } from 'node:path';
import { explainIssue } from '../common/formats/issues.ts';
import { hostnameSchema } from '../signer/api/egress.ts';
import type { HostAuthorities } from './bundle/compiled-module.ts';
import { BuildError, readImageInput, WrongUsage } from './inputs.ts';

/** Amazon Trust Services' repository: the roots that AWS endpoints chain to. */
const AMAZON_ROOTS: readonly string[] = [
  'C=US\nO=Amazon\nCN=Amazon Root CA 1',
  'C=US\nO=Amazon\nCN=Amazon Root CA 2',
  'C=US\nO=Amazon\nCN=Amazon Root CA 3',
  'C=US\nO=Amazon\nCN=Amazon Root CA 4',
  'C=US\nST=Arizona\nL=Scottsdale\nO=Starfield Technologies\\, Inc.\nCN=Starfield Services Root Certificate Authority - G2',
];

const MAX_HOSTS = 16;
const MAX_ADDED = 64;
const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;
const LIST_ROOTS = "process.stdout.write(JSON.stringify(require('node:tls').rootCertificates))";

/** PEM text of Amazon's roots. @param node path of the pinned binary, which is run @throws BuildError */
export function caBundle(node: string): Buffer {
  return asText(amazonRoots(node));
}

export interface GivenAuthorities {
  readonly byHost: HostAuthorities;
  readonly files: ReadonlyMap<string, Buffer>;
}

/** @param given each `HOST=FILE` @throws BuildError */
export function readAuthorities(given: readonly string[]): GivenAuthorities {
  if (given.length > MAX_HOSTS) throw new BuildError(`--ca names more than ${MAX_HOSTS} hosts`);
  const byHost = new Map<string, readonly string[]>();
  const paths = new Map<string, string>();
  const files = new Map<string, Buffer>();
  for (const one of given) {
    const { host, file } = hostAndFile(one);
    const name = basename(file);
    if (byHost.has(host)) throw new BuildError(`--ca names the host ${host} twice: put its authorities in one file`);
    if ((paths.get(name) ?? file) !== file) throw new BuildError('two files of --ca have the same name');
    const bytes = files.get(name) ?? readImageInput(file, 'a certificate authority');
    byHost.set(host, readAdded(name, bytes));
    paths.set(name, file);
    files.set(name, bytes);
  }
  return { byHost, files };
}

function hostAndFile(given: string): { readonly host: string; readonly file: string } {
  const at = given.indexOf('=');
  const file = given.slice(at + 1);
  if (at < 1 || file === '')
    throw new WrongUsage('--ca takes HOST=FILE: the authorities of FILE vouch for this host, and for no other');
  const host = hostnameSchema.safeParse(given.slice(0, at), { error: explainIssue });
  if (host.success) return { host: host.data, file };
  throw new BuildError(`--ca ${given.slice(0, at)}=…: the host ${host.error.issues[0]?.message}`);
}

/** For releases, which run where their owner decides. @param node path of the pinned binary, which is run */
export function publicAuthorities(node: string): Buffer {
  return asText(rootsOf(node));
}

function asText(certificates: readonly X509Certificate[]): Buffer {
  const byDigest = new Map(certificates.map((certificate) => [certificate.fingerprint256, certificate]));
  return Buffer.from([...byDigest.values()].map((certificate) => `${titleOf(certificate)}\n${certificate}`).join(''));
}

function rootsOf(node: string): X509Certificate[] {
  // Nothing of this process's environment: it could add certificates, or options.
  const listed = JSON.parse(execFileSync(node, ['--eval', LIST_ROOTS], { env: {}, encoding: 'utf8' })) as string[];
  return listed.map((pem) => new X509Certificate(pem));
}

function amazonRoots(node: string): X509Certificate[] {
  const certificates = rootsOf(node);
  return AMAZON_ROOTS.map((subject) => {
    const [root, ...others] = certificates.filter((certificate) => certificate.subject === subject);
    if (root !== undefined && others.length === 0) return root;
    throw new BuildError(`Node.js does not have exactly one root ${subject.replaceAll('\n', ', ')}`);
  });
}

/** Each once, as its bytes alone say it. */
function readAdded(name: string, pem: Buffer): string[] {
  const blocks = pem.toString('latin1').match(PEM) ?? [];
  if (blocks.length === 0) throw new BuildError(`--ca ${name} has no certificate in PEM`);
  if (blocks.length > MAX_ADDED) throw new BuildError(`--ca ${name} has more than ${MAX_ADDED} certificates`);
  const certificates = blocks.map((block, at) => {
    const certificate = attempt(block);
    if (certificate === undefined) throw new BuildError(`--ca ${name}: certificate ${at + 1} cannot be read`);
    if (!certificate.ca) throw new BuildError(`--ca ${name}: certificate ${at + 1} is not of a certificate authority`);
    return certificate.toString();
  });
  return [...new Set(certificates)];
}

function attempt(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function titleOf({ subject }: X509Certificate): string {
  return `# ${subject.replaceAll('\n', ', ').replaceAll(/[^\x20-\x7e]/g, '?')}`;
}
