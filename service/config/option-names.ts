// How an option is named on a command line and in the environment, which only a service has.

import { type OptionPath, optionAt } from '../../signer/config/options.ts';

export function flagOf(path: OptionPath): string | undefined {
  const { flag } = optionAt(path);
  if (flag === 'none') return undefined;
  return flag === 'regular' ? `--${path.replaceAll(/[._]/g, '-')}` : flag;
}

export function variableOf(path: OptionPath): string {
  return `SVC_${path.toUpperCase().replaceAll('.', '__')}`;
}
