// Variables below object-valued options, and those that Kubernetes puts beside them
// (specification/operating.md#configuration).

import { describe, expect, it } from 'vitest';
import { MEMBERS } from '../../service/config/members.ts';
import { keyArn, load, loadGood, sentencesOf, violationsOf } from './loading.ts';

const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
const POLICIES = '[{"name":"all","rules":[{"effect":"allow"}]}]';

describe('a variable below an object', () => {
  it('sets one member, and the rest stays as the file has it', () => {
    const yaml = `ceremony: {generation: 1, kms_threshold: 1, kms_keys: [{arns: ["${keyArn(1)}"]}, {arns: ["${keyArn(2)}"]}], root_token_recipients: [${RECIPIENT}]}`;
    const config = loadGood({ yaml, env: { SVC_CEREMONY__KMS_THRESHOLD: '2', SVC_CEREMONY__GENERATION: '7' } });
    expect(config.ceremony).toMatchObject({ generation: 7, kms_threshold: 2 });
    expect(config.ceremony?.kms_keys).toHaveLength(2);
  });

  it('is enough for a whole object; lists are JSON', () => {
    const env = {
      SVC_STATIC_AUTH__POLICIES: POLICIES,
      SVC_STATIC_AUTH__ANONYMOUS__POLICIES: '["all"]',
      SVC_STATIC_AUTH__TOKENS: '[{"secret":"env:CLIENT_TOKEN","policies":["all"]}]',
      CLIENT_TOKEN: 'hunter2-hunter2-hunter2',
    };
    const { static_auth } = loadGood({ env });
    expect(static_auth.policies.map(({ name }) => name)).toEqual(['all']);
    expect(static_auth.anonymous.policies).toEqual(['all']);
    expect(static_auth.tokens[0]?.secret.reveal().toString()).toBe(env.CLIENT_TOKEN);
  });

  it('goes over the variable of the whole object, too', () => {
    const env = {
      SVC_PARENT_PROXY: '{"enclave_cid":16,"metrics":{"listen_port":1}}',
      SVC_PARENT_PROXY__ENCLAVE_CID: '20',
    };
    expect(loadGood({ env }).parent_proxy).toMatchObject({ enclave_cid: 20, metrics: { listen_port: 1 } });
  });

  it('is judged like every other value, and named where it is wrong', () => {
    expect(violationsOf({ env: { SVC_PARENT_PROXY__ENCLAVE_CID: 'sixteen' } })).toMatchObject([
      { path: 'parent_proxy.enclave_cid', origin: 'environment SVC_PARENT_PROXY__ENCLAVE_CID' },
    ]);
    expect(sentencesOf({ env: { SVC_STATIC_AUTH__ANONYMOUS__POLICIES: 'all,other' } })).toEqual([
      'static_auth.anonymous.policies is not well-formed JSON',
    ]);
    expect(sentencesOf({ yaml: 'static_auth: 3', env: { SVC_STATIC_AUTH__POLICIES: POLICIES } })).toEqual([
      'static_auth must be an object',
    ]);
  });

  it('counts as set: static_auth beside signer_state is refused wherever it comes from', () => {
    const given = {
      yaml: 'signer_state: {backend: dynamodb, table: state}',
      env: { SVC_STATIC_AUTH__POLICIES: POLICIES },
    };
    expect(sentencesOf(given)).toContain('static_auth is set together with signer_state');
  });

  it('that is mistyped is refused, with the one that was probably meant', () => {
    expect(violationsOf({ env: { SVC_CEREMONY__KMS_TRESHOLD: '2' } })).toMatchObject([
      { problem: 'is not the variable of an option', remedy: 'did you mean SVC_CEREMONY__KMS_THRESHOLD?' },
    ]);
  });

  it('exists for every member of a fixed shape, and for none below a list', () => {
    const names = MEMBERS.map(({ option, within }) => [option, ...within].join('.'));
    for (const name of [
      'static_auth.policies',
      'static_auth.anonymous',
      'static_auth.anonymous.policies',
      'static_auth.tokens',
      'ceremony.kms_threshold',
      'ceremony.kms_keys',
      'parent_proxy.ingress.tls.listen_port',
      'parent_proxy.credentials.source',
    ]) {
      expect(names).toContain(name);
    }
    expect(names.filter((name) => /tokens\.|kms_keys\.|policies\./.test(name))).toEqual([]);
  });
});

/** What a container sees of a Service (Kubernetes, "Discovering services"). */
function service(prefix: string): Record<string, string> {
  return {
    [`${prefix}_SERVICE_HOST`]: '10.0.0.11',
    [`${prefix}_SERVICE_PORT`]: '9000',
    [`${prefix}_SERVICE_PORT_HTTP`]: '9000',
    [`${prefix}_PORT`]: 'tcp://10.0.0.11:9000',
    [`${prefix}_PORT_9000_TCP`]: 'tcp://10.0.0.11:9000',
    [`${prefix}_PORT_9000_TCP_PROTO`]: 'tcp',
    [`${prefix}_PORT_9000_TCP_PORT`]: '9000',
    [`${prefix}_PORT_9000_TCP_ADDR`]: '10.0.0.11',
  };
}

describe('variables that Kubernetes injects', () => {
  it.each(['SVC', 'SVC_SIGNER', 'SVC_SIGNER_2'])('for the Service %s are ignored, and counted', (prefix) => {
    const loaded = load({ env: service(prefix) });
    expect(loaded).toMatchObject({ ok: true, ignoredVariables: Object.keys(service(prefix)) });
  });

  it.each(['SVC_SERVER_LISTEN_PORT', 'SVC_METRICS__LISTEN_PORTS', 'SVC_TLS_PORT'])(
    'do not cover a mistyped option: %s is refused',
    (variable) => {
      expect(violationsOf({ env: { ...service('SVC_SIGNER'), [variable]: '9001' } })).toMatchObject([
        { path: variable, problem: 'is not the variable of an option' },
      ]);
    },
  );

  it('take no option over: the option of that name is one', () => {
    expect(loadGood({ env: { ...service('SVC'), SVC_SERVER__LISTEN_PORT: '9100' } }).server.listen_port).toBe(9100);
  });
});
