// The setting of each option that takes effect: the layers laid over each other, members over their option, and
// references to variables and files followed. What a reference names is a secret from here on; one that leads nowhere
// is a broken reference, which the option's schema refuses.

import type { Environment } from './layers/environment.ts';
import type { Layer, MemberSetting, Setting } from './layers/layer.ts';
import { withMember } from './layers/members.ts';
import type { OptionPath } from './options.ts';
import { BrokenReference } from './values/broken-reference.ts';
import { readSecret, type SecretSources, surrounded } from './values/secret.ts';
import { withSecrets } from './values/static-auth.ts';

/** The setting that takes effect for each option, with secrets already secret. */
export function resolveSettings(
  layers: readonly Layer[],
  env: Environment,
  { isEnclaveBuild, withoutTokens }: { readonly isEnclaveBuild: boolean; readonly withoutTokens: boolean },
): { readonly settings: ReadonlyMap<OptionPath, Setting>; readonly referenced: readonly string[] } {
  const settings = new Map<OptionPath, Setting>();
  for (const layer of layers.toReversed()) {
    for (const [path, setting] of layer.settings) settings.set(path, setting);
  }
  for (const member of layers.flatMap(({ members = [] }) => members)) {
    settings.set(member.option, overlaid(settings.get(member.option), member));
  }
  // Also where the file is only checked on the way into an image, whose signer finds no environment.
  const isForEnclave = isEnclaveBuild || settings.get('tee.platform')?.value === 'nitro';
  const sources = { env: isForEnclave ? undefined : env, unsetIsFine: withoutTokens };
  const referenced = [
    ...readTokens(settings, sources),
    ...readUrl(settings, { env: sources.env }),
    ...readPersistSecret(settings, sources),
  ];
  return { settings, referenced };
}

/** An option with one of its members set by a layer of its own. */
function overlaid(base: Setting | undefined, { within, value, originAt }: MemberSetting): Setting {
  const isThere = (path: readonly PropertyKey[]) => within.every((name, index) => path[index] === name);
  return {
    value: withMember(base?.value, within, value),
    originAt: (path) => (base === undefined || isThere(path) ? originAt(path) : base.originAt(path)),
  };
}

/** Answers the variables that tokens refer to, as does `readUrl`. */
function readTokens(settings: Map<OptionPath, Setting>, sources: SecretSources): readonly string[] {
  const setting = settings.get('static_auth');
  if (setting === undefined) return [];
  const { value, variables } = withSecrets(setting.value, sources);
  settings.set('static_auth', { ...setting, value });
  return variables;
}

/** The database's URL may stand in a variable of any name or in a file, as tokens may. */
function readUrl(settings: Map<OptionPath, Setting>, sources: SecretSources): readonly string[] {
  const setting = settings.get('anti_slashing.url');
  if (typeof setting?.value !== 'string') return [];
  const { secret, variable } = readSecret(setting.value, sources);
  const text = secret instanceof BrokenReference ? '' : secret.reveal().toString('utf8');
  const broken = secret instanceof BrokenReference ? secret : surrounded(text);
  settings.set('anti_slashing.url', { ...setting, value: broken ?? text });
  return variable === undefined ? [] : [variable];
}

function readPersistSecret(settings: Map<OptionPath, Setting>, sources: SecretSources): readonly string[] {
  const setting = settings.get('key_sources.memory.persist_secret');
  if (typeof setting?.value !== 'string') return [];
  const { secret, variable } = readSecret(setting.value, sources);
  settings.set('key_sources.memory.persist_secret', { ...setting, value: secret });
  return variable === undefined ? [] : [variable];
}
