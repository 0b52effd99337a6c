import { describe, expect, it } from 'vitest';
import { flagOf, variableOf } from '../../service/config/option-names.ts';
import { OPTION_PATHS, type OptionPath, optionAt } from '../../signer/config/options.ts';
import { keyArn, load, loadGood, violationsOf } from './loading.ts';

type LayerName = 'flag' | 'environment' | 'file';

const LAYERS: readonly LayerName[] = ['flag', 'environment', 'file'];
const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';

/** A value that every layer can spell, as JSON; `refusal` is one that no option of the form accepts. */
function accepted(path: OptionPath): unknown {
  const samples: Partial<Record<OptionPath, unknown>> = {
    'server.listen_address': '127.0.0.1',
    'metrics.listen_address': '::1',
    'tls.listen_address': 'signer.example',
    'server.cors_allowed_origins': ['https://example.org'],
    'server.allowed_hosts': ['signer.example'],
    'server.trusted_proxy_cidrs': ['10.0.0.0/8'],
    'custom_network.genesis_validators_root': `0x${'ab'.repeat(32)}`,
    'custom_network.genesis_fork_version': '0x00000001',
    'custom_network.capella_fork_version': '0x00000002',
    'custom_network.fork_versions': { phase0: '0x00000001', capella: '0x00000002' },
    'network.fork_schedule': { gloas: 500_000 },
    'signer_state.table': 'state',
    'key_sources.dynamodb.table': 'keys',
    'key_sources.memory.persist_secret': 'test-only secret of 16 characters or more',
    'anti_slashing.table': 'arn:aws:dynamodb:eu-central-1:111122223333:table/slashing',
    'tee.nitro.table_credentials.ciphertext': 'AAAA',
    'tee.nitro.table_credentials.key_arn': keyArn(1),
    'anti_slashing.url': 'postgres://signer@localhost/slashing',
    'chamber.keys.backup.recipients': [RECIPIENT],
    'opentelemetry.endpoint': 'http://localhost:4317',
    'logging.level': 'debug',
    canary_keys: [`0x${'ab'.repeat(48)}`],
    static_auth: {},
    'tls.known_clients': [],
    ceremony: {
      generation: 1,
      kms_threshold: 1,
      kms_keys: [{ arns: [keyArn(1)] }],
      root_token_recipients: [RECIPIENT],
    },
    parent_proxy: { enclave_cid: 16 },
    'tee.nitro.accepted_images': [{ PCR0: 'ab'.repeat(48), PCR1: 'ab'.repeat(48), PCR2: 'ab'.repeat(48) }],
    'tee.nitro.egress.endpoints': [{ hostname: 'kms.example.org', loopback: '127.0.1.1', vsock_port: 8001 }],
  };
  if (path in samples) return samples[path];
  const { kind } = optionAt(path);
  const choices = /one of (.*)$/.exec(kind.expects)?.[1]?.split(', ');
  if (kind.form === 'integer') return Number(/from (\d+)/.exec(kind.expects)?.[1]);
  if (kind.form === 'boolean') return true;
  if (kind.form === 'list' || kind.form === 'repeated') return [choices?.[0] ?? 'a'];
  return choices?.[0] ?? 'a';
}

function refusal(path: OptionPath): unknown {
  const { form } = optionAt(path).kind;
  if (form === 'object') return { 'no-such-member': 1 };
  return form === 'list' || form === 'repeated' ? [''] : '';
}

function write(path: OptionPath, values: Partial<Record<LayerName, unknown>>) {
  const asText = (value: unknown): string => {
    if (optionAt(path).kind.form === 'object') return JSON.stringify(value);
    if (!Array.isArray(value)) return String(value);
    return value.length === 1 && value[0] === '' ? ',' : value.join(',');
  };
  const asFlag = (value: unknown): string =>
    Array.isArray(value) && optionAt(path).kind.form === 'repeated' ? String(value[0]) : asText(value);
  const nested = path
    .split('.')
    .toReversed()
    .reduce<unknown>((inner, name) => ({ [name]: inner }), values.file);
  return {
    argv: 'flag' in values ? [`${flagOf(path)}=${asFlag(values.flag)}`] : [],
    env: 'environment' in values ? { [variableOf(path)]: asText(values.environment) } : {},
    yaml: 'file' in values ? JSON.stringify(nested) : '{}',
  };
}

function originOf(path: OptionPath, layer: LayerName): string {
  if (layer === 'flag') return `flag ${flagOf(path)}`;
  return layer === 'environment' ? `environment ${variableOf(path)}` : 'config.yaml line 1';
}

/** Every choice of at least one layer, the highest first. */
const CHOICES_OF_LAYERS: readonly (readonly LayerName[])[] = [1, 2, 3, 4, 5, 6, 7].map((bits) =>
  LAYERS.filter((_, index) => (bits & (1 << index)) !== 0),
);

function layersFor(path: OptionPath, layers: readonly LayerName[]): LayerName[] {
  return layers.filter((layer) => layer !== 'flag' || flagOf(path) !== undefined);
}

describe('precedence of layers, for every option', () => {
  it.each(OPTION_PATHS)('%s: judges the value of the highest layer, and no other', (path) => {
    for (const chosen of CHOICES_OF_LAYERS) {
      const layers = layersFor(path, chosen);
      const highest = layers[0];
      if (highest === undefined) continue;
      const values = Object.fromEntries(layers.map((layer) => [layer, refusal(path)]));
      const origins = violationsOf(write(path, values))
        .filter((violation) => violation.path.startsWith(path))
        .map(({ origin }) => origin);
      expect(new Set(origins)).toEqual(new Set([originOf(path, highest)]));
    }
  });

  it.each(OPTION_PATHS)('%s: takes a good value of a higher layer over a bad one below', (path) => {
    for (const chosen of CHOICES_OF_LAYERS) {
      const [highest, ...below] = layersFor(path, chosen);
      if (highest === undefined) continue;
      const values = { ...Object.fromEntries(below.map((layer) => [layer, refusal(path)])), [highest]: accepted(path) };
      // What remains may be a rule between options, never the value below.
      const violations = violationsOf(write(path, values));
      expect(violations.filter(({ problem }) => /^must be|is required|not a member/.test(problem))).toEqual([]);
      const own = violations.filter((violation) => violation.path.startsWith(path));
      expect(own.filter(({ origin }) => origin !== originOf(path, highest))).toEqual([]);
    }
  });

  it.each(OPTION_PATHS)('%s means the same in every layer that can set it', (path) => {
    const outcomes = layersFor(path, LAYERS).map((layer) => {
      const loaded = load(write(path, { [layer]: accepted(path) }));
      const origin = loaded.ok ? loaded.origins.get(path) : originOf(path, layer);
      expect(origin).toBe(originOf(path, layer));
      return JSON.stringify(loaded.ok ? loaded.config : loaded.violations.map(({ path, problem }) => [path, problem]));
    });
    expect(new Set(outcomes).size).toBe(1);
  });
});

describe('defaults', () => {
  it('start a signer without any file, flag or variable', () => {
    const loaded = load({});
    expect(loaded).toMatchObject({ ok: true, check: false });
    const config = loadGood({});
    expect(config.server.listen_port).toBe(9000);
    expect(config.server.cors_allowed_origins).toBeNull();
    expect(config.signer_state.table).toBeUndefined();
    expect(config.static_auth).toEqual({ policies: [], anonymous: { policies: [] }, tokens: [] });
    expect(config.anti_slashing.backend).toBe('sqlite');
  });

  it.each(OPTION_PATHS)('the default of %s is a value that the option accepts', (path) => {
    const { kind, default: value } = optionAt(path);
    // An option without a default is one that may be absent; its schema never sees undefined.
    expect(value === undefined ? undefined : kind.schema.parse(value)).toEqual(value);
  });

  it('the whole configuration is frozen, to the last list', () => {
    const config = loadGood({ yaml: 'static_auth: {policies: [{name: a, rules: [{effect: deny, scopes: [sign]}]}]}' });
    const thaw = (value: unknown): unknown[] => {
      if (typeof value !== 'object' || value === null) return [];
      return [...(Object.isFrozen(value) ? [] : [value]), ...Object.values(value).flatMap(thaw)];
    };
    expect(thaw(config)).toEqual([]);
  });
});
