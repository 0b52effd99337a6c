// The certificate authorities that the enclave trusts, all of them: Amazon's own roots, taken from the list inside the
// pinned Node.js, and those that the image's owner adds (a database's). No other authority can vouch for an endpoint of
// the signer, whoever its name is.

import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { BuildError } from './inputs.ts';

/** Amazon Trust Services' repository: the roots that AWS endpoints chain to. */
const AMAZON_ROOTS: readonly string[] = [
  'C=US\nO=Amazon\nCN=Amazon Root CA 1',
  'C=US\nO=Amazon\nCN=Amazon Root CA 2',
  'C=US\nO=Amazon\nCN=Amazon Root CA 3',
  'C=US\nO=Amazon\nCN=Amazon Root CA 4',
  'C=US\nST=Arizona\nL=Scottsdale\nO=Starfield Technologies\\, Inc.\nCN=Starfield Services Root Certificate Authority - G2',
];

const MAX_ADDED = 64;
const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;
const LIST_ROOTS = "process.stdout.write(JSON.stringify(require('node:tls').rootCertificates))";

/**
 * PEM text, Amazon's first.
 * @param node path of the pinned binary, which is run
 * @param added PEM files by their names
 * @throws BuildError
 */
export function caBundle(node: string, added: ReadonlyMap<string, Buffer>): Buffer {
  const certificates = [...amazonRoots(node), ...[...added].flatMap(([name, pem]) => readAdded(name, pem))];
  return asText(certificates);
}

/**
 * All authorities of the list inside the pinned binary: for releases, which run where their owner decides.
 * @param node path of the pinned binary, which is run
 */
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

function readAdded(name: string, pem: Buffer): X509Certificate[] {
  const blocks = pem.toString('latin1').match(PEM) ?? [];
  if (blocks.length === 0) throw new BuildError(`--ca ${name} has no certificate in PEM`);
  if (blocks.length > MAX_ADDED) throw new BuildError(`--ca ${name} has more than ${MAX_ADDED} certificates`);
  return blocks.map((block, at) => {
    const certificate = attempt(block);
    if (certificate === undefined) throw new BuildError(`--ca ${name}: certificate ${at + 1} cannot be read`);
    if (!certificate.ca) throw new BuildError(`--ca ${name}: certificate ${at + 1} is not of a certificate authority`);
    return certificate;
  });
}

function attempt(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** A line that OpenSSL skips and people read. */
function titleOf({ subject }: X509Certificate): string {
  return `# ${subject.replaceAll('\n', ', ').replaceAll(/[^\x20-\x7e]/g, '?')}`;
}
